"""What stands before a step of a batch, and how all that follows of it is compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from queue_app import clock as product_clock
from queue_app.models import AuditEvent, Plan, PlanItem
from queue_app.policy.terms import Terms
from queue_app.services import queue, ticks
from queue_app.services.ticks import Tick
from queue_app.store import restarts
from tests.redrive import story
from tests.services.told import World, told

HELD_MS = 7
TEN = Terms(10_000, canary=0)  # a second: the bucket holds 3.5 orders, and 350 ms fill it
TWO = Terms(10_000, canary=2, canary_wait_ms=60_000, stop_permille=600)
JOB = 1_000_000
Before = Callable[[World], None]


def approved(n: int, terms: Terms = TEN, **columns: Any) -> Before:
    """`n` orders of one cause died, and their redrive was approved; then these columns."""

    def before(w: World) -> None:
        story.die(n, code="http_422")
        w.plan = story.approved(w.oda, w.tom, terms)
        changed(w, **columns)

    return before


def running(n: int, terms: Terms = TEN, wait: int = 0, **columns: Any) -> Before:
    """And it began so long ago, with room for one order in its bucket."""

    def before(w: World) -> None:
        approved(n, terms)(w)
        assert ticks.begin(w.plan.pk)
        w.clock.advance(wait)
        changed(w, **columns)

    return before


def changed(w: World, **columns: Any) -> None:
    if columns:
        Plan.objects.filter(pk=w.plan.pk).update(**columns)
    w.plan.refresh_from_db()


def items(w: World, positions: Sequence[int], **columns: Any) -> None:
    PlanItem.objects.filter(plan=w.plan, pos__in=positions).update(**columns)


def gone(w: World, positions: Sequence[int]) -> None:
    """These orders left the quarantine some other way."""
    found = PlanItem.objects.filter(plan=w.plan, pos__in=positions)
    for job_id, token in found.values_list("job_id", "token"):
        candidates, _ = restarts.candidates([job_id])
        assert token == candidates[job_id].token
        restarts.restart_all([candidates[job_id]], max_attempts=1, deadline=w.clock.now, batch=None, now_ms=w.clock.now)


def then(first: Before, *more: Callable[[World], object]) -> Before:
    def before(w: World) -> None:
        first(w)
        for step in more:
            step(w)
        w.plan.refresh_from_db()

    return before


def now(w: World) -> int:
    return w.clock.now


@dataclass(frozen=True)
class Case:
    """What stands before a step, how it is taken, and all that follows of it; `state` is of the tick."""

    before: Before
    tick: Tick
    columns: dict[str, Any]
    events: Sequence[tuple[str, dict[str, Any]]] = ()
    how: tuple[tuple[str, Any], ...] = ()


def check(case: Case, w: World) -> None:
    case.before(w)
    seq = told_until()
    with patch.object(product_clock, "monotonic_ms", side_effect=[1_000, 1_000 + HELD_MS]):
        done = ticks.tick(w.plan.pk, **dict(case.how))
    assert done == case.tick
    check_row(w, case.columns)
    wanted = [w.program(action, **detail) for action, detail in case.events]
    assert told(seq) == wanted


def told_until() -> int:
    return AuditEvent.objects.latest("seq").seq


def check_row(w: World, columns: dict[str, Any]) -> None:
    """The plan's whole row: these columns (what makes one is asked now), and all others as they were before."""
    found = {name: value(w) if callable(value) else value for name, value in columns.items()}
    after = Plan.objects.values().get(pk=w.plan.pk)
    assert after == {name: found.get(name, getattr(w.plan, name)) for name in after}


def tick(state: str = "running", redriven: int = 0, skipped: int = 0, failed: int = 0, due: int | None = None) -> Tick:
    return Tick(state, redriven, skipped, failed, due, HELD_MS)


def at_work(redriven: int = 0, skipped: int = 0, failed: int = 0, *, trial: bool = False) -> tuple[str, dict[str, Any]]:
    detail = {"round": 1, "redriven": redriven, "skipped": skipped, "failed": failed, "trial": trial}
    return "batch.tick", detail


def filled(level_uj: int, ran_ms: int) -> dict[str, Any]:
    """The bucket as of now."""
    return {"level_uj": level_uj, "level_at_ms": now, "ran_ms": ran_ms}


def skipping(before: Before, positions: Sequence[int]) -> Before:
    return then(before, lambda w: gone(w, positions))


def step(w: World) -> None:
    ticks.tick(w.plan.pk)


def wait(ms: int) -> Callable[[World], object]:
    return lambda w: w.clock.advance(ms)


def tried(w: World) -> None:
    """The two orders of the trial were started, and the redriver has seen that they were all."""
    for _ in range(3):
        step(w)
        w.clock.advance(100)


def ends(*outcomes: str) -> Callable[[World], None]:
    def end(_w: World) -> None:
        for outcome in outcomes:
            (lease,) = queue.claim("w", limit=1)
            queue.finish_many([queue.Result(lease.id, lease.token, outcome, "" if outcome == "ok" else "http_422")])

    return end


def of_trial(n: int = 5, terms: Terms = TWO, *more: Callable[[World], object], **columns: Any) -> Before:
    return then(running(n, terms), tried, *more, lambda w: changed(w, **columns))
