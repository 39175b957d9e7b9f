"""Asking for a redrive in the browser: what is shown before, and what is asked for."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import Plan, PlanItem, Queue
from queue_app.policy.filters import Filter
from queue_app.policy.queues import QueuePolicy
from queue_app.policy.selections import by_ids
from queue_app.reads.plans import terms_of
from queue_app.services import queue as engine
from queue_app.store import queues
from tests.conftest import Clock
from tests.reads.test_dead import FILTERS, _recount
from tests.redrive import story
from tests.views.asking import GROUP, ask, look, said, sql
from tests.views.seen import exported, matching

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]


@pytest.fixture
def page(client: Client, operator: User, as_user: SignIn, clock: Clock) -> Client:
    """Oda's browser."""
    return as_user(client, operator)


@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: wanted.canonical())
def test_one_number_in_the_list_the_file_the_preview_and_the_list_that_is_fixed(
    mixed: Clock, console: Client, wanted: Filter
) -> None:
    query = dict(wanted.query())
    if not query:  # nothing chosen is no choice
        assert look(console, **query).context["choice"].selection is None
        return
    expected = _recount(wanted, mixed.now + 1)
    assert matching(console.get(reverse("quarantine_list"), query).text) == len(expected)
    shown = look(console, **query).context
    if shown["choice"].parts:  # a redrive is of one queue: the numbers of all add up
        assert sum(n for _queue, n, _exact, _value in shown["choice"].parts) == len(expected)
        return
    if not expected:
        assert shown["choice"].selection is None or shown["p"].n.n == 0
        return
    assert exported(console, wanted.query()) == expected
    assert (shown["p"].n.n, sum(cause.n for cause in shown["p"].causes)) == (len(expected), len(expected))
    ask(console, **{**query, "queue": wanted.queue or "snacks"})
    fixed = list(PlanItem.objects.order_by("pos").values_list("job_id", flat=True))
    assert (len(fixed), fixed) == (shown["p"].eligible, expected)


# --- before -----------------------------------------------------------------------------------------------------------
def test_the_figures_shown_before_are_those_of_the_rows(page: Client, clock: Clock, team_lead: User) -> None:
    story.die(3, code="http_422", prefix="a")
    clock.advance(60_000)
    story.die(7, prefix="b")
    answer = look(page, queue="snacks")
    rows = sql(
        "SELECT reason, code, count(*), min(changed_at_ms) FROM jobs WHERE state = 'dead' "
        "GROUP BY reason, code ORDER BY count(*) DESC"
    )
    shown = answer.context["p"]
    assert [(c.reason, c.code, c.n, c.oldest_ms) for c in shown.causes] == rows
    assert (shown.n.n, shown.eligible) == (10, 10)
    assert "10 orders in 2 s" in said(answer)  # ten orders at the queue's five per second
    assert "2 different causes in one redrive." in said(answer)


def test_what_would_be_left_out_is_said_with_its_number_and_the_redrive_that_holds_it(
    page: Client, clock: Clock, operator: User
) -> None:
    story.die(2, prefix="old")
    clock.advance(QueuePolicy("snacks").redrive_horizon_ms + 60_000)
    held = story.die(3, prefix="held")
    clock.advance(10_000)
    story.die(4, prefix="new")
    plan = story.ask(operator, by_ids(held))
    answer = look(page, queue="snacks", max_dead="30s")
    assert "2 orders are beyond the redrive horizon" in said(answer)
    assert "3 orders are held by this redrive and are left out: R-" in said(answer)
    assert reverse("redrive", args=[plan.pk]) in answer.content.decode()


def test_orders_dead_for_longer_than_allowed_are_counted_apart(page: Client, clock: Clock) -> None:
    story.die(5, prefix="old")
    clock.advance(3_600_000)
    story.die(4, prefix="new")
    answer = look(page, queue="snacks", max_dead="30m")
    assert "5 orders are in quarantine for longer than you allow" in said(answer)
    assert answer.context["p"].eligible == 4


def test_how_earlier_redrives_of_the_cause_ended_is_shown(
    page: Client, clock: Clock, operator: User, team_lead: User
) -> None:
    story.die(4)
    story.run(story.approved(operator, team_lead), clock)
    story.work("permanent", code="http_503", limit=3)
    clock.advance(1_000)
    answer = look(page, **GROUP)
    (cause,) = answer.context["p"].causes
    assert (cause.n, cause.again, cause.before.dead_same) == (4, 4, 4)
    assert "0 delivered, 4 back for the same cause" in said(answer)
    assert "4 were redriven before and came back." in said(answer)


def test_a_pace_is_said_as_how_many_in_how_long_and_until_when(page: Client, clock: Clock) -> None:
    story.die(120)
    answer = look(page, queue="snacks", rate="0.5")
    assert "120 orders in 4 min, until 08:04" in said(answer)
    assert "2 orders go first as a trial" in said(look(page, ids="o1 o2", rate="100"))
    assert "2 orders in 1 s" in said(look(page, ids="o1 o2", rate="100"))
    slow = look(page, queue="snacks", rate="10", steps="1x60")
    assert slow.context["p"].duration_ms == 60_000 + 6_000


def test_nothing_chosen_is_never_everything(page: Client, clock: Clock) -> None:
    story.die(3)
    for query in ({}, {"reason": ""}, {"sort": "newest"}):
        answer = look(page, **query)
        assert answer.status_code == 200
        assert "No order is chosen yet" in said(answer)
    assert look(page, ids="").status_code == 400


def test_of_a_single_queue_the_filter_need_not_say_which(page: Client, clock: Clock) -> None:
    story.die(3)
    if len(queues.policies()) > 1:
        Queue.objects.exclude(pk="snacks").delete()
    answer = look(page, reason="permanent")
    assert answer.context["p"].n.n == 3
    assert '<input type="hidden" name="queue" value="snacks">' in answer.content.decode()


def test_of_several_queues_one_is_chosen_first(page: Client, clock: Clock) -> None:
    queues.declare(QueuePolicy("drinks"))
    ids = story.die(3)
    engine.enqueue("d1", 1, queue="drinks")
    (lease,) = engine.claim("w", queue="drinks")
    engine.finish(lease.id, lease.token, "permanent", code="http_422")
    clock.advance(1)
    by_filter = look(page, reason="permanent")
    assert "Only those of drinks" in said(by_filter)
    assert "3 orders" in said(by_filter)
    by_ids = look(page, ids=[*ids, "d1"])
    assert "A redrive is of one queue: which?" in said(by_ids)
    one = page.post(reverse("redrive_new"), {"ids": " ".join(ids), "recalculate": "1"})
    assert one.context["p"].n.n == 3
    assert ask(page, queue=None, ids=" ".join([*ids, "d1"])).status_code == 200
    assert not Plan.objects.exists()


def test_the_figures_of_another_pace_come_alone_and_ask_for_nothing(page: Client, clock: Clock) -> None:
    story.die(20)
    fields = {"queue": "snacks", "recalculate": "1", "rate": "20", "note": "a b"}
    answer = page.post(reverse("redrive_new"), fields, headers={"HX-Request": "true", "HX-Target": "preview"})
    assert answer.status_code == 200
    assert answer.content.decode().lstrip().startswith('<div id="preview"')
    assert "20 orders in 1 s" in said(answer)
    whole = page.post(reverse("redrive_new"), fields | {"comment": "はい"})
    assert "はい" in whole.content.decode()
    bad = page.post(
        reverse("redrive_new"), fields | {"rate": "fast"}, headers={"HX-Request": "true", "HX-Target": "preview"}
    )
    assert bad.status_code == 422
    assert "The rate is a number of orders per second" in said(bad)
    assert not Plan.objects.exists()


def test_every_form_has_a_key_of_its_own_and_an_error_keeps_it(page: Client, clock: Clock) -> None:
    story.die(1)
    first, second = (look(page, queue="snacks").context["form_key"] for _each in range(2))
    assert first != second
    assert ask(page, note="", form_key=first).context["form_key"] == first


def test_looking_changes_nothing_and_costs_the_same_for_few_and_many(page: Client, clock: Clock) -> None:
    asked = []
    for n in (2, 40):
        story.die(n, prefix=f"n{n}-")
        clock.advance(1)
        with CaptureQueriesContext(connection) as queries:
            assert look(page, queue="snacks").status_code == 200
        assert not [q for q in queries if q["sql"].split(" ", 1)[0] in ("INSERT", "UPDATE", "DELETE")]
        asked.append(len(queries))
    assert asked[0] == asked[1]
    assert page.head(reverse("redrive_new"), {"queue": "snacks"}).status_code == 200
    assert page.put(reverse("redrive_new")).status_code == 405


# --- asking -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "n"),
    [
        ({}, 7),
        (GROUP, 4),
        ({"queue": None, "ids": "a1"}, 1),
        ({"queue": None, "ids": ["a1", "a2", "b1"]}, 3),
        ({"queue": None, "ids": "a1 a2"}, 2),
        ({"id": "b"}, 4),
    ],
    ids=["queue", "group", "order", "ticked", "one-field", "filter"],
)
def test_asked_from_a_filter_a_cause_ticked_orders_or_one(
    fields: dict[str, Any], n: int, page: Client, clock: Clock
) -> None:
    story.die(3, code="http_422", prefix="a")
    story.die(4, prefix="b")
    clock.advance(1)
    answer = ask(page, **fields)
    plan = Plan.objects.get()
    assert answer["Location"] == reverse("redrive", args=[plan.pk])
    assert (plan.state, plan.planned, plan.note) == ("proposed", n, "INC-1")
    assert f"R-{plan.pk} is asked for: {n} order" in said(page.get(answer["Location"]))  # type: ignore[arg-type]


def test_presets_follow_the_rate_of_the_queue_and_typed_fields_win(page: Client, clock: Clock) -> None:
    story.die(30)
    ask(page, preset="careful", ids=None, cap="10")
    careful = terms_of(Plan.objects.latest("id"))
    assert (careful.rate_mj, careful.stop_permille, careful.cap, careful.canary) == (1_000, 200, 10, 10)
    ask(page, form_key="m" * 20)
    assert terms_of(Plan.objects.latest("id")).rate_mj == QueuePolicy("snacks").rate_mj


def test_every_field_reaches_the_plan(page: Client, clock: Clock) -> None:
    story.die(30)
    ask(
        page,
        comment="直しました",
        rate="20.5",
        steps="5x60, 20\u00d7300",
        canary="3",
        stop="12.5",
        canary_wait="90s",
        cap="25",
        max_dead="7d",
        max_attempts="2",
        budget="12h",
    )
    plan = Plan.objects.get()
    terms = terms_of(plan)
    assert plan.comment == "直しました"
    assert (terms.rate_mj, terms.steps) == (20_500, ((5_000, 60), (20_000, 300)))
    assert (terms.canary, terms.stop_permille, terms.canary_wait_ms, terms.cap) == (3, 125, 90_000, 25)
    assert (terms.max_dead_ms, terms.max_attempts, terms.budget_ms) == (604_800_000, 2, 43_200_000)


def test_a_limit_below_the_usual_trial_makes_the_trial_smaller(page: Client, clock: Clock) -> None:
    story.die(30)
    ask(page, cap="4")
    assert terms_of(Plan.objects.get()).canary == 4


def test_a_second_submit_finds_the_first_and_says_so(page: Client, clock: Clock) -> None:
    story.die(3)
    first, second = ask(page), ask(page)
    assert first["Location"] == second["Location"]
    assert Plan.objects.count() == 1
    assert "was asked for already" in said(page.get(second["Location"]))  # type: ignore[arg-type]


def test_more_than_a_request_can_fix_is_said_to_be_in_the_making(
    page: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queue_app.services.plans.IN_REQUEST", 5)
    monkeypatch.setattr("queue_app.reads.previews.SCAN_ROWS", 5)
    story.die(8)
    assert "put on the list by the redriver after you ask" in said(look(page, queue="snacks"))
    answer = ask(page)
    assert Plan.objects.get().state == "freezing"
    assert "Its list of about 8 orders is being made" in said(page.get(answer["Location"]))  # type: ignore[arg-type]
