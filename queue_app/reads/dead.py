"""Jobs in quarantine under a filter: the rows oldest first, and the one count that every place shows.

What counters know (groups and times) is counted exactly at any size. What only rows know is looked for in a bounded
number of rows, and the answer says so (DESIGN section 7).
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection

from queue_app.policy.filters import Filter
from queue_app.policy.windows import HOUR_MS, MINUTE_MS, Pieces, pieces
from queue_app.reads.conditions import Group, Sql, all_of, in_group, in_span, where
from queue_app.reads.ways import Position, beyond, fence_of, order_by, up_to, way_of

__all__ = ["CAP", "Count", "DeadRow", "Position", "Stretch", "chunk", "count", "stretch", "where"]

CAP = 10_000  # more matching rows than this are not counted one by one
END_MS = HOUR_MS * 10**12  # after every instant, on a whole hour
_COLUMNS = (
    "id, token, queue, reason, code, changed_at_ms, seq, attempts, max_attempts, quantity, redriven, batch, order_key"
)


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A job in quarantine; `changed_at_ms` is the instant since when, `batch` the last one that redrove it."""

    id: str
    token: int
    queue: str
    reason: str
    code: str
    changed_at_ms: int
    seq: int
    attempts: int
    max_attempts: int
    quantity: int
    redriven: int
    batch: int | None
    order_key: str

    @property
    def position(self) -> Position:
        """Its place in the quarantine's order."""
        return self.changed_at_ms, self.seq

    @property
    def group(self) -> Group:
        """Queue, reason and code."""
        return self.queue, self.reason, self.code


@dataclass(frozen=True, slots=True)
class Count:
    """How many; when not `exact` at least so many, shown as "10,000+"."""

    n: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows in order. `searched_to` is set when the search stopped before its end: go on after this position."""

    rows: list[DeadRow]
    searched_to: Position | None = None


def chunk(
    filter: Filter,  # noqa: A002
    as_of_ms: int,
    after: Position | None,
    limit: int,
    *,
    scan: int | None = None,
    rest: Callable[[], object] = bool,
) -> list[DeadRow]:
    """The next rows oldest first, after a position. Fewer than `limit` means that there are no more: it looks on.

    Each look is a statement over at most about `scan` rows (None: 20,000); `rest()` is called between two looks.
    """
    rows: list[DeadRow] = []
    while True:
        found = stretch(filter, as_of_ms, after, limit - len(rows), scan=scan)
        rows += found.rows
        if len(rows) >= limit or found.searched_to is None:
            return rows
        after = found.searched_to
        rest()


def stretch(
    filter: Filter,  # noqa: A002
    as_of_ms: int,
    after: Position | None,
    limit: int,
    *,
    newest_first: bool = False,
    scan: int | None = None,
) -> Stretch:
    """Up to `limit` rows beyond a position, from at most about `scan` rows (None: 20,000) looked at."""
    way = way_of(filter)
    if not way.streams:
        return Stretch([])
    times = _between(in_span(filter, as_of_ms), after, None, newest_first)
    further = beyond(after, newest_first)
    fence = fence_of(way.streams, all_of([times, further]), newest_first, scan) if way.bounded else None
    times = _between(times, None, fence, newest_first)
    condition = all_of([times, further, up_to(fence, newest_first), way.rest])
    rows = _merged(way.streams, condition, limit, newest_first)
    return Stretch(rows, fence if len(rows) < limit else None)


def _between(span: Sql, after: Position | None, fence: Position | None, newest_first: bool) -> Sql:
    """The span of time, begun at the one position and ended at the other: of two bounds SQLite follows the first one that
    it meets, and would walk through all earlier pages, or past the fence through everything else."""
    sql, (low, high) = span
    older, younger = (fence, after) if newest_first else (after, fence)
    return sql, [low if older is None else max(low, older[0]), high if younger is None else min(high, younger[0] + 1)]


def _merged(streams: list[Sql], condition: Sql, limit: int, newest_first: bool) -> list[DeadRow]:
    queries, values = [], []
    for stream in streams:
        sql, given = all_of([stream, condition])
        queries.append(f"SELECT {_COLUMNS} FROM jobs AS j WHERE {sql} {order_by(newest_first)} LIMIT %s")
        values += [*given, limit]
    if len(queries) == 1:
        # in order as it comes: sorting it once more keeps a writer of SQLite waiting half as long again
        text = queries[0]
    else:
        parts = " UNION ALL ".join(f"SELECT * FROM ({query}) AS s" for query in queries)
        text = f"SELECT * FROM ({parts}) AS m {order_by(newest_first)} LIMIT %s"
        values.append(limit)
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return [DeadRow(*row) for row in cursor.fetchall()]


# --- the count ------------------------------------------------------------------------------------------------------


def count(filter: Filter, as_of_ms: int, cap: int = CAP) -> Count:  # noqa: A002
    """How many jobs the filter means. One statement gives the number, so that no death falls between two.

    Groups and times of death come from counters, with only the ragged ends of the span counted by rows.
    """
    low, high = filter.span(as_of_ms)
    if low >= high:
        return Count(0)
    if filter.by_row:
        return _by_rows(filter, as_of_ms, cap)
    if low == 0:  # everything, less what died at or after the end of the span
        parts = [_sum_of_counts(filter), *_sums(filter, pieces(high, END_MS, as_of_ms), sign=-1)]
    else:
        parts = _sums(filter, pieces(low, high, as_of_ms), sign=1)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT " + ", ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]
        )
        numbers = [int(number or 0) for number in cursor.fetchone()]
    if any(abs(number) > CAP for number, (sql, _) in zip(numbers, parts, strict=True) if "FROM jobs" in sql):
        return _by_rows(filter, as_of_ms, cap)  # so many deaths in one minute that its rows are not all counted
    return Count(max(0, sum(numbers)))


def _sum_of_counts(filter: Filter) -> Sql:  # noqa: A002
    sql, values = all_of([("state = 'dead'", []), in_group(filter, "")])
    return f"(SELECT sum(n) FROM counts WHERE {sql})", values


def _sums(filter: Filter, cut: Pieces, *, sign: int) -> list[Sql]:  # noqa: A002
    group, group_values = in_group(filter, "")
    also = f" AND {group}" if group else ""
    minus = "-" if sign < 0 else ""
    parts: list[Sql] = []
    for span_ms, spans in ((HOUR_MS, cut.hours), (MINUTE_MS, cut.minutes)):
        for low, high in spans:
            sql = f"(SELECT {minus}sum(still) FROM flows WHERE span_ms = %s AND start_ms >= %s AND start_ms < %s{also})"
            parts.append((sql, [span_ms, low, high, *group_values]))
    for low, high in cut.rows:
        sql = (
            f"(SELECT {minus}count(*) FROM (SELECT 1 AS one FROM jobs WHERE state = 'dead' "
            f"AND changed_at_ms >= %s AND changed_at_ms < %s{also} LIMIT %s) AS r)"
        )
        parts.append((sql, [low, high, *group_values, CAP + 1]))
    return parts


def _by_rows(filter: Filter, as_of_ms: int, cap: int) -> Count:  # noqa: A002
    """Up to `cap` matches among the rows that one answer may look at."""
    way = way_of(filter)
    if not way.streams:
        return Count(0)
    span = in_span(filter, as_of_ms)
    fence = fence_of(way.streams, span, newest_first=False) if way.bounded else None
    span = _between(span, None, fence, newest_first=False)
    condition = all_of([span, up_to(fence, newest_first=False), way.rest])
    queries, values = [], []
    for stream in way.streams:
        sql, given = all_of([stream, condition])
        queries.append(f"SELECT * FROM (SELECT 1 AS one FROM jobs AS j WHERE {sql} LIMIT %s) AS s")
        values += [*given, cap + 1]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({' UNION ALL '.join(queries)}) AS m", values)
        n = int(cursor.fetchone()[0])
    return Count(min(n, cap), exact=fence is None and n <= cap)
