"""Housekeeping of the counters: their rows grow with every backend and every minute, their sums must not notice.

PostgreSQL differs because each of its backends counts in a slot of its own (its process id). When a backend has ended,
nobody adds to its slot any more, unless a new backend was given the same number: its rows may be locked then, and are
left for the next time.
"""

from django.db import connection

from queue_app.policy.windows import MINUTE_MS
from queue_app.store.database import is_postgresql

_PLACES = {
    "counts": ("queue", "state", "stage", "reason", "code"),
    "flows": ("span_ms", "start_ms", "queue", "reason", "code"),
    "results": ("batch", "queue", "reason", "code", "outcome"),
    "tallies": ("name",),
}
_SUMS = {"flows": ("died", "left_n", "still")}  # of the other tables: n
_LATEST = {"counts": ("last_at_ms",)}


def _folding(table: str) -> str:
    """One statement, so that no reader sees a row twice or not at all; slot 0 is taken in the order of its places, so
    that two that fold at the same moment wait for each other instead of locking each other out."""
    places = ", ".join(_PLACES[table])
    sums, latest = _SUMS.get(table, ("n",)), _LATEST.get(table, ())
    totals = ", ".join([*(f"sum({name})" for name in sums), *(f"max({name})" for name in latest)])
    kept = ", ".join(
        [
            *(f"{name} = t.{name} + excluded.{name}" for name in sums),
            *(f"{name} = greatest(t.{name}, excluded.{name})" for name in latest),
        ]
    )
    return f"""
    WITH gone AS (
        DELETE FROM {table} WHERE id IN (
            SELECT id FROM {table} WHERE slot <> 0 AND slot NOT IN (SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL)
            LIMIT %s FOR UPDATE SKIP LOCKED)
        RETURNING *
    ), kept AS (
        INSERT INTO {table} AS t ({places}, slot, {", ".join([*sums, *latest])})
        SELECT {places}, 0, {totals} FROM gone GROUP BY {places} ORDER BY {places}
        ON CONFLICT ({places}, slot) DO UPDATE SET {kept}
    ) SELECT count(*) FROM gone"""


def fold_slots(limit: int) -> int:
    """Add the rows of ended backends to slot 0, at most `limit` rows of each table; the number of rows folded.

    SQLite has slot 0 only: always 0 there.
    """
    if not is_postgresql():
        return 0
    folded = 0
    with connection.cursor() as cursor:
        for table in _PLACES:
            cursor.execute(_folding(table), [limit])
            folded += int(cursor.fetchone()[0])
    return folded


def forget_minutes(before_ms: int, limit: int) -> int:
    """Drop at most `limit` counters of single minutes that began before the instant; the number dropped.

    Hours stay: they say the same of whole hours.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM flows WHERE id IN (SELECT id FROM flows WHERE span_ms = %s AND start_ms < %s LIMIT %s)",
            [MINUTE_MS, before_ms, limit],
        )
        return int(cursor.rowcount)
