"""Each step of freezing a list: the whole progress, the whole row, items, holds, and the event that tells of its end."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import call, patch

import pytest

from queue_app import clock as product_clock
from queue_app.models import AuditEvent, Hold, Plan, PlanItem, Queue
from queue_app.policy.filters import Filter
from queue_app.policy.plans import EXPIRY_MS
from queue_app.policy.selections import EMPTY_DIGEST, Selection, by_filter, by_ids, digest_on
from queue_app.reads import dead
from queue_app.services import freezing
from queue_app.services.freezing import Progress
from queue_app.store import holds, items, plans, queues
from tests.conftest import Clock
from tests.services.told import World, told
from tests.store.rows import AT, job

pytestmark = pytest.mark.django_db
SNACKS = by_filter(Filter(queue="snacks"))
HORIZON_MS = 50_000
HELD_MS = 30  # so long a chunk takes here; half of its size is then right


@pytest.fixture
def w(world: World) -> World:
    """Half a second after the list was asked for; nobody died yet."""
    Queue.objects.filter(pk="snacks").update(redrive_horizon_ms=HORIZON_MS)
    world.clock.now = AT + 500
    return world


def asked_for(w: World, selection: Selection = SNACKS, **columns: Any) -> None:
    """A plan whose list is to be made as of AT."""
    values: dict[str, Any] = {
        "queue": "snacks", "state": "freezing", "as_of_ms": AT, "note": "INC-1", "created_at_ms": AT,
        "changed_at_ms": AT, "expires_at_ms": AT + 9, "asked_rate_mj": 10, "rate_mj": 10, "digest": EMPTY_DIGEST,
    }  # fmt: skip
    w.plan = Plan.objects.create(selection=selection.canonical(), **values | columns)


def died(*ages_ms: int, first: int = 1, **columns: Any) -> None:
    """Orders o1, o2 ... with the tokens 11, 12 ..., dead since so long before the list was asked for."""
    for k, age_ms in enumerate(ages_ms, start=first):
        job(f"o{k}", k, state="dead", token=10 + k, changed_at_ms=AT - age_ms, **columns)


def elsewhere(plan_id: int, *job_ids: str, state: str = "proposed") -> None:
    """Another plan of this number, which holds these orders."""
    Plan.objects.create(
        pk=plan_id, queue="snacks", state=state, selection="{}", as_of_ms=0, note="x", created_at_ms=0,
        changed_at_ms=0, expires_at_ms=0, asked_rate_mj=10, rate_mj=10,
    )  # fmt: skip
    Hold.objects.bulk_create([Hold(job_id=job_id, plan_id=plan_id) for job_id in job_ids])


def step(w: World, size: int = 50, **more: Any) -> Progress | None:
    with patch.object(product_clock, "monotonic_ms", side_effect=[1_000, 1_000 + HELD_MS]):
        return freezing.step(w.plan.pk, size, **more)


def listed(w: World) -> list[tuple[int, str, int]]:
    return list(PlanItem.objects.filter(plan=w.plan).order_by("pos").values_list("pos", "job_id", "token"))


def frozen(*numbers: int, first: int = 1) -> list[tuple[int, str, int]]:
    """These orders at the next places of a list."""
    return [(pos, f"o{n}", 10 + n) for pos, n in enumerate(numbers, start=first)]


def check_row(w: World, **columns: Any) -> None:
    """The plan's whole row: these columns, and all others as they were."""
    after = Plan.objects.values().get(pk=w.plan.pk)
    assert after == {name: columns.get(name, getattr(w.plan, name)) for name in after}


def progress(looked_at: int, planned: int, *, done: bool, size: int = 50) -> Progress:
    return Progress(looked_at, planned, size, done, HELD_MS)


def proposed(w: World, **columns: Any) -> dict[str, Any]:
    now = w.clock.now
    return {"state": "proposed", "changed_at_ms": now, "expires_at_ms": now + EXPIRY_MS, **columns}


# --- chunk by chunk -------------------------------------------------------------------------------------------------


def test_a_list_of_one_chunk_is_proposed_and_told(w: World) -> None:
    died(30, 20, 20)
    asked_for(w)
    assert step(w, 400) == progress(3, 3, done=True, size=200)
    digest = digest_on(EMPTY_DIGEST, frozen(1, 2, 3))
    check_row(w, **proposed(w, looked_at=3, planned=3, frozen_after_ms=AT - 20, frozen_after_seq=3, digest=digest))
    assert listed(w) == frozen(1, 2, 3)
    assert set(Hold.objects.values_list("job_id", "plan_id")) == {(f"o{n}", w.plan.pk) for n in (1, 2, 3)}
    detail = {"planned": 3, "digest": digest, "beyond_horizon": 0, "too_old": 0, "held_elsewhere": 0}
    assert told(0) == [w.program("plan.frozen", **detail)]
    assert step(w) is None


def test_a_longer_one_goes_on_where_it_was(w: World) -> None:
    died(30, 20, 10)
    asked_for(w)
    assert step(w, 2) == progress(2, 2, done=False)
    digest = digest_on(EMPTY_DIGEST, frozen(1, 2))
    check_row(w, looked_at=2, planned=2, frozen_after_ms=AT - 20, frozen_after_seq=2, digest=digest)
    assert told(0) == []
    assert step(w, 1) == progress(3, 3, done=False)
    w.plan.refresh_from_db()
    assert step(w, 1) == progress(3, 3, done=True)  # nothing is left, so its place stays
    check_row(w, **proposed(w))
    assert w.plan.digest == digest_on(EMPTY_DIGEST, frozen(1, 2, 3))
    assert listed(w) == frozen(1, 2, 3)


def test_what_was_counted_before_is_added_to(w: World) -> None:
    died(50_001, 20, 10, 5)
    elsewhere(1_000_000, "o2")
    before = {"looked_at": 7, "planned": 4, "beyond_horizon": 2, "too_old": 1, "held_elsewhere": 3}
    asked_for(w, held_by='{"900000": 3}', digest="a" * 64, **before)
    assert step(w) == progress(11, 6, done=True)
    digest = digest_on("a" * 64, frozen(3, 4, first=5))
    counted = {"planned": 6, "beyond_horizon": 3, "too_old": 1, "held_elsewhere": 4}
    check_row(
        w, **proposed(w, looked_at=11, held_by='{"1000000": 1, "900000": 3}', digest=digest, **counted),
        frozen_after_ms=AT - 5, frozen_after_seq=4,
    )  # fmt: skip
    assert listed(w) == frozen(3, 4, first=5)
    assert told(0) == [w.program("plan.frozen", digest=digest, **counted)]


def test_whoever_finds_nothing_cancels_it_and_tells_why(w: World) -> None:
    died(0)
    asked_for(w)
    assert step(w) == progress(0, 0, done=True)
    check_row(w, state="cancelled", why="empty", changed_at_ms=w.clock.now, ended_at_ms=w.clock.now)
    detail = {"planned": 0, "digest": EMPTY_DIGEST, "beyond_horizon": 0, "too_old": 0, "held_elsewhere": 0}
    assert told(0) == [w.program("plan.empty", **detail)]


def test_so_does_whoever_finds_only_what_others_hold(w: World) -> None:
    died(50_001, 9)
    elsewhere(900_000, "o2")
    asked_for(w)
    assert step(w) == progress(2, 0, done=True)
    counted = {"beyond_horizon": 1, "held_elsewhere": 1}
    check_row(
        w, state="cancelled", why="empty", changed_at_ms=w.clock.now, ended_at_ms=w.clock.now, looked_at=2,
        held_by='{"900000": 1}', frozen_after_ms=AT - 9, frozen_after_seq=2, **counted,
    )  # fmt: skip
    assert told(0) == [w.program("plan.empty", planned=0, digest=EMPTY_DIGEST, too_old=0, **counted)]


def test_the_instant_may_be_given(w: World) -> None:
    died(5)
    asked_for(w)
    at_ms, w.clock.now = w.clock.now, AT + 9_000
    assert step(w, now_ms=at_ms) == progress(1, 1, done=True)
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.changed_at_ms, plan.expires_at_ms) == (at_ms, at_ms + EXPIRY_MS)
    assert [event.at_ms for event in told(0)] == [at_ms]


# --- what is left out -----------------------------------------------------------------------------------------------

AGES = (50_001, 50_000, 4_001, 4_000, 1)
LEFT_OUT = [
    ({}, (2, 3, 4, 5), 1, 0),
    ({"max_dead_ms": 4_000}, (4, 5), 1, 2),
    ({"max_dead_ms": 50_000}, (2, 3, 4, 5), 1, 0),
    ({"max_dead_ms": 60_000}, (2, 3, 4, 5), 1, 0),
    ({"max_dead_ms": 1}, (5,), 1, 3),
]


@pytest.mark.parametrize(("columns", "places", "beyond", "too_old"), LEFT_OUT)
def test_who_is_dead_for_too_long(w: World, columns: dict[str, Any], places: Any, beyond: int, too_old: int) -> None:
    died(*AGES)
    asked_for(w, **columns)
    assert step(w) == progress(5, len(places), done=True)
    assert listed(w) == frozen(*places)
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.looked_at, plan.beyond_horizon, plan.too_old, plan.held_elsewhere) == (5, beyond, too_old, 0)


def test_without_limits_nobody_is_too_old(w: World) -> None:
    died(AT, 1)
    asked_for(w)
    with patch.object(queues, "policy_of", return_value=None) as asked:
        assert step(w) == progress(2, 2, done=True)
    asked.assert_called_once_with("snacks")
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.beyond_horizon, plan.too_old) == (0, 0)


def test_who_is_not_dead_any_more_is_looked_at_only(w: World) -> None:
    died(50_002, 50_001, 20, 10, 5)
    asked_for(w)
    with patch.object(items, "still_dead", return_value={"o2", "o3", "o5"}) as asked:
        assert step(w) == progress(5, 2, done=True)
    asked.assert_called_once_with({"o1": 11, "o2": 12, "o3": 13, "o4": 14, "o5": 15})
    assert listed(w) == frozen(3, 5)
    assert Plan.objects.get(pk=w.plan.pk).beyond_horizon == 1


def test_who_was_redriven_before_is_counted(w: World) -> None:
    died(20, redriven=2)
    died(10, first=2, redriven=1)
    died(5, first=3)
    asked_for(w)
    step(w)
    (group,) = w.plan.groups.all()
    assert (group.planned, group.again, group.oldest_ms, group.newest_ms) == (3, 2, AT - 20, AT - 5)


# --- what others hold -----------------------------------------------------------------------------------------------


def test_what_others_hold_is_counted_by_plan(w: World) -> None:
    died(9, 8, 7, 6, 5)
    elsewhere(900_000, "o1", "o4")
    elsewhere(1_000_000, "o2")
    elsewhere(800_000, "o5", state="withdrawn")
    asked_for(w)
    assert step(w) == progress(5, 2, done=True)
    assert listed(w) == frozen(3, 5)
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.held_elsewhere, plan.held_by) == (3, '{"1000000": 1, "900000": 2}')


def test_what_it_holds_itself_is_not_elsewhere(w: World) -> None:
    died(9, 8)
    asked_for(w)
    Hold.objects.create(job_id="o1", plan=w.plan)
    assert step(w) == progress(2, 1, done=True)
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.held_elsewhere, plan.held_by) == (0, "{}")


CAPS: list[tuple[dict[str, Any], tuple[str, ...], int, list[list[int]], tuple[int, ...], bool, int]] = [
    ({"cap": 2}, (), 50, [[1, 2]], (1, 2), True, 0),
    ({"cap": 2}, (), 3, [[1, 2]], (1, 2), True, 0),
    ({"cap": 2}, ("o1",), 50, [[1, 2], [3]], (2, 3), True, 1),
    ({"cap": 2}, ("o1", "o3"), 50, [[1, 2], [3], [4]], (2, 4), True, 2),
    ({"cap": 3, "planned": 1}, (), 50, [[1, 2]], (1, 2), True, 0),
    ({"cap": 3}, (), 2, [[1, 2]], (1, 2), False, 0),
    ({"cap": 4}, (), 50, [[1, 2, 3, 4]], (1, 2, 3, 4), True, 0),
    ({"cap": 9}, (), 50, [[1, 2, 3, 4]], (1, 2, 3, 4), True, 0),
    ({}, ("o1",), 50, [[1, 2, 3, 4]], (2, 3, 4), True, 1),
    ({}, ("o1", "o2", "o3", "o4"), 4, [[1, 2, 3, 4]], (), False, 4),
]


@pytest.mark.parametrize(("columns", "held", "size", "taken", "places", "done", "others"), CAPS)
def test_the_cap_is_filled_with_the_oldest(
    w: World, columns: dict[str, Any], held: Sequence[str], size: int, taken: Any, places: Any, done: bool, others: int
) -> None:
    died(9, 8, 7, 6)
    elsewhere(900_000, *held)
    asked_for(w, **columns)
    first = w.plan.planned + 1
    with patch.object(holds, "take", wraps=holds.take) as take:
        found = step(w, size)
    assert found == progress(min(size, 4), first - 1 + len(places), done=done)
    assert listed(w) == frozen(*places, first=first)
    assert take.mock_calls == [call(w.plan.pk, [f"o{n}" for n in bite]) for bite in taken]
    assert Plan.objects.get(pk=w.plan.pk).held_elsewhere == others


# --- what is read ---------------------------------------------------------------------------------------------------


def test_orders_that_were_ticked(w: World) -> None:
    died(9, 8, 7, 6)
    asked_for(w, by_ids(["o4", "o1", "o3", "o9"]))
    assert step(w, 2) == progress(2, 2, done=False)
    check_row(
        w, looked_at=2, planned=2, frozen_after_ms=AT - 7, frozen_after_seq=3,
        digest=digest_on(EMPTY_DIGEST, frozen(1, 3)),
    )  # fmt: skip
    assert step(w, 1) == progress(3, 3, done=False)
    assert step(w, 1) == progress(3, 3, done=True)
    assert listed(w) == frozen(1, 3, 4)
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.frozen_after_ms, plan.frozen_after_seq) == (AT - 6, 4)


@pytest.mark.parametrize(("to", "done", "place"), [((AT - 3, 77), False, (AT - 3, 77)), (None, True, (AT - 8, 2))])
def test_a_search_that_was_cut_short_goes_on_where_it_stopped(w: World, to: Any, done: bool, place: Any) -> None:
    died(9, 8, 7)
    asked_for(w, frozen_after_ms=AT - 99, frozen_after_seq=6)
    some = dead.stretch(Filter(queue="snacks"), AT, None, 2).rows
    with patch.object(dead, "stretch", return_value=dead.Stretch(some, to)) as asked:
        assert step(w, 3) == progress(2, 2, done=done)
    asked.assert_called_once_with(Filter(queue="snacks"), AT, (AT - 99, 6), 3)
    plan = Plan.objects.get(pk=w.plan.pk)
    assert (plan.frozen_after_ms, plan.frozen_after_seq) == place


# --- what others do -------------------------------------------------------------------------------------------------


def test_a_redrive_that_is_none(clock: Clock) -> None:
    assert freezing.step(999_999) is None


SINCE: dict[str, dict[str, Any] | None] = {
    "another holds it": None,
    "it was cancelled": {"state": "cancelled"},
    "another took a chunk": {"frozen_after_ms": AT - 9},
    "within one instant": {"frozen_after_seq": 1},
}


@pytest.mark.parametrize("columns", SINCE.values(), ids=list(SINCE))
def test_what_changed_since_the_rows_were_read_ends_the_step(w: World, columns: dict[str, Any] | None) -> None:
    died(9)
    asked_for(w)
    seen, now = Plan.objects.get(pk=w.plan.pk), Plan.objects.get(pk=w.plan.pk)
    for name, value in (columns or {}).items():
        setattr(now, name, value)
    with patch.object(plans, "read", side_effect=[seen, None if columns is None else now]) as read:
        assert step(w) is None
    assert read.mock_calls == [call(w.plan.pk), call(w.plan.pk, lock=True, pass_over=True)]
    check_row(w)
    assert (listed(w), Hold.objects.count(), told(0)) == ([], 0, [])


@pytest.mark.parametrize(("move", "ages", "size"), [("change", (9, 8), 1), ("move", (9,), 50), ("move", (), 50)])
def test_a_plan_that_moves_under_the_step_is_a_mistake_of_the_program(
    w: World, move: str, ages: Sequence[int], size: int
) -> None:
    died(*ages)
    asked_for(w)
    with (
        patch.object(plans, move, return_value=False),
        pytest.raises(RuntimeError, match=r"^A plan moved inside the transaction that holds it\.$"),
    ):
        freezing.step(w.plan.pk, size)
    check_row(w)
    assert (listed(w), AuditEvent.objects.count()) == ([], 0)
