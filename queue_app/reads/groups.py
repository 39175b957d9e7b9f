"""The causes: queue + reason + code, with what happened, who looked, and what redrives led to.

The number of queries does not grow with the groups; each statement reads counters and the ends of an index.
"""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from queue_app.policy.answers import effect_possible
from queue_app.policy.figures import RECENT_MS, GroupFigures, Look, Results
from queue_app.policy.filters import FilterError, from_canonical
from queue_app.policy.windows import HOUR_MS, MINUTE_MS, floor
from queue_app.reads import flows
from queue_app.reads.conditions import DEAD_GROUPS, Group

LOOK_COLUMNS = "id, at_ms, as_of_ms, by_id, by_name, scope, job_id, note, finding, count"
_LOOK = ", ".join(f"i.{name.strip()}" for name in LOOK_COLUMNS.split(","))
_OF_GROUP = "queue = g.queue AND reason = g.reason AND code = g.code"
_DEAD = f"FROM jobs WHERE state = 'dead' AND {_OF_GROUP}"
_NEXT_HOUR = f"(i.as_of_ms + {HOUR_MS - 1}) / {HOUR_MS} * {HOUR_MS}"
_DETAILS = f"""
SELECT g.queue, g.reason, g.code, g.n,
  (SELECT min(changed_at_ms) {_DEAD}), (SELECT max(changed_at_ms) {_DEAD}),
  (SELECT min(changed_at_ms) {_DEAD} AND changed_at_ms >= i.as_of_ms),
  coalesce((SELECT sum(still) FROM flows WHERE span_ms = {HOUR_MS} AND start_ms >= {_NEXT_HOUR} AND {_OF_GROUP}), 0)
    + (SELECT count(*) {_DEAD} AND changed_at_ms >= i.as_of_ms AND changed_at_ms < {_NEXT_HOUR}),
  {_LOOK}
FROM (SELECT c.queue, c.reason, c.code, c.n, (SELECT max(v.investigation_id) FROM investigated_groups AS v
    WHERE v.queue = c.queue AND v.reason = c.reason AND v.code = c.code) AS last FROM ({DEAD_GROUPS}) AS c) AS g
LEFT JOIN investigations AS i ON i.id = g.last
ORDER BY g.n DESC, g.queue, g.reason, g.code"""


PARTS_SEEN = 500  # of the last looks at single orders and by filters; older ones tell little of what is dead now
_PARTS = f"""
SELECT {_LOOK}, i.selection, j.queue, j.reason, j.code FROM investigations AS i
LEFT JOIN jobs AS j ON j.id = i.job_id AND j.state = 'dead' AND j.changed_at_ms < i.as_of_ms
WHERE i.scope IN ('job', 'filter') ORDER BY i.id DESC LIMIT {PARTS_SEEN}"""


def recent_since_ms(as_of_ms: int) -> int:
    """Where "the last five minutes" begin: on a whole minute."""
    return max(0, floor(as_of_ms - RECENT_MS, MINUTE_MS))


def groups(as_of_ms: int) -> tuple[GroupFigures, ...]:
    """Every group with orders in quarantine, the largest first. Five queries at any number of groups."""
    trends = flows.trends(as_of_ms)
    recent = flows.deaths_since(recent_since_ms(as_of_ms))
    return assembled(trends, recent, results_by_group())


def group(queue: str, reason: str, code: str, as_of_ms: int) -> GroupFigures | None:
    """One group, or None when it has no order in quarantine."""
    wanted = (queue, reason, code)
    return next((found for found in groups(as_of_ms) if (found.queue, found.reason, found.code) == wanted), None)


def assembled(
    trends: Mapping[Group, tuple[int, ...]], recent: Mapping[Group, int], results: Mapping[Group, Results]
) -> tuple[GroupFigures, ...]:
    """The groups from parts that the caller has read already, and two queries."""
    with connection.cursor() as cursor:
        cursor.execute(_DETAILS)
        rows = cursor.fetchall()
    partly = _looks_in_part([(row[0], row[1], row[2]) for row in rows])
    return tuple(_figures(row, trends, recent, results, partly) for row in rows)


def _looks_in_part(among: list[Group]) -> dict[Group, Look]:
    """The last look at single orders of each group, or by a filter that admits it; absent when there was none."""
    found: dict[Group, Look] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PARTS)
        for *look, selection, queue, reason, code in cursor.fetchall():
            touched = [(queue, reason, code)] if queue is not None else _admitted(selection, among)
            for group_key in touched:
                found.setdefault(group_key, Look(*look))
    return found


def _admitted(selection: str, among: list[Group]) -> list[Group]:
    try:
        wanted = from_canonical(selection) if selection else None
    except FilterError:
        return []
    return [key for key in among if wanted is not None and wanted.admits_group(*key)]


def _figures(
    row: tuple[Any, ...],
    trends: Mapping[Group, tuple[int, ...]],
    recent: Mapping[Group, int],
    results: Mapping[Group, Results],
    partly: Mapping[Group, Look],
) -> GroupFigures:
    queue, reason, code, n, first, last, since_first, since, *look = row
    key = (queue, reason, code)
    seen = Look(*look) if look[0] is not None else None
    part = partly.get(key)
    return GroupFigures(
        queue=queue,
        reason=reason,
        code=code,
        n=int(n),
        first_at_ms=first,
        last_at_ms=last,
        trend=trends.get(key, (0,) * 24),
        recent=recent.get(key, 0),
        look=seen,
        since_look=int(since) if seen else int(n),
        since_look_ms=since_first if seen else first,
        results=results.get(key, Results()),
        effect_possible=effect_possible(code),
        part=part if part and (seen is None or part.id > seen.id) else None,
    )


def results_by_group() -> dict[Group, Results]:
    """What redrives of each group led to, over all batches. One query."""
    found: dict[Group, dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT queue, reason, code, outcome, sum(n) FROM results GROUP BY queue, reason, code, outcome")
        for queue, reason, code, outcome, n in cursor.fetchall():
            found.setdefault((queue, reason, code), {})[outcome] = int(n)
    return {key: Results(**outcomes) for key, outcomes in found.items()}


def results_by_batch(batches: list[int]) -> dict[int, Results]:
    """What the redrives of these batches led to; a batch without any is absent. One query."""
    if not batches:
        return {}
    found: dict[int, dict[str, int]] = {}
    marks = ", ".join(["%s"] * len(batches))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT batch, outcome, sum(n) FROM results WHERE batch IN ({marks}) GROUP BY batch, outcome", batches
        )
        for batch, outcome, n in cursor.fetchall():
            found.setdefault(batch, {})[outcome] = int(n)
    return {batch: Results(**outcomes) for batch, outcomes in found.items()}
