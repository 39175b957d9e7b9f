"""The turn of frozen items: the whole outcome, the rows to chain, the items, the jobs and the causes."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from django.db import InterfaceError, OperationalError

from queue_app.models import Approval, Job, Plan, PlanGroup, PlanItem, Queue
from queue_app.policy.queues import QueuePolicy
from queue_app.policy.terms import Terms
from queue_app.services import turns
from queue_app.services.turns import Outcome
from queue_app.store import items, plans, queues, restarts
from queue_app.store.chain import RedriveRow
from queue_app.store.items import Item
from tests.redrive import story
from tests.services.batch_steps import changed, gone, running
from tests.services.fates import aged, both, died_again, frozen_as, left, no_row, of_plan
from tests.services.told import World

pytestmark = pytest.mark.django_db
CAUSE, OTHER = ("permanent", "http_422"), ("permanent", "http_410")
BUDGET_MS, HORIZON_MS = 70_000, 50_000  # of the queue
STALE = {"beyond_horizon": 1}


@pytest.fixture
def w(world: World) -> World:
    """Three orders of one cause in a batch that runs, their queue with limits of its own; 9 ms have passed since."""
    Queue.objects.filter(pk="snacks").update(budget_ms=BUDGET_MS, redrive_horizon_ms=HORIZON_MS)
    running(3)(world)
    world.clock.advance(9)
    return world


def waiting(w: World) -> list[Item]:
    found = PlanItem.objects.filter(plan=w.plan, state="waiting").order_by("pos")
    return [Item(i.pos, i.job_id, i.token, i.reason, i.code, i.tries, w.plan.pk) for i in found]


def carry_out(w: World, some: Sequence[Item], limit: int = 9) -> Outcome:
    return turns.carry_out(w.plan, some, limit, w.clock.now)


def item_row(w: World, pos: int) -> dict[str, Any]:
    return PlanItem.objects.values("state", "why", "tries", "at_ms").get(plan=w.plan, pos=pos)


def causes(w: World) -> dict[str, tuple[int, int]]:
    """How many of each code were redriven and skipped."""
    found = PlanGroup.objects.filter(plan=w.plan).values_list("code", "redriven", "skipped")
    return {code: (redriven, skipped) for code, redriven, skipped in found}


def row(w: World, item: Item, **more: Any) -> RedriveRow:
    """What is chained of an order of the story."""
    job = Job.objects.get(pk=item.job_id)
    known: dict[str, Any] = {
        "job_id": item.job_id, "token": 1, "at_ms": w.clock.now, "note": "INC-1", "queue": "snacks",
        "reason": item.reason, "code": item.code, "old_attempts": 1, "old_max_attempts": 1,
        "old_deadline": job.created_at_ms + BUDGET_MS, "new_max_attempts": 1, "new_deadline": w.clock.now + BUDGET_MS,
        "requested_by": w.oda.pk, "approved_by": w.tom.pk, "batch": w.plan.pk, "solo": False,
    }  # fmt: skip
    return RedriveRow(**known | more)


# --- what is redriven -----------------------------------------------------------------------------------------------


def test_nothing_waits(w: World, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert carry_out(w, []) == Outcome()


@pytest.mark.parametrize(("limit", "n"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_as_many_are_redriven_as_may_be_in_their_order(w: World, limit: int, n: int) -> None:
    some = waiting(w)
    rows = [row(w, item) for item in some[:n]]
    done = carry_out(w, some, limit)
    assert done == Outcome(n, n, 0, rows, Counter({CAUSE: n} if n else {}), Counter(), Counter())
    assert (done.n_redriven, done.n_skipped) == (n, 0)
    stands = PlanItem.objects.filter(plan=w.plan).order_by("pos").values_list("state", "left_at_ms")
    assert list(stands) == [("redriven", w.clock.now)] * n + [("waiting", None)] * (3 - n)
    assert causes(w) == {"http_422": (n, 0)}
    found = Job.objects.filter(pk__in=[item.job_id for item in some[:n]])
    assert [
        (job.state, job.token, job.attempts, job.max_attempts, job.deadline, job.batch, job.changed_at_ms)
        for job in found
    ] == [("pending", 1, 0, 1, w.clock.now + BUDGET_MS, w.plan.pk, w.clock.now)] * n


@pytest.mark.parametrize(("tries", "place"), [(0, 3), (1, 1)])
def test_the_last_place_is_the_furthest_one_that_never_had_a_turn(w: World, tries: int, place: int) -> None:
    first, _, third = waiting(w)
    assert carry_out(w, [replace(third, tries=tries), first]).passed_pos == place


TERMS: dict[str, tuple[dict[str, Any], Callable[[World], dict[str, Any]]]] = {
    "a budget of its own": ({"budget_ms": 5_000}, lambda w: {"new_deadline": w.clock.now + 5_000}),
    "no time at all": ({"budget_ms": 0}, lambda w: {"new_deadline": w.clock.now}),
    "tries of its own": ({"max_attempts": 7}, lambda _w: {"new_max_attempts": 7}),
    "asked by a program": ({"requested_by": None}, lambda _w: {"requested_by": None}),
    "another note": ({"note": "INC-9"}, lambda _w: {"note": "INC-9"}),
}


@pytest.mark.parametrize(("columns", "differs"), TERMS.values(), ids=list(TERMS))
def test_the_terms_of_the_plan(w: World, columns: dict[str, Any], differs: Callable[[World], dict[str, Any]]) -> None:
    changed(w, **columns)
    (first, *_) = waiting(w)
    assert carry_out(w, [first]).rows == [row(w, first, **differs(w))]


def decided(decision: str) -> Any:
    return patch.object(plans, "decision_of", return_value=Approval(decision=decision, by_id=77, solo=True))


def test_who_decided_is_named(w: World) -> None:
    (first, *_) = waiting(w)
    with decided("approve") as asked:
        assert carry_out(w, [first]).rows == [row(w, first, approved_by=77, solo=True)]
    asked.assert_called_once_with(w.plan.pk, 1)


USUAL = QueuePolicy("snacks")


@pytest.mark.parametrize(("age_ms", "skips"), [(USUAL.redrive_horizon_ms, {}), (USUAL.redrive_horizon_ms + 1, STALE)])
def test_a_queue_that_is_declared_no_more_has_the_usual_limits(w: World, age_ms: int, skips: dict[str, int]) -> None:
    (first, *_) = waiting(w)
    aged(age_ms)(w, first)
    with patch.object(queues, "policy_of", return_value=None) as asked:
        done = carry_out(w, [first])
    asked.assert_called_once_with("snacks")
    assert done.skips == skips
    assert {told.new_deadline for told in done.rows} == (set() if skips else {w.clock.now + USUAL.budget_ms})


# --- what is skipped ------------------------------------------------------------------------------------------------


LEFT_OUT = of_plan(left_out='[["exhausted", ""], ["permanent", "http_422"]]')
REASONS = {
    "nothing": (frozen_as(), ""),
    "it is gone": (no_row, "gone"),
    "gone and left out": (both(LEFT_OUT, no_row), "gone"),
    "its cause was left out": (LEFT_OUT, "left_out"),
    "another cause was": (of_plan(left_out='[["exhausted", "http_422"], ["permanent", ""]]'), ""),
    "left out and not dead": (both(LEFT_OUT, left), "left_out"),
    "it is not dead": (left, "not_dead"),
    "not dead, and newer": (both(left, frozen_as(token=0)), "not_dead"),
    "it died again": (both(left, died_again), "newer_token"),
    "by the list it died again": (frozen_as(token=2), "newer_token"),
    "died again, held by nobody": (frozen_as(token=0, held_by=None), "newer_token"),
    "nobody holds it": (frozen_as(held_by=None), "held"),
    "another holds it": (frozen_as(held_by=999), "held"),
    "held and too old": (both(aged(HORIZON_MS + 1), frozen_as(held_by=999)), "held"),
    "beyond the horizon": (aged(HORIZON_MS + 1), "beyond_horizon"),
    "at the horizon": (aged(HORIZON_MS), ""),
    "dead for too long": (both(of_plan(max_dead_ms=4_000), aged(4_001)), "too_old"),
    "dead for just so long": (both(of_plan(max_dead_ms=4_000), aged(4_000)), ""),
    "beyond both": (both(of_plan(max_dead_ms=4_000), aged(HORIZON_MS + 1)), "beyond_horizon"),
    "dead for some time, without a limit": (aged(40_000), ""),
}  # fmt: skip


@pytest.mark.parametrize(("meddle", "why"), REASONS.values(), ids=list(REASONS))
def test_why_an_order_is_skipped(w: World, meddle: Callable[[World, Item], Item], why: str) -> None:
    _, item, _ = waiting(w)
    done = carry_out(w, [meddle(w, item)])
    skipped = bool(why)
    assert [told.job_id for told in done.rows] == ([] if skipped else [item.job_id])
    assert replace(done, rows=[]) == Outcome(
        1, 2, 0, [], Counter() if skipped else Counter({CAUSE: 1}), Counter({CAUSE: 1}) if skipped else Counter(),
        Counter({why: 1}) if skipped else Counter(),
    )  # fmt: skip
    assert (done.n_redriven, done.n_skipped) == (1 - skipped, int(skipped))
    stands = item_row(w, 2)
    assert (stands["state"], stands["why"], stands["tries"]) == ("skipped" if skipped else "redriven", why, 0)
    assert causes(w) == {"http_422": (1 - skipped, int(skipped))}
    assert Job.objects.filter(batch=w.plan.pk).count() == 1 - skipped


def test_without_a_limit_nobody_is_too_old(w: World) -> None:
    Queue.objects.filter(pk="snacks").update(redrive_horizon_ms=w.clock.now)
    found, busy = restarts.candidates(["o2"])
    ever = {"o2": replace(found["o2"], changed_at_ms=0)}
    with patch.object(restarts, "candidates", return_value=(ever, busy)) as asked:
        assert carry_out(w, [waiting(w)[1]]).n_redriven == 1
    asked.assert_called_once_with(["o2"])


def test_what_is_skipped_does_not_count_as_redriven(w: World) -> None:
    gone(w, [1])
    w.clock.advance(5)
    some = waiting(w)
    rows = [row(w, some[1])]
    assert carry_out(w, some, 1) == Outcome(
        2, 2, 0, rows, Counter({CAUSE: 1}), Counter({CAUSE: 1}), Counter(not_dead=1)
    )
    assert PlanItem.objects.get(plan=w.plan, pos=1).left_at_ms == w.clock.now
    assert item_row(w, 3)["state"] == "waiting"


def test_reasons_and_causes_are_counted_apart(world: World) -> None:
    story.die(2, code="http_410")
    story.die(3, first=3, code="http_422")
    world.plan = story.approved(world.oda, world.tom, Terms(10_000, canary=0))
    gone(world, [1, 3])
    some = waiting(world)
    some[3] = replace(some[3], held_by=None)
    done = carry_out(world, some)
    assert done.redriven == {OTHER: 1, CAUSE: 1}
    assert done.skipped == {OTHER: 1, CAUSE: 2}
    assert done.skips == {"not_dead": 2, "held": 1}
    assert (done.looked_at, done.passed_pos, done.n_redriven, done.n_skipped) == (5, 5, 2, 3)
    assert causes(world) == {"http_410": (1, 1), "http_422": (1, 2)}


# --- what fails -----------------------------------------------------------------------------------------------------


def raising(job_id: str, error: Exception) -> Any:
    """This order cannot be restarted, alone or among others."""
    real = turns.restart_batch

    def restart(found: Sequence[restarts.Candidate], *given: Any, **more: Any) -> Any:
        if job_id in {candidate.id for candidate in found}:
            raise error
        return real(found, *given, **more)

    return patch.object(turns, "restart_batch", restart)


def test_one_that_fails_does_not_hold_up_the_others(w: World) -> None:
    some = waiting(w)
    rows = [row(w, some[0]), row(w, some[2])]
    with raising(some[1].job_id, ZeroDivisionError()):
        done = carry_out(w, some)
    assert done == Outcome(3, 3, 1, rows, Counter({CAUSE: 2}))
    assert item_row(w, 2) == {"state": "waiting", "why": "", "tries": 1, "at_ms": w.clock.now + 1_000}
    assert causes(w) == {"http_422": (2, 0)}
    assert Job.objects.filter(state="pending", batch=w.plan.pk).count() == 2


@pytest.fixture(params=["error", "locked"])
def failing(w: World, request: pytest.FixtureRequest) -> Iterator[str]:
    """Why the first order fails."""
    first = waiting(w)[0]
    if request.param == "error":
        with raising(first.job_id, ZeroDivisionError()):
            yield "error"
        return
    real = restarts.candidates

    def candidates(ids: Sequence[str]) -> Any:
        found, busy = real([job_id for job_id in ids if job_id != first.job_id])
        return found, busy | ({first.job_id} & set(ids))

    with patch.object(restarts, "candidates", candidates):
        yield "locked"


@pytest.mark.parametrize(("tries", "again_ms"), [(0, 1_000), (1, 2_000)])
def test_it_is_tried_again_later_each_time(w: World, failing: str, tries: int, again_ms: int) -> None:
    first, second, _ = waiting(w)
    PlanItem.objects.filter(plan=w.plan, pos=1).update(tries=tries)
    rows = [row(w, second)]
    assert carry_out(w, [replace(first, tries=tries), second]) == Outcome(2, 2, 1, rows, Counter({CAUSE: 1}))
    assert item_row(w, 1) == {"state": "waiting", "why": "", "tries": tries + 1, "at_ms": w.clock.now + again_ms}
    assert causes(w) == {"http_422": (1, 0)}


def test_the_third_time_it_is_skipped(w: World, failing: str) -> None:
    first, second, _ = waiting(w)
    rows = [row(w, second)]
    PlanItem.objects.filter(plan=w.plan, pos=1).update(tries=2)
    done = carry_out(w, [replace(first, tries=2), second])
    assert done == Outcome(2, 2, 0, rows, Counter({CAUSE: 1}), Counter({CAUSE: 1}), Counter({failing: 1}))
    stands = item_row(w, 1)
    assert (stands["state"], stands["why"], stands["tries"]) == ("skipped", failing, 2)
    assert causes(w) == {"http_422": (1, 1)}


def test_two_that_are_given_up_at_once_are_counted_together(w: World) -> None:
    PlanItem.objects.filter(plan=w.plan).update(tries=2)
    with patch.object(turns, "restart_batch", return_value=None):
        done = carry_out(w, waiting(w)[:2])
    assert done == Outcome(2, 0, 0, [], Counter(), Counter({CAUSE: 2}), Counter(error=2))


@pytest.mark.parametrize(
    "short", [(turns, "restart_batch", None), (items, "set_redriven", 0)], ids=["no row", "no item"]
)
def test_what_did_not_move_goes_back_whole_and_is_tried_again(w: World, short: tuple[Any, str, Any]) -> None:
    some = waiting(w)[:2]
    with patch.object(short[0], short[1], return_value=short[2]):
        assert carry_out(w, some) == Outcome(2, 2, 2)
    assert [item_row(w, pos)["tries"] for pos in (1, 2, 3)] == [1, 1, 0]
    assert Job.objects.filter(state="dead", batch=None).count() == 3
    assert causes(w) == {"http_422": (0, 0)}


@pytest.mark.parametrize("error", [OperationalError("locked"), InterfaceError("closed")])
def test_the_databases_trouble_is_not_an_orders(w: World, error: Exception) -> None:
    some = waiting(w)
    with raising(some[1].job_id, error), pytest.raises(type(error)) as raised:
        carry_out(w, some)
    assert raised.value is error
    assert [item_row(w, pos)["tries"] for pos in (1, 2, 3)] == [0, 0, 0]


# --- mistakes of the program ----------------------------------------------------------------------------------------


def test_an_item_that_moves_under_its_plan_is_a_mistake_of_the_program(w: World) -> None:
    gone(w, [1, 2])
    with (
        patch.object(items, "set_skipped", return_value=1) as moved,
        pytest.raises(RuntimeError, match=r"^An item moved inside the transaction that holds its plan\.$"),
    ):
        carry_out(w, waiting(w))
    moved.assert_called_once_with(w.plan.pk, [1, 2], "not_dead", w.clock.now)


def test_without_an_approval_of_its_round_nothing_is_redriven(w: World) -> None:
    changed(w, round=2)
    with pytest.raises(RuntimeError, match=rf"^R-{w.plan.pk} runs without an approval of round 2\.$"):
        carry_out(w, waiting(w))
    with decided("reject"), pytest.raises(RuntimeError):
        carry_out(w, waiting(w))


@pytest.mark.parametrize(
    ("text", "causes_"),
    [("[]", frozenset()), ('[["permanent", "http_422"], ["exhausted", ""]]', frozenset({CAUSE, ("exhausted", "")}))],
)
def test_the_causes_that_an_approver_left_out(text: str, causes_: frozenset[tuple[str, str]]) -> None:
    assert turns.left_out(Plan(left_out=text)) == causes_
