"""Processes say that they live; what is long silent and stopped is forgotten, and the counters are tidied."""

from dataclasses import dataclass

from queue_app.policy.windows import MINUTES_KEPT_MS
from queue_app.store import counters, database, processes

BEAT_MS = 5_000
FORGET_MS = 86_400_000
TIDY_ROWS = 2_000  # of a table at once: more would keep others waiting; the next process that starts goes on


@dataclass(frozen=True, slots=True)
class Work:
    """What a process says of its work: how many at once, attempts ended since its start, those of them that were no
    success, and how many it ended lately (thousandths of a job/s)."""

    host: str = ""
    concurrency: int = 1
    ended: int = 0
    failed: int = 0
    rate_mj: int = 0
    draining: bool = False


@database.retried
def beat(name: str, kind: str, queue: str = "", detail: str = "", work: Work | None = None) -> None:
    """Record a sign of life of a worker or redriver; `detail` is a short word for why it waits, or ''.

    A process that was told to take nothing new (`services.workers`) stays told: only `arrive` takes that away.
    """
    told = _columns(work)
    if not told.get("draining"):
        told.pop("draining", None)
    with database.write():
        processes.beat(name, kind, queue, database.now_ms(), detail, told)


@database.retried
def arrive(name: str, kind: str, queue: str = "", work: Work | None = None) -> None:
    """The first beat of a process; it also forgets those not seen for a day, and tidies the counters."""
    with database.write():
        now = database.now_ms()
        processes.forget(now - FORGET_MS)
        processes.beat(name, kind, queue, now, more={"started_at_ms": now, "draining": False, **_columns(work)})
    with database.write():
        counters.fold_slots(TIDY_ROWS)
        counters.forget_minutes(now - MINUTES_KEPT_MS, TIDY_ROWS)


@database.retried
def leave(name: str, work: Work | None = None) -> None:
    """Record that a process ended by itself, with what it did in all."""
    with database.write():
        processes.leave(name, database.now_ms(), _columns(work))


def _columns(work: Work | None) -> dict[str, str | int | bool]:
    if work is None:
        return {}
    return {
        "host": work.host,
        "concurrency": work.concurrency,
        "ended_n": work.ended,
        "failed_n": work.failed,
        "rate_mj": work.rate_mj,
        "draining": work.draining,
    }
