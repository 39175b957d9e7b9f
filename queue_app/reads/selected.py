"""Orders that were chosen by id: those in quarantine, in the quarantine's order."""

from collections.abc import Sequence

from django.db import connection

from queue_app.reads.dead import DeadRow, Position

_COLUMNS = (
    "id, token, queue, reason, code, changed_at_ms, seq, attempts, max_attempts, quantity, redriven, batch, order_key"
)


def by_ids(ids: Sequence[str], as_of_ms: int, after: Position, limit: int) -> list[DeadRow]:
    """Those of the orders that are dead since before the as-of time, oldest first, after a position."""
    marks = ", ".join(["%s"] * len(ids))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM jobs WHERE id IN ({marks}) AND state = 'dead' AND changed_at_ms < %s "
            "AND (changed_at_ms, seq) > (%s, %s) ORDER BY changed_at_ms, seq LIMIT %s",
            [*ids, as_of_ms, *after, limit],
        )
        return [DeadRow(*row) for row in cursor.fetchall()]


def queues_of(ids: Sequence[str]) -> list[str]:
    """The queues of those orders that exist, sorted."""
    with connection.cursor() as cursor:
        marks = ", ".join(["%s"] * len(ids))
        cursor.execute(f"SELECT DISTINCT queue FROM jobs WHERE id IN ({marks}) ORDER BY queue", list(ids))
        return [row[0] for row in cursor.fetchall()]
