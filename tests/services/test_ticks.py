"""Every step of a batch: the whole tick, the whole row, the whole event."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction

from queue_app.models import Plan
from queue_app.policy.plans import EXPIRY_MS
from queue_app.policy.selections import by_ids
from queue_app.policy.terms import Terms
from queue_app.services import batches, ticks, turns
from queue_app.services.ticks import Tick
from queue_app.store import plans
from tests.redrive import story
from tests.services.batch_steps import (
    JOB,
    TEN,
    TWO,
    Before,
    Case,
    approved,
    at_work,
    changed,
    check,
    check_row,
    ends,
    filled,
    items,
    now,
    of_trial,
    running,
    skipping,
    then,
    tick,
    told_until,
)
from tests.services.told import World, told

pytestmark = pytest.mark.django_db
HUNDRED = Terms(100_000, canary=0)

# --- the pace -------------------------------------------------------------------------------------------------------

FIRST = {"redriven": 1, "next_pos": 2}
PACES = {
    "its first order at once": Case(running(3), tick(redriven=1, due=100), {**FIRST, "level_uj": 0}, [at_work(1)]),
    "what has filled since counts": Case(
        running(3, wait=20), tick(redriven=1, due=80), {**FIRST, **filled(200_000, 20)}, [at_work(1)]
    ),
    "to the full bucket": Case(
        running(5, wait=250), tick(redriven=3, due=50),
        {"redriven": 3, "next_pos": 4, **filled(500_000, 250)}, [at_work(3)],
    ),
    "and no further": Case(
        running(5, wait=3_600_000), tick(redriven=3, due=50),
        {"redriven": 3, "next_pos": 4, **filled(500_000, 350)}, [at_work(3)],
    ),
    "at most a bite": Case(
        running(5, wait=250), tick(redriven=2, due=1),
        {"redriven": 2, "next_pos": 3, **filled(1_500_000, 250)}, [at_work(2)], (("bite", 2),),
    ),
    "without a limit a whole bite": Case(
        running(5, level_uj=0, ran_ms=5), tick(redriven=4, due=100),
        {"redriven": 4, "next_pos": 5}, [at_work(4)], (("bite", 4), ("unlimited", True)),
    ),
    "too early": Case(running(3, level_uj=0, wait=40), tick(due=60), {}),
    "a moment too early": Case(running(3, level_uj=0, wait=99), tick(due=1), {}),
    "just in time": Case(
        running(3, level_uj=0, wait=100), tick(redriven=1, due=100), {**FIRST, **filled(0, 100)}, [at_work(1)]
    ),
    "a quick one waits for what a tick grants": Case(running(9, HUNDRED, wait=10), tick(due=30), {}),
    "to the last moment": Case(running(9, HUNDRED, wait=39), tick(due=1), {}),
    "and then starts all of it": Case(
        running(9, HUNDRED, wait=40), tick(redriven=5, due=50),
        {"redriven": 5, "next_pos": 6, **filled(0, 40)}, [at_work(5)],
    ),
    "unless there is no limit": Case(
        running(9, HUNDRED, wait=10), tick(redriven=3, due=50),
        {"redriven": 3, "next_pos": 4, **filled(0, 10)}, [at_work(3)], (("bite", 3), ("unlimited", True)),
    ),
    "a clock that was set back is noted": Case(
        running(3, wait=-5_000, level_uj=JOB - 1), tick(due=1), {"level_at_ms": now}
    ),
    "and blocks nothing": Case(
        running(3, wait=-5_000), tick(redriven=1, due=100), {**FIRST, "level_uj": 0, "level_at_ms": now}, [at_work(1)]
    ),
    "the steps before the full rate": Case(
        running(3, Terms(100_000, steps=((10_000, 2),), canary=0), wait=20, ran_ms=1_999), tick(redriven=1, due=80),
        {**FIRST, **filled(200_000, 2_019)}, [at_work(1)],
    ),
    "count running time alone": Case(
        running(3, Terms(100_000, steps=((10_000, 2),), canary=0), wait=20, ran_ms=2_000), tick(due=20), {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PACES.values(), ids=list(PACES))
def test_the_pace(world: World, case: Case) -> None:
    check(case, world)


# --- the orders -----------------------------------------------------------------------------------------------------


def ended(**columns: Any) -> dict[str, Any]:
    return {"state": "ended", "changed_at_ms": now, "ended_at_ms": now, **columns}


END = {"planned": 2, "redriven": 2, "skipped": 0, "skips": "{}"}
FULL = running(60, Terms(1_000_000, canary=0), wait=100)  # 101 orders in the bucket
ONE_GONE = {"skipped": 1, "skips": '{"not_dead": 1}'}
MANY_GONE = {"skipped": 32, "skips": '{"not_dead": 32}', "next_pos": 33}
FAILED_ONCE = {"tries": 1, "at_ms": 0}


def later(ms: int) -> Before:
    """One order is left, which failed before and waits so long."""
    return then(running(1), lambda w: items(w, [1], tries=1, at_ms=w.clock.now + ms))


ORDERS = {
    "the last one ends it": Case(
        running(2, wait=100), tick("ended", 2), ended(redriven=2, next_pos=3, **filled(0, 100)),
        [at_work(2), ("batch.end", END)],
    ),
    "what left is skipped beside it": Case(
        skipping(running(3), [1]), tick(redriven=1, skipped=1, due=100),
        {**ONE_GONE, "redriven": 1, "next_pos": 3, "level_uj": 0}, [at_work(1, 1)],
    ),
    "and added to what was skipped": Case(
        skipping(running(9, skipped=4, skips='{"too_old": 1, "not_dead": 3}', redriven=2), [1]),
        tick(redriven=1, skipped=1, due=100),
        {"redriven": 3, "skipped": 5, "skips": '{"not_dead": 4, "too_old": 1}', "next_pos": 3, "level_uj": 0},
        [at_work(1, 1)],
    ),
    "by a skipped one it ends, too": Case(
        skipping(running(2), [1, 2]), tick("ended", 0, 2),
        ended(skipped=2, skips='{"not_dead": 2}', next_pos=3),
        [at_work(0, 2), ("batch.end", END | {"redriven": 0, "skipped": 2, "skips": '{"not_dead": 2}'})],
    ),
    "a row of skipped ones is passed at once": Case(
        skipping(running(40), range(1, 41)), tick(skipped=32, due=1), MANY_GONE, [at_work(0, 32)],
    ),
    "or a bite of it": Case(
        skipping(running(40), range(1, 41)), tick(skipped=5, due=1),
        {"skipped": 5, "skips": '{"not_dead": 5}', "next_pos": 6}, [at_work(0, 5)], (("bite", 5),),
    ),
    "or as many as there are orders in the bucket": Case(
        skipping(FULL, range(1, 61)), tick(skipped=50, due=1),
        {"skipped": 50, "skips": '{"not_dead": 50}', "next_pos": 51, **filled(101 * JOB, 100)},
        [at_work(0, 50)], (("bite", 50),),
    ),
    "beyond a look as many as there are in the bucket": Case(
        skipping(running(60, Terms(1_000_000, canary=0), wait=49), range(1, 61)), tick(skipped=50, due=1),
        {"skipped": 50, "skips": '{"not_dead": 50}', "next_pos": 51, **filled(50 * JOB, 49)}, [at_work(0, 50)],
    ),
    "what failed before comes first": Case(
        then(running(3, wait=100, next_pos=3), lambda w: items(w, [1], **FAILED_ONCE)), tick(redriven=2, due=100),
        {"redriven": 2, "next_pos": 4, **filled(0, 100)}, [at_work(2)],
    ),
    "within the bite": Case(
        then(skipping(running(5, next_pos=3), [1, 3, 4]), lambda w: items(w, [1], **FAILED_ONCE)),
        tick(skipped=2, due=1), {"skipped": 2, "skips": '{"not_dead": 2}', "next_pos": 4}, [at_work(0, 2)],
        (("bite", 2),),
    ),
    "and alone leaves the place where it is": Case(
        then(running(4, next_pos=3), lambda w: items(w, [1], **FAILED_ONCE)), tick(redriven=1, due=100),
        {"redriven": 1, "level_uj": 0}, [at_work(1)], (("bite", 1),),
    ),
    "one that waits is waited for": Case(later(400), tick(due=400), {}),
    "for a second at most": Case(later(5_000), tick(due=1_000), {}),
    "for a moment at least": Case(later(1), tick(due=1), {}),
    "while its bucket fills": Case(
        then(running(1, wait=20), lambda w: items(w, [1], tries=1, at_ms=w.clock.now + 400)), tick(due=400),
        filled(1_200_000, 20),
    ),
    "with nothing to look at it looks again after a tick": Case(running(2, next_pos=9), tick(due=50), {}),
    "a batch that does not run": Case(approved(1), tick("approved"), {}),
    "one that is paused": Case(then(running(1), lambda w: batches.pause(w.oda, w.plan.pk)), tick("paused"), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", ORDERS.values(), ids=list(ORDERS))
def test_the_orders(world: World, case: Case) -> None:
    check(case, world)


def test_an_order_that_fails_is_told_and_the_next_tick_comes_at_once(world: World) -> None:
    with patch.object(turns, "restart_batch", side_effect=ZeroDivisionError):
        check(Case(running(2), tick(failed=1, due=1), {"next_pos": 2}, [at_work(failed=1)]), world)


# --- the beginning --------------------------------------------------------------------------------------------------


def resumed_later(w: World) -> None:
    """It ran, was paused and resumed while another batch of its queue ran, which has been stopped since."""
    ids = story.die(3, code="http_422")
    w.plan = story.approved(w.oda, w.tom, TEN, by_ids(ids[:2]))
    other = story.approved(w.oda, w.tom, TEN, by_ids(ids[2:]))
    assert ticks.begin(w.plan.pk)
    w.clock.advance(1_000)
    batches.pause(w.oda, w.plan.pk)
    assert ticks.begin(other.pk)
    batches.resume(w.oda, w.plan.pk)
    batches.stop(w.oda, other.pk)
    w.clock.advance(1_000)
    changed(w, level_uj=700_000)


def second_in_turn(w: World) -> None:
    ids = story.die(3, code="http_422")
    story.approved(w.oda, w.tom, TEN, by_ids(ids[:2]))
    w.clock.advance(1)
    w.plan = story.approved(w.oda, w.tom, TEN, by_ids(ids[2:]))


def beside_another(w: World) -> None:
    second_in_turn(w)
    assert ticks.begin(Plan.objects.exclude(pk=w.plan.pk).get().pk)


def old(ms: int) -> Before:
    return then(approved(1), lambda w: w.clock.advance(EXPIRY_MS - ms))


@dataclass(frozen=True)
class Begin:
    """Of a batch that is to begin; `first`: None when it does not."""

    before: Before
    first: bool | None
    columns: dict[str, Any]
    at: int | None = None


BEGUN = {"state": "running", "changed_at_ms": now, "level_uj": JOB, "level_at_ms": now, "started_at_ms": now}
AGAIN = {"state": "running", "changed_at_ms": now, "level_at_ms": now}  # its level and its start stay
BEGINS = {
    "the first time": Begin(approved(1, Terms(10_000, canary=2), level_uj=5, level_at_ms=5), True, BEGUN),
    "and once more": Begin(resumed_later, False, AGAIN),
    "at an instant that was given": Begin(
        then(approved(1), lambda w: w.clock.advance(-90)), True,
        {name: value if name in ("state", "level_uj") else (lambda w: w.clock.now + 90) for name, value in BEGUN.items()},
        90,
    ),
    "in its last moment": Begin(old(1), True, BEGUN),
    "not when its time is over": Begin(old(0), None, {}),
    "not out of its turn": Begin(second_in_turn, None, {}),
    "not beside another": Begin(beside_another, None, {}),
    "not twice": Begin(running(1), None, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", BEGINS.values(), ids=list(BEGINS))
def test_a_batch_begins(world: World, case: Begin) -> None:
    case.before(world)
    changed(world)
    seq = told_until()
    given = {} if case.at is None else {"now_ms": world.clock.now + case.at}
    assert ticks.begin(world.plan.pk, **given) is (case.first is not None)
    check_row(world, case.columns)
    event = world.program("batch.begin", round=1, rate_mj=10_000, first=case.first)
    event = replace(event, at_ms=world.clock.now + (case.at or 0))
    assert told(seq) == ([] if case.first is None else [event])


def test_two_redrivers_that_begin_two_batches_at_once(world: World) -> None:
    beside_another(world)
    with patch.object(plans, "another_runs", return_value=False):  # as the other had not committed yet
        assert ticks.begin(world.plan.pk) is False
    check_row(world, {})


def test_what_moved_since_it_was_read_does_not_begin(world: World) -> None:
    approved(1)(world)
    Plan.objects.filter(pk=world.plan.pk).update(state="stopped")
    seq = told_until()
    with transaction.atomic():
        assert ticks.begin_now(world.plan, world.clock.now) is False
    assert told(seq) == []
    check_row(world, {"state": "stopped"})


# --- what others do -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [ticks.begin, ticks.tick])
def test_a_plan_that_another_holds_is_passed_over(world: World, call: Callable[[int], object]) -> None:
    running(1)(world)
    with patch.object(plans, "read", return_value=None) as read:
        done = call(world.plan.pk)
    read.assert_called_once_with(world.plan.pk, lock=True, pass_over=True)
    assert (replace(done, held_ms=0) if isinstance(done, Tick) else done) in (False, Tick("busy", due_ms=50))


def test_a_tick_is_of_the_instant_that_is_given(world: World) -> None:
    running(2)(world)
    seq, at_ms = told_until(), world.clock.now + 50
    assert ticks.tick(world.plan.pk, now_ms=at_ms).due_ms == 50
    check_row(world, {**FIRST, "level_uj": 500_000, "level_at_ms": at_ms, "ran_ms": 50})
    assert told(seq) == [replace(world.program(*at_work(1)[:1], **at_work(1)[1]), at_ms=at_ms)]


@pytest.mark.parametrize("before", [running(2), of_trial(5, TWO, ends("ok", "ok"))])
def test_a_batch_that_moves_under_the_tick_is_a_mistake_of_the_program(world: World, before: Before) -> None:
    before(world)
    with (
        patch.object(plans, "change", return_value=False),
        pytest.raises(RuntimeError, match=r"^A batch moved inside the transaction that holds it\.$"),
    ):
        ticks.tick(world.plan.pk)
    check_row(world, {})
