"""How rows of the quarantine are found at any size: by which index, and how far one answer may look."""

from dataclasses import dataclass

from django.db import connection

from queue_app.policy.filters import Filter
from queue_app.reads.conditions import Group, Sql, all_of, beginning, by_row, groups, in_group

SCAN = 20_000  # more rows than this are not looked at for one answer
MAX_STREAMS = 40  # more groups than this are read as one stream instead of side by side

Position = tuple[int, int]
"""(changed_at_ms, seq) of a row: the order of the quarantine, without ties."""


@dataclass(frozen=True, slots=True)
class Way:
    """How rows are found: streams that an index gives in order, what is asked of each row, and whether that must be
    bounded because few rows may pass."""

    streams: list[Sql]
    rest: Sql
    bounded: bool


def way_of(filter: Filter) -> Way:  # noqa: A002
    """The way for this filter. Without streams nothing can match. Asks one or two small queries."""
    rest = all_of(by_row(filter))
    asked = in_group(filter)
    if filter.id_prefix is not None and _is_rare(filter.id_prefix):
        # Written so that no index by age is a way, only the one by id; the few rows are sorted afterwards.
        return Way([("coalesce(j.state, '') = 'dead'", [])], all_of([rest, asked]), bounded=False)
    wanted = _wanted_groups(filter)
    if wanted is None:
        return Way([("j.state = 'dead'", [])], all_of([rest, asked]), bounded=filter.by_row or filter.by_group)
    sql = "j.state = 'dead' AND j.queue = %s AND j.reason = %s AND j.code = %s"
    return Way([(sql, list(group)) for group in wanted], rest, bounded=filter.by_row)


def _wanted_groups(filter: Filter) -> list[Group] | None:  # noqa: A002
    """The groups to read side by side, each by its index; None: the whole quarantine as one stream."""
    if not filter.by_group:
        return None
    if filter.queue is not None and filter.reason is not None and filter.code is not None:
        group = (filter.queue, filter.reason, filter.code)
        return [group] if filter.admits_group(*group) else []
    wanted = [group for group in sorted(groups()) if filter.admits_group(*group)]
    return wanted if len(wanted) <= MAX_STREAMS else None


def _is_rare(id_prefix: str) -> bool:
    """Whether so few jobs of any state begin with it that all of them may be looked at."""
    sql, values = beginning(id_prefix)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM (SELECT 1 AS one FROM jobs AS j WHERE {sql} LIMIT %s) AS r", [*values, SCAN]
        )
        return int(cursor.fetchone()[0]) < SCAN


def order_by(newest_first: bool) -> str:
    """By dead since, oldest or newest first; of one millisecond by the order of acceptance."""
    direction = " DESC" if newest_first else ""
    return f"ORDER BY changed_at_ms{direction}, seq{direction}"


def beyond(after: Position | None, newest_first: bool) -> Sql:
    """Strictly further than a position; None: from the beginning."""
    if after is None:
        return "", []
    return f"(j.changed_at_ms, j.seq) {'<' if newest_first else '>'} (%s, %s)", list(after)


def up_to(fence: Position | None, newest_first: bool) -> Sql:
    """Not further than the fence; None: to the end."""
    if fence is None:
        return "", []
    return f"(j.changed_at_ms, j.seq) {'>=' if newest_first else '<='} (%s, %s)", list(fence)


def fence_of(streams: list[Sql], span: Sql, newest_first: bool, scan: int | None = None) -> Position | None:
    """A position up to which about `scan` rows (None: SCAN) of all streams lie, or None when there are fewer. Reads indexes
    only."""
    queries, values = [], []
    for stream in streams:
        sql, given = all_of([stream, span])
        queries.append(
            f"SELECT * FROM (SELECT changed_at_ms, seq FROM jobs AS j WHERE {sql} {order_by(newest_first)} "
            "LIMIT 1 OFFSET %s) AS s"
        )
        values += [*given, (scan or SCAN) // len(streams)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(queries), values)
        found = [(at_ms, seq) for at_ms, seq in cursor.fetchall()]
    if not found:
        return None
    return max(found) if newest_first else min(found)
