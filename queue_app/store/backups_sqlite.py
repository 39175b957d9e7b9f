"""SQLite's own backup, in two ways one after the other.

Small steps let writers go on, but whoever commits between two of them makes SQLite begin anew: under steady work they never
end. So after a few such restarts the whole is copied under one read lock: with a rollback journal commits wait for it (as
for any reader; measured 5 ms per MB), with WAL they do not. VACUUM INTO holds the same lock, and half as long again.

The copy is written without syncs and synced once at its end, outside of the lock.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from django.db import connection

from queue_app import clock

STEP_PAGES = 2_048  # 8 MB: writers wait some hundredths of a second for one
RESTARTS = 5
BUSY_S = 20.0


class Overtaken(Exception):
    """Writers were faster than the small steps."""


class TooLong(Exception):
    """The pause that writers would need is longer than allowed."""


def server() -> str:
    """The library's version."""
    return f"SQLite {sqlite3.sqlite_version}"


def integrity() -> str:
    """'' when every page is in order, else what SQLite says first."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check(1)")
        first = str(cursor.fetchone()[0])
    return "" if first == "ok" else "SQLite finds the file damaged (integrity_check)."


def copy(target: Path, *, pause_ms: int, step_pages: int = STEP_PAGES) -> tuple[int, int]:
    """Copy the default database into a new file; returns (ms in which commits waited, restarts before).

    Raises TooLong when commits would have to wait more than `pause_ms`, sqlite3.Error when a file cannot be used.
    """
    path = Path(connection.settings_dict["NAME"])
    # A connection of its own: the copy must not share a transaction with anybody. rw: it may have to play back a journal.
    with closing(_open(path)) as source, closing(_open(target)) as copied:
        copied.execute("PRAGMA synchronous = OFF").fetchall()
        copied.execute("PRAGMA journal_mode = OFF").fetchall()
        is_wal = source.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        restarts = 0 if is_wal else _in_steps(source, copied, step_pages)
        paused_ms = 0
        if is_wal or restarts > RESTARTS:
            paused_ms = _under_one_lock(source, copied, step_pages, None if is_wal else pause_ms)
        copied.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, also of a database in WAL
    return paused_ms, restarts


def _open(path: Path) -> sqlite3.Connection:
    # mode rw: the target was made already, for its owner only, and a lost source must not be made anew
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None)


def _in_steps(source: sqlite3.Connection, copied: sqlite3.Connection, step_pages: int) -> int:
    """How often it began anew; more than RESTARTS: it gave up, and the target is to be written whole."""
    left: list[int] = []
    restarts = 0

    def look(_status: int, remaining: int, _total: int) -> None:
        nonlocal restarts
        if left and remaining >= left[-1]:
            restarts += 1
            if restarts > RESTARTS:
                raise Overtaken
        left[:] = [remaining]

    try:
        source.backup(copied, pages=step_pages, progress=look, sleep=0.01)
    except Overtaken:
        pass
    return restarts


def _under_one_lock(
    source: sqlite3.Connection, copied: sqlite3.Connection, step_pages: int, pause_ms: int | None
) -> int:
    source.execute("BEGIN")
    source.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # a deferred BEGIN locks nothing yet
    begun_ms = clock.monotonic_ms()
    try:
        source.backup(copied, pages=step_pages, progress=_bounded(begun_ms, pause_ms))
    finally:
        source.execute("ROLLBACK")
    return 0 if pause_ms is None else clock.monotonic_ms() - begun_ms


def _bounded(begun_ms: int, pause_ms: int | None) -> Callable[[int, int, int], None]:
    def look(_status: int, _remaining: int, _total: int) -> None:
        if pause_ms is not None and clock.monotonic_ms() - begun_ms > pause_ms:
            raise TooLong

    return look
