"""The only reader of clocks. Tests replace these two functions; nothing else in the product asks for the time."""

import time


def now_ms() -> int:
    """Milliseconds since the epoch, UTC, by this machine's wall clock (on PostgreSQL the database's clock decides)."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds of a clock that never goes back: for time-outs and durations inside one process."""
    return time.monotonic_ns() // 1_000_000
