"""Orders in order of their ids for the comparison with the receiver's ledger, and what earlier comparisons found.

Every bite is a query of its own: no cursor and no transaction stays open while the receiver is asked.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any

from django.db import connection

from queue_app.policy.reconciling import PRUNED, Ours

NAMES_PER_STATEMENT = 500
_JOBS = (
    "SELECT j.id, j.quantity, j.state, j.token, j.changed_at_ms, j.lease_until, coalesce(q.receiver_keeps_ms, 0) "
    "FROM jobs AS j LEFT JOIN queues AS q ON q.name = j.queue WHERE "
)
# A tombstone has no queue; the shortest memory of all is the one that accuses nobody wrongly.
_TOMBSTONES = (
    f"SELECT t.job_id, t.quantity, '{PRUNED}', 0, t.done_at_ms, NULL, "
    "(SELECT coalesce(min(receiver_keeps_ms), 0) FROM queues) FROM tombstones AS t WHERE "
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison as it was kept. `kinds` holds the differences found, `here` and `there` the sums of both sides."""

    id: int
    started_at_ms: int
    ended_at_ms: int
    by: str  # '' for a program
    compared: int
    differing: int
    kinds: dict[str, int]
    here: dict[str, int]
    there: dict[str, int]
    passing: dict[str, int]
    examples: tuple[tuple[str, str], ...]


def bite(after: str | None, limit: int) -> list[Ours]:
    """Up to `limit` orders whose id comes after `after` (None: from the first), bytewise; pruned ones among them.

    Orders first, then tombstones: one that is pruned between the two queries is met in one of them at least.
    """
    found: dict[str, Ours] = {}
    full: list[str] = []
    for sql, name in ((_JOBS, "j.id"), (_TOMBSTONES, "t.job_id")):
        rows = _rows(f"{sql}{name} > %s ORDER BY {name} LIMIT %s", [after or "", limit])
        found = {row.id: row for row in rows} | found
        if len(rows) == limit:
            full.append(rows[-1].id)
    end = min(full) if full else None  # beyond it the other table may hold ids that were not read yet
    return [found[job_id] for job_id in sorted(found) if end is None or job_id <= end]


def orders(ids: Sequence[str]) -> dict[str, Ours]:
    """The orders with these ids as they stand now; who is not in it is not known here."""
    found: dict[str, Ours] = {}
    for some in batched(ids, NAMES_PER_STATEMENT, strict=False):
        marks = ", ".join(["%s"] * len(some))
        for sql, name in ((_JOBS, "j.id"), (_TOMBSTONES, "t.job_id")):
            found = {row.id: row for row in _rows(f"{sql}{name} IN ({marks})", list(some))} | found
    return found


def latest(limit: int = 1) -> list[Comparison]:
    """The last comparisons, the newest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id, r.started_at_ms, r.ended_at_ms, coalesce(u.username, ''), r.compared, r.differing, r.numbers, "
            "r.examples FROM reconciliations AS r LEFT JOIN auth_user AS u ON u.id = r.actor_id "
            "ORDER BY r.id DESC LIMIT %s",
            [limit],
        )
        rows = cursor.fetchall()
    return [_comparison(row) for row in rows]


def _rows(sql: str, values: list[Any]) -> list[Ours]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [Ours(*row) for row in cursor.fetchall()]


def _comparison(row: tuple[Any, ...]) -> Comparison:
    number, started_at_ms, ended_at_ms, by, compared, differing, text, examples = row
    numbers = json.loads(text)
    return Comparison(
        id=number,
        started_at_ms=started_at_ms,
        ended_at_ms=ended_at_ms,
        by=by,
        compared=compared,
        differing=differing,
        examples=tuple((kind, job_id) for kind, job_id in json.loads(examples)),
        **{name: numbers.get(name, {}) for name in ("kinds", "here", "there", "passing")},
    )
