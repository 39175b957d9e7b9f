"""Delivered orders that may be removed: found by walking the order of acceptance, removed with everything asked again.

There is no index on done orders: it would tax every finish, and grow with the table that housekeeping is there to keep
small. The walk reads each old row once a round instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from queue_app.policy.plans import OPEN
from queue_app.policy.retention import LOOK, DoneJob
from queue_app.store.database import is_postgresql, placeholders

_COLUMNS = (
    "j.id, j.seq, j.queue, j.order_key, j.quantity, j.payload, j.attempts, j.token, j.created_at_ms, j.changed_at_ms, "
    "j.redriven, j.batch"
)
_OPEN = ", ".join(map(repr, OPEN))
# a batch is finished once its outcomes are sealed; a plan that never ran is finished when it is closed
_FREE = (
    "NOT EXISTS (SELECT 1 FROM plan_items AS i JOIN plans AS p ON p.id = i.plan_id WHERE i.job_id = j.id AND "
    f"(p.state IN ({_OPEN}) OR (p.state IN ('ended', 'stopped') AND p.sealed_at_ms IS NULL))) "
    f"AND NOT EXISTS (SELECT 1 FROM holds AS h JOIN plans AS p ON p.id = h.plan_id WHERE h.job_id = j.id "
    f"AND p.state IN ({_OPEN})) "
    "AND NOT EXISTS (SELECT 1 FROM investigations AS v WHERE v.job_id = j.id AND v.job_id <> '')"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one look found. `after`: where the next one begins; `last`: nothing behind it can be old enough."""

    jobs: list[DoneJob]
    after: int
    last: bool


def _old(before: Mapping[str, int]) -> tuple[str, list[str | int]]:
    names = sorted(before)
    condition = " OR ".join(["(j.queue = %s AND j.changed_at_ms < %s)"] * len(names)) or "1 = 0"
    return f"j.state = 'done' AND ({condition})", [value for name in names for value in (name, before[name])]


def stretch(before: Mapping[str, int], after: int, limit: int) -> Stretch:
    """Up to `limit` removable orders after a place, among the next LOOK orders. `before`: done before, by queue."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(seq), min(created_at_ms), count(*) FROM "
            "(SELECT seq, created_at_ms FROM jobs WHERE seq > %s ORDER BY seq LIMIT %s) AS s",
            [after, LOOK],
        )
        upto, first_ms, n = cursor.fetchone()
        if not n:
            return Stretch([], after, True)
        last = n < LOOK or first_ms >= max(before.values(), default=0)
        old, values = _old(before)
        cursor.execute(
            f"SELECT {_COLUMNS} FROM jobs AS j WHERE j.seq > %s AND j.seq <= %s AND {old} AND {_FREE} "
            "ORDER BY j.seq LIMIT %s",
            [after, upto, *values, limit],
        )
        found = [DoneJob(*row) for row in cursor.fetchall()]
    if len(found) == limit:
        return Stretch(found, found[-1].seq, False)
    return Stretch(found, upto, last)


def remove(found: Sequence[DoneJob], before: Mapping[str, int]) -> set[str]:
    """Remove those that still may go; their ids. The caller buries them in the same transaction."""
    if not found:
        return set()
    old, values = _old(before)
    ids = [job.id for job in found]
    which = f"SELECT j.id FROM jobs AS j WHERE j.id IN ({placeholders(len(ids))}) AND {old} AND {_FREE}"
    if is_postgresql():  # two that remove at once pass each other instead of waiting
        which += " ORDER BY j.id FOR UPDATE SKIP LOCKED"
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM jobs WHERE id IN ({which}) RETURNING id", [*ids, *values])
        return {row[0] for row in cursor.fetchall()}
