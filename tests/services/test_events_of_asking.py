"""Asking for a redrive: the whole receipt, the whole row, the whole events, and each refusal."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError

from queue_app.models import Plan
from queue_app.policy.errors import NotAllowed
from queue_app.policy.filters import Filter
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, NothingToRedrive
from queue_app.policy.selections import by_filter, by_ids, digest_on
from queue_app.policy.terms import Terms
from queue_app.services import plans
from queue_app.services.receipts import Receipt
from queue_app.store.chain import Event
from tests.engine.rows import declare
from tests.redrive import story
from tests.services.told import DEACTIVATED, WAYS, WORKERS, Case, Refused, World, by_way, check

pytestmark = pytest.mark.django_db


def now(w: World) -> int:
    return w.clock.now


TERMS = Terms(9_000, ((1_000, 60),), 2, 1, 300, 60_000, 86_400_000, 2, 3_600_000)
KEY = "k" * 16


def asks(who: str = "oda", selection: Any = story.SNACKS, **more: Any) -> Callable[[World], object]:
    more = {"note": "INC-1", "terms": TERMS} | more
    return lambda w: plans.ask(getattr(w, who), selection, **more, **w.how)


def asked(first: bool = True, note: str = "INC-1", at_ms: Callable[[World], int] = now, by: str = "oda") -> Any:
    return lambda _w: Receipt(Plan.objects.latest("pk").pk, "proposed", "ask", first, by, at_ms(_w), note)


def ask_events(selection: str, *, planned: int = 2, comment: str = "", queue: str = "snacks") -> Any:
    def events(w: World) -> list[Event]:
        w.plan = Plan.objects.latest("pk")
        kept = comment and hashlib.sha256(comment.encode()).hexdigest()
        return [
            w.event(w.oda, "plan.ask", f"plan:{w.plan.pk}", note="INC-1", queue=queue, selection=selection,
                    steps="[[1000, 60]]", comment=kept, rate_mj=9_000, cap=2, canary=1,
                    stop_permille=300, canary_wait_ms=60_000, max_dead_ms=86_400_000, max_attempts=2, budget_ms=3_600_000),
            w.program("plan.frozen", planned=planned, digest=w.plan.digest, beyond_horizon=0, too_old=0, held_elsewhere=0),
        ]  # fmt: skip

    return events


def dead(w: World) -> None:
    story.die(3)
    w.clock.advance(1_000)


def two_queues(w: World) -> None:
    dead(w)
    declare("drinks")
    story.queue.enqueue("d1", 1, queue="drinks")
    story.queue.finish("d1", story.queue.claim("w", queue="drinks")[0].token, "permanent")
    w.clock.advance(1_000)


def asked_before(w: World) -> None:
    dead(w)
    plans.ask(w.oda, story.SNACKS, TERMS, note="INC-0", form_key=KEY)
    w.more["at_ms"] = w.clock.now
    w.clock.advance(1_000)


DAMAGED = Refused(InvalidPlan, "This form is damaged: load the page again.", "form_key")
NOTHING = Refused(NothingToRedrive, "No order in quarantine is selected.", "selection")
SELECTED = story.SNACKS.canonical()
ASKINGS = {
    "a filter": Case(asks(comment="why"), asked(), ask_events(SELECTED, comment="why"), dead),
    "orders by id": Case(asks(selection=by_ids(["o1", "o3"])), asked(), ask_events("2 ids"), dead),
    "one of them is gone": Case(asks(selection=by_ids(["o1", "zz"])), asked(), ask_events("2 ids", planned=1), dead),
    "the same form": Case(asks(form_key=KEY, note="INC-9"), asked(False, "INC-0", lambda w: w.more["at_ms"]),
                          before=asked_before),
    "the same form with nothing left": Case(
        asks(selection=by_filter(Filter(queue="snacks", code="x")), form_key=KEY),
        asked(False, "INC-0", lambda w: w.more["at_ms"]), before=asked_before),
    "another's form": Case(asks("tom", form_key=KEY), lambda _w: DAMAGED, before=asked_before),
    "a short key": Case(asks(form_key="k" * 15), lambda _w: DAMAGED, before=dead),
    "a long key": Case(asks(form_key="k" * 65), lambda _w: DAMAGED, before=dead),
    "no text for a key": Case(asks(form_key=5), lambda _w: DAMAGED, before=dead),
    "an empty key": Case(asks(form_key=""), lambda _w: DAMAGED, before=dead),
    "the longest key": Case(asks(form_key="k" * 64), asked(), ask_events(SELECTED), dead),
    "two queues": Case(asks(selection=by_ids(["o1", "d1"])), lambda _w: Refused(
        InvalidPlan, "The ticked orders are of several queues, and a redrive is of one.", "ids"), before=two_queues),
    "no queue": Case(asks(selection=by_filter(Filter(queue="nope"))), lambda _w: Refused(
        InvalidPlan, "No queue nope is declared.", "queue"), before=dead),
    "nothing by filter": Case(asks(selection=by_filter(Filter(queue="snacks", code="x"))), lambda _w: NOTHING, before=dead),
    "nothing by id": Case(asks(selection=by_ids(["zz"])), lambda _w: NOTHING, before=dead),
    "an auditor": Case(asks("ada"), lambda _w: Refused(NotAllowed, WORKERS),
                       lambda w: w.refused(w.ada, "plan", "plan:new", WORKERS), dead),
    "somebody gone": Case(lambda w: plans.ask(w.gone(), story.SNACKS, TERMS, note="INC-1", **w.how),
                          lambda _w: Refused(NotAllowed, DEACTIVATED),
                          lambda w: w.refused(w.tom, "plan", "plan:new", DEACTIVATED), dead),
    "whether one may": Case(lambda w: plans.may_ask(w.oda, **w.how), lambda _w: None),
    "whether an auditor may": Case(lambda w: plans.may_ask(w.ada, **w.how), lambda _w: Refused(NotAllowed, WORKERS),
                                   lambda w: w.refused(w.ada, "plan", "plan:new", WORKERS)),
    "whether somebody gone may": Case(lambda w: plans.may_ask(w.gone(), **w.how),
                                      lambda _w: Refused(NotAllowed, DEACTIVATED),
                                      lambda w: w.refused(w.tom, "plan", "plan:new", DEACTIVATED)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=["console", "cli"])
@pytest.mark.parametrize("case", ASKINGS.values(), ids=list(ASKINGS))
def test_asking(world: World, way: dict[str, str], case: Case) -> None:
    check(case, by_way(world, way))


def test_what_is_kept_of_an_asking(world: World) -> None:
    dead(world)
    plans.ask(world.oda, story.SNACKS, TERMS, note="INC-1", comment="why", form_key=KEY)
    row = Plan.objects.values().get()
    at_ms = world.clock.now
    assert row == {
        **{column.attname: column.get_default() for column in Plan._meta.concrete_fields},
        "id": row["id"], "queue": "snacks", "state": "proposed", "selection": SELECTED, "as_of_ms": at_ms + 1,
        "note": "INC-1", "comment": "why", "requested_by_id": world.oda.pk, "requested_name": "oda", "form_key": KEY,
        "created_at_ms": at_ms, "changed_at_ms": at_ms, "expires_at_ms": at_ms + EXPIRY_MS, "asked_rate_mj": 9_000,
        "rate_mj": 9_000, "steps": "[[1000, 60]]", "cap": 2, "canary": 1, "canary_wait_ms": 60_000, "stop_permille": 300,
        "max_dead_ms": 86_400_000, "max_attempts": 2, "budget_ms": 3_600_000, "expected": 2, "looked_at": 3,
        "planned": 2, "frozen_after_ms": row["frozen_after_ms"], "frozen_after_seq": row["frozen_after_seq"],
        "digest": digest_on("0" * 64, [(1, "o1", 1), (2, "o2", 1)]),
    }  # fmt: skip


SMALL = Terms(9_000)


@pytest.mark.parametrize(
    ("room", "state", "looked_at"), [(8, "proposed", 7), (7, "proposed", 7), (6, "freezing", 0), (4, "freezing", 0)]
)
def test_a_list_is_made_at_once_when_it_is_small_enough(
    world: World, monkeypatch: pytest.MonkeyPatch, room: int, state: str, looked_at: int
) -> None:
    """In chunks of a quarter of what is made while the person waits."""
    monkeypatch.setattr(plans, "IN_REQUEST", room)
    sizes: list[int] = []
    step = plans.freezing.step

    def counted(pk: int, size: int, **more: Any) -> Any:
        sizes.append(size)
        return step(pk, size, **more)

    monkeypatch.setattr(plans.freezing, "step", counted)
    story.die(7)
    world.clock.advance(1_000)
    receipt = plans.ask(world.oda, story.SNACKS, SMALL, note="INC-1")
    plan = Plan.objects.get()
    assert (receipt.state, plan.state, plan.expected, plan.looked_at) == (state, state, 7, looked_at)
    assert sizes[:1] == ([room // 4] if state == "proposed" else [])


def test_a_cap_makes_a_large_selection_a_small_list(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "IN_REQUEST", 4)
    story.die(7)
    world.clock.advance(1_000)
    receipt = plans.ask(world.oda, story.SNACKS, Terms(9_000, cap=2, canary=0), note="INC-1")
    assert (receipt.state, Plan.objects.get().expected, Plan.objects.get().planned) == ("proposed", 2, 2)


def test_a_selection_that_is_too_large_to_count_is_left_to_the_redriver(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.die(3)
    world.clock.advance(1_000)
    for counted, expected in ((2, 2_001), (2_000, 2_001), (2_001, 2_001), (5_000, 5_000)):
        monkeypatch.setattr(plans.dead, "count", lambda *_any, n=counted: plans.dead.Count(n, exact=False))
        receipt = plans.ask(world.oda, story.SNACKS, SMALL, note="INC-1")
        assert (receipt.state, Plan.objects.get(pk=receipt.plan).expected) == ("freezing", expected)


def test_what_dies_in_the_instant_of_asking_belongs_and_what_dies_later_does_not(world: World) -> None:
    ids = story.die(2)
    now_ms = world.clock.now
    for selection in (story.SNACKS, by_ids(ids)):
        early = Case(lambda w, s=selection: plans.ask(w.oda, s, SMALL, note="INC-1", now_ms=now_ms - 1),
                     lambda _w: NOTHING)  # fmt: skip
        check(early, world)
    receipt = plans.ask(world.oda, story.SNACKS, SMALL, note="INC-1", now_ms=now_ms)
    world.plan = Plan.objects.get()
    assert (receipt.at_ms, world.plan.as_of_ms, world.plan.planned) == (now_ms, now_ms + 1, 2)


def test_the_same_form_sent_twice_at_once_makes_one_redrive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second finds no plan yet, writes, is refused by the database, and gives the first's receipt."""
    asked_before(world)
    known, first = plans._known, True

    def late(form_key: str | None, actor: Any) -> Receipt | None:
        nonlocal first
        seen, first = (None if first else known(form_key, actor)), False
        return seen

    monkeypatch.setattr(plans, "_known", late)
    check(Case(asks(form_key=KEY), asked(False, "INC-0", lambda w: w.more["at_ms"])), world)
    monkeypatch.setattr(plans, "_known", lambda *_any: None)
    with pytest.raises(IntegrityError):
        asks(form_key=KEY)(world)
    assert Plan.objects.count() == 1
