"""Which groups a filter covers whole, so that an investigation of the filter counts for them (DESIGN section 3)."""

from django.db import connection

from queue_app.policy.filters import Filter
from queue_app.reads import dead
from queue_app.reads.conditions import DEAD_GROUPS, Group, all_of, by_row, in_group, in_span


def covered(filter: Filter, as_of_ms: int) -> list[Group]:  # noqa: A002
    """The groups of whose orders, dead since before the as-of time, none is left out. Sorted; at most five queries.

    When the filter asks for more than group and time, only if few enough orders match to be counted one by one; with the
    beginning of an id never.
    """
    whole = _whole_in_time(filter, as_of_ms)
    if not filter.by_row or not whole:
        return whole
    if filter.id_prefix is not None or not dead.count(filter, as_of_ms).exact:
        return []
    return sorted(set(whole) & _whole_by_rows(filter, as_of_ms))


def _whole_in_time(filter: Filter, as_of_ms: int) -> list[Group]:  # noqa: A002
    low, high = filter.span(as_of_ms)
    ends = "changed_at_ms) FROM jobs WHERE state = 'dead' AND queue = g.queue AND reason = g.reason AND code = g.code"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT g.queue, g.reason, g.code, (SELECT min({ends}), (SELECT max({ends} AND changed_at_ms < %s) "
            f"FROM ({DEAD_GROUPS}) AS g",
            [as_of_ms],
        )
        return sorted(
            (queue, reason, code)
            for queue, reason, code, first, last in cursor.fetchall()
            if filter.admits_group(queue, reason, code) and last is not None and low <= first and last < high
        )


def _whole_by_rows(filter: Filter, as_of_ms: int) -> set[Group]:  # noqa: A002
    condition, values = all_of(by_row(filter))
    among, among_values = all_of([("j.state = 'dead'", []), in_group(filter), in_span(filter, as_of_ms)])
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT j.queue, j.reason, j.code FROM jobs AS j WHERE {among} GROUP BY j.queue, j.reason, j.code "
            f"HAVING count(*) = sum(CASE WHEN {condition} THEN 1 ELSE 0 END)",
            [*among_values, *values],
        )
        return {(queue, reason, code) for queue, reason, code in cursor.fetchall()}


def was_ever(group: Group) -> bool:
    """Whether any order ever died in this group."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM counts WHERE queue = %s AND state = 'dead' AND reason = %s AND code = %s LIMIT 1", [*group]
        )
        return cursor.fetchone() is not None
