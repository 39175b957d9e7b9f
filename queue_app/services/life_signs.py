"""Processes say that they live; what is long silent and stopped is forgotten, and the counters are tidied."""

from queue_app.policy.windows import MINUTES_KEPT_MS
from queue_app.store import counters, database, processes

BEAT_MS = 5_000
FORGET_MS = 86_400_000
TIDY_ROWS = 2_000  # of a table at once: more would keep others waiting; the next process that starts goes on


def beat(name: str, kind: str, queue: str = "", detail: str = "") -> None:
    """Record a sign of life of a worker or redriver; `detail` is a short word for why it waits, or ''."""
    with database.write():
        processes.beat(name, kind, queue, database.now_ms(), detail)


def arrive(name: str, kind: str, queue: str = "") -> None:
    """The first beat of a process; it also forgets those not seen for a day, and tidies the counters."""
    with database.write():
        now = database.now_ms()
        processes.forget(now - FORGET_MS)
        processes.beat(name, kind, queue, now)
    with database.write():
        counters.fold_slots(TIDY_ROWS)
        counters.forget_minutes(now - MINUTES_KEPT_MS, TIDY_ROWS)


def leave(name: str) -> None:
    """Record that a process ended by itself."""
    with database.write():
        processes.leave(name, database.now_ms())
