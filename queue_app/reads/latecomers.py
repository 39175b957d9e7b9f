"""Orders that died of a list's causes after the list was fixed: counted by counters, whatever their number.

Counters do not know who is on a list. But what is on it can die again only after the redrive has restarted it, and the
redrive's own results say how many did: the rest came from outside.
"""

from typing import Any

from django.db import connection

from queue_app.policy.windows import HOUR_MS, MINUTE_MS, Pieces, pieces
from queue_app.reads.conditions import Sql
from queue_app.reads.dead import CAP, Count

LOOK = 1_000  # orders looked at one by one where the results alone do not say who came from outside
_OF_ITS_CAUSES = "queue = %s AND (reason, code) IN (SELECT reason, code FROM plan_groups WHERE plan_id = %s)"
# the word CROSS makes SQLite go from the causes to their orders; the other way round it reads all orders of the queue
_DEAD = (
    "FROM plan_groups AS g CROSS JOIN jobs AS j WHERE g.plan_id = %s AND j.state = 'dead' AND j.queue = %s "
    "AND j.reason = g.reason AND j.code = g.code AND j.changed_at_ms >= %s AND j.changed_at_ms < %s"
)


def died_since(plan_id: int, queue: str, as_of_ms: int, ended_at_ms: int | None, now_ms: int) -> Count:
    """Orders in quarantine that died of the list's causes from `as_of_ms` on, until the redrive ended or now, and that are
    not on it: what came back from the redrive itself is another number. One query, or two when few died.

    Exact where nothing came back; where few died; and while the redrive is open, for then none of what came back can have
    left again, if all of it came back for the cause that it was redriven for. Otherwise at least so many.
    """
    until_ms = (now_ms if ended_at_ms is None else ended_at_ms) + 1
    if until_ms <= as_of_ms:
        return Count(0)
    cut = pieces(as_of_ms, until_ms, now_ms)
    same, other, *parts = _numbers([*_came_back(plan_id), *_sums(plan_id, queue, cut)])
    edges = parts[len(parts) - len(cut.rows) :]
    died = sum(parts[: len(parts) - len(cut.rows)]) + sum(min(edge, CAP) for edge in edges)
    whole = max(edges, default=0) <= CAP
    if whole and same + other and died <= LOOK:
        return Count(_numbers([_others(plan_id, queue, as_of_ms, until_ms)])[0])
    known = not other and (not same or ended_at_ms is None)
    return Count(max(0, died - same - other), whole and known)


def _numbers(parts: list[Sql]) -> list[int]:
    """All of one statement, so that no death falls between two."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(f'({sql})' for sql, _ in parts)}", [value for _, values in parts for value in values]
        )
        return [int(number or 0) for number in cursor.fetchone()]


def _came_back(plan_id: int) -> list[Sql]:
    return [
        (f"SELECT sum(n) FROM results WHERE batch = %s AND outcome = '{outcome}'", [plan_id])
        for outcome in ("dead_same", "dead_other")
    ]


def _sums(plan_id: int, queue: str, cut: Pieces) -> list[Sql]:
    counted = (
        f"SELECT sum(still) FROM flows WHERE span_ms = %s AND start_ms >= %s AND start_ms < %s AND {_OF_ITS_CAUSES}"
    )
    parts: list[Sql] = [
        (counted, [span_ms, low, high, queue, plan_id])
        for span_ms, spans in ((HOUR_MS, cut.hours), (MINUTE_MS, cut.minutes))
        for low, high in spans
    ]
    looked_at = f"SELECT count(*) FROM (SELECT 1 AS one {_DEAD} LIMIT %s) AS r"
    return parts + [(looked_at, [plan_id, queue, low, high, CAP + 1]) for low, high in cut.rows]


def _others(plan_id: int, queue: str, from_ms: int, to_ms: int) -> Sql:
    not_on_it = "NOT EXISTS (SELECT 1 FROM plan_items AS i WHERE i.job_id = j.id AND i.plan_id = g.plan_id)"
    values: list[Any] = [plan_id, queue, from_ms, to_ms]
    return f"SELECT count(*) {_DEAD} AND {not_on_it}", values
