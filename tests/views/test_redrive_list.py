"""The list of redrives: what waits for whom, what came of each, and how far back it goes."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import Plan
from queue_app.policy.queues import QueuePolicy
from queue_app.policy.selections import by_ids
from queue_app.services import batches, life_signs, plans
from queue_app.store import queues
from tests.conftest import Clock
from tests.redrive import story

pytestmark = pytest.mark.django_db
FAR = "9" * 19


def look(client: Client, user: User, query: str = "") -> HttpResponse:
    client.force_login(user)
    return client.get(f"{reverse('redrive_list')}?{query}")  # type: ignore[return-value]


def said(answer: HttpResponse) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode())).replace("&#x27;", "'")


def numbers(answer: HttpResponse, of: str = "lines") -> list[int]:
    return [line.id for line in answer.context[of]]


def one_each(user: User, n: int) -> list[Plan]:
    """`n` redrives of one order each."""
    return [story.ask(user, by_ids([job_id])) for job_id in story.die(n, prefix=f"x{Plan.objects.count()}-")]


def test_an_installation_without_redrives_says_so(client: Client, operator: User, clock: Clock) -> None:
    answer = look(client, operator)
    assert answer.status_code == 200
    assert "No redrive was asked for yet" in said(answer)


def test_a_lead_sees_first_what_waits_for_the_own_decision(
    client: Client, operator: User, team_lead: User, auditor: User, clock: Clock
) -> None:
    first, second = one_each(operator, 2)
    (own,) = one_each(team_lead, 1)
    plans.withdraw(operator, first.pk)
    answer = look(client, team_lead)
    assert numbers(answer, "waiting") == [second.pk]
    assert numbers(answer) == [own.pk, second.pk, first.pk]
    assert "1 redrive needs your decision" in said(answer)
    assert answer.content.decode().index("Waiting for you") < answer.content.decode().index("All other redrives")
    assert reverse("redrive_decide", args=[second.pk]) in answer.content.decode()
    for user in (operator, auditor):
        seen = look(client, user)
        assert "Waiting for you" not in said(seen)
        assert reverse("redrive_decide", args=[second.pk]) not in seen.content.decode()
    plans.withdraw(operator, second.pk)
    assert "Nothing waits for your decision." in said(look(client, team_lead))


def test_what_stopped_by_itself_waits_for_a_lead_and_what_a_person_paused_does_not(
    client: Client, operator: User, team_lead: User, clock: Clock
) -> None:
    story.die(2)
    plan = story.approved(operator, team_lead)
    batches.pause(operator, plan.pk)
    assert numbers(look(client, team_lead), "waiting") == []
    Plan.objects.filter(pk=plan.pk).update(state="halted", why="canary_deaths")
    answer = look(client, team_lead)
    assert numbers(answer, "waiting") == [plan.pk]
    assert "Too many orders of the trial died again" in said(answer)


def test_each_line_adds_up_and_tells_what_came_of_its_orders(
    client: Client, operator: User, team_lead: User, clock: Clock
) -> None:
    story.die(6)
    plan = story.approved(operator, team_lead)
    story.run(plan, clock)
    story.work("permanent", code="http_503", limit=2)
    answer = look(client, operator)
    (line,) = answer.context["lines"]
    assert line.planned == line.waiting + line.redriven + line.skipped == 6
    words = said(answer)
    assert "= 0 waiting + 6 redriven + 0 skipped" in words
    for part in (f"R-{plan.pk}", "INC-1 · snacks", "oda"):
        assert part in words
    assert "6 back for the same cause" in words


def test_a_decision_by_the_person_who_asked_is_marked(client: Client, operator: User, clock: Clock) -> None:
    (plan,) = one_each(operator, 1)
    assert "decided by the person who asked" not in said(look(client, operator))
    Plan.objects.filter(pk=plan.pk).update(solo=True)
    assert "decided by the person who asked" in said(look(client, operator))


def test_a_missing_redriver_is_said_with_when_it_was_last_seen(client: Client, operator: User, clock: Clock) -> None:
    assert "No redriver is alive: nothing is carried out until one runs." in said(look(client, operator))
    life_signs.beat("r1", "redriver")
    assert "No redriver is alive" not in said(look(client, operator))
    clock.advance(300_000)
    assert "The last one was seen 5 min ago." in said(look(client, operator))


def test_state_and_queue_choose_and_say_so(client: Client, operator: User, clock: Clock) -> None:
    first, second, third = one_each(operator, 3)
    plans.withdraw(operator, second.pk)
    queues.declare(QueuePolicy("drinks"))
    assert numbers(look(client, operator, "state=open")) == [third.pk, first.pk]
    assert numbers(look(client, operator, "state=closed")) == [second.pk]
    assert numbers(look(client, operator, "state=withdrawn&queue=snacks")) == [second.pk]
    nothing = look(client, operator, "queue=drinks")
    assert "No redrive matches" in said(nothing)
    assert "<option selected>drinks</option>" in nothing.content.decode()


def test_pages_go_back_without_losing_or_repeating_any(
    client: Client, operator: User, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queue_app.views.redrive_asking.PAGE_SIZE", 3)
    all_of_them = [plan.pk for plan in one_each(operator, 7)][::-1]
    seen, query = [], "state=open"
    while query:
        answer = look(client, operator, query)
        seen += numbers(answer)
        query = answer.context["older_query"]
        assert not query or "state=open" in query
    assert seen == all_of_them
    assert look(client, operator, "before=1").status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        *("state=x", "state=DROP TABLE", "state=open&state=closed", "queue=nowhere", "queue=%00", "queue=snacks'--"),
        *("before=-1", "before=x", "before=%D9%A1", "before=1_0", f"before={FAR}", "before=" + "9" * 5_000),
        *("before=1&before=2", "sort=id;drop", "page=2", "state=%3Cscript%3E", "x=1"),
    ],
)
def test_a_list_that_cannot_be_meant_gets_a_sentence_and_keeps_the_input(
    client: Client, operator: User, clock: Clock, query: str
) -> None:
    answer = look(client, operator, query)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert "<script>" not in answer.content.decode()
    assert 'name="state"' in answer.content.decode()


def test_it_costs_the_same_for_few_and_many_and_changes_nothing(
    client: Client, operator: User, team_lead: User, clock: Clock
) -> None:
    costs = []
    for n in (2, 20):
        one_each(operator, n)
        client.force_login(team_lead)
        with CaptureQueriesContext(connection) as asked:
            assert client.get(reverse("redrive_list")).status_code == 200
        assert not [q for q in asked if q["sql"].split(" ", 1)[0] in ("INSERT", "UPDATE", "DELETE")]
        costs.append(len(asked))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("name", ["redrive_list", "redrive_new"])
def test_every_role_reads_and_nobody_else(
    name: str, client: Client, operator: User, team_lead: User, auditor: User, clock: Clock
) -> None:
    assert client.get(reverse(name))["Location"].startswith(reverse("sign_in"))
    for user in (operator, team_lead, auditor):
        client.force_login(user)
        assert client.get(reverse(name)).status_code == 200
        assert client.head(reverse(name)).status_code == 200
    client.force_login(User.objects.create_user("nobody"))
    assert client.get(reverse(name)).status_code == 403
    client.force_login(operator)
    assert client.post(reverse("redrive_list")).status_code == 405
    for method in ("put", "delete", "patch", "options"):
        assert getattr(client, method)(reverse(name)).status_code == 405


def test_where_a_cause_appears_again_its_redrives_are_listed_with_what_came_of_its_orders(
    client: Client, operator: User, team_lead: User, clock: Clock
) -> None:
    story.die(4)
    story.die(6, first=50, code="http_422")
    first = story.approved(operator, team_lead)
    story.run(first, clock)
    story.work("permanent", code="http_503")
    second = story.ask(operator)
    client.force_login(operator)
    page = said(client.get(reverse("group", args=["snacks", "permanent", "http_503"])))
    assert "Redrives with orders of this cause" in page
    assert f"R-{first.pk}" in page
    assert "0 delivered, 4 back for the same cause, 0 for another, 0 not ended" in page
    assert page.index(f"R-{second.pk}") < page.index(f"R-{first.pk}")
    assert "waits for approval" in page
    untouched = said(client.get(reverse("group", args=["snacks", "permanent", "http_422"])))
    assert "= 0 waiting + 6 redriven + 0 skipped" in untouched
    assert "0 delivered, 0 back for the same cause, 6 for another, 0 not ended" in untouched


def test_one_click_decides_where_one_looks_and_nothing_is_said_twice(
    client: Client, operator: User, team_lead: User, clock: Clock
) -> None:
    (plan,) = one_each(operator, 1)
    page = look(client, team_lead).content.decode()
    assert 'data-label="Your step"' in page
    main = page[page.index("<main") :]
    assert f'href="{reverse("quarantine_list")}"' not in main
    assert main.count(f'href="{reverse("redrive", args=[plan.pk])}"') == 1
