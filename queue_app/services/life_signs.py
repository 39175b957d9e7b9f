"""Processes say that they live; what is long silent and stopped is forgotten."""

from queue_app.store import database, processes

BEAT_MS = 5_000
FORGET_MS = 86_400_000


def beat(name: str, kind: str, queue: str = "", detail: str = "") -> None:
    """Record a sign of life of a worker or redriver; `detail` is a short word for why it waits, or ''."""
    with database.write():
        processes.beat(name, kind, queue, database.now_ms(), detail)


def arrive(name: str, kind: str, queue: str = "") -> None:
    """The first beat of a process; it also forgets those not seen for a day."""
    with database.write():
        now = database.now_ms()
        processes.forget(now - FORGET_MS)
        processes.beat(name, kind, queue, now)


def leave(name: str) -> None:
    """Record that a process ended by itself."""
    with database.write():
        processes.leave(name, database.now_ms())
