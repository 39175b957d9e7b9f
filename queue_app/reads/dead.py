"""Jobs in quarantine under a filter: the rows oldest first, and the one count that every place shows.

What counters know (groups and times) is counted exactly at any size. What only rows know is looked for in a bounded
number of rows, and the answer says so (DESIGN section 7).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.policy.answers import ANSWERS
from queue_app.policy.filters import Filter
from queue_app.policy.windows import HOUR_MS, MINUTE_MS, Pieces, pieces

CAP = 10_000  # more matching rows than this are not counted one by one
SCAN = 20_000  # more rows than this are not looked at for one answer
MAX_STREAMS = 40  # more groups than this are read as one stream instead of side by side
END_MS = HOUR_MS * 10**12  # after every instant, on a whole hour

NO_EFFECT = tuple(sorted(answer.code for answer in ANSWERS if not answer.effect_possible))
_COLUMNS = (
    "id, token, queue, reason, code, changed_at_ms, seq, attempts, max_attempts, quantity, redriven, batch, order_key"
)

Position = tuple[int, int]
"""(changed_at_ms, seq) of a row: the order of the quarantine, without ties."""
Group = tuple[str, str, str]
"""(queue, reason, code)."""
Sql = tuple[str, list[Any]]


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


# --- conditions -----------------------------------------------------------------------------------------------------


def where(filter: Filter, as_of_ms: int) -> Sql:  # noqa: A002
    """The condition over `jobs AS j` that holds for exactly the jobs that the filter means, and its values.

    Only jobs dead since before the as-of time. Asks one small query when the filter has `looked`.
    """
    parts = [("j.state = 'dead'", []), _in_group(filter), _in_span(filter, as_of_ms), *_by_row(filter)]
    return _all(parts)


def _all(parts: Sequence[Sql]) -> Sql:
    real = [part for part in parts if part[0]]
    return " AND ".join(sql for sql, _ in real), [value for _, values in real for value in values]


def _in_group(filter: Filter, alias: str = "j.") -> Sql:  # noqa: A002
    parts: list[Sql] = [
        (f"{alias}{name} = %s", [value])
        for name, value in (("queue", filter.queue), ("reason", filter.reason), ("code", filter.code))
        if value is not None
    ]
    if filter.effect is not None:
        marks = ", ".join(["%s"] * len(NO_EFFECT))
        parts.append((f"{alias}code {'NOT IN' if filter.effect else 'IN'} ({marks})", list(NO_EFFECT)))
    return _all(parts)


def _in_span(filter: Filter, as_of_ms: int) -> Sql:  # noqa: A002
    low, high = filter.span(as_of_ms)
    return "j.changed_at_ms >= %s AND j.changed_at_ms < %s", [low, high]


def _by_row(filter: Filter) -> list[Sql]:  # noqa: A002
    parts: list[Sql] = []
    if filter.id_prefix is not None:
        # Ids are ASCII and ordered bytewise on both databases, so a range finds a beginning without LIKE's wildcards.
        after = filter.id_prefix[:-1] + chr(ord(filter.id_prefix[-1]) + 1)
        parts.append(("j.id >= %s AND j.id < %s", [filter.id_prefix, after]))
    if filter.attempts_min is not None:
        parts.append(("j.attempts >= %s", [filter.attempts_min]))
    if filter.attempts_max is not None:
        parts.append(("j.attempts <= %s", [filter.attempts_max]))
    if filter.redriven is not None:
        parts.append((f"j.redriven {'> 0' if filter.redriven else '= 0'}", []))
    if filter.looked is not None:
        sql, values = _looked(filter)
        parts.append((sql if filter.looked else f"NOT ({sql})", values))
    return parts


def _looked(filter: Filter) -> Sql:  # noqa: A002
    """An investigation of the job itself after its death, or the last one that counts for its group."""
    sql = (
        "EXISTS (SELECT 1 FROM investigations AS i WHERE i.job_id = j.id AND i.job_id <> '' "
        "AND i.as_of_ms > j.changed_at_ms)"
    )
    values: list[Any] = []
    for group, seen_ms in sorted(last_looks().items()):
        if filter.admits_group(*group):
            sql += " OR (j.queue = %s AND j.reason = %s AND j.code = %s AND j.changed_at_ms < %s)"
            values += [*group, seen_ms]
    return sql, values


# --- groups ---------------------------------------------------------------------------------------------------------

_DEAD_GROUPS = (
    "SELECT queue, reason, code, sum(n) AS n FROM counts WHERE state = 'dead' "
    "GROUP BY queue, reason, code HAVING sum(n) > 0"
)


def groups() -> dict[Group, int]:
    """How many are dead now, by group, from the counters. Groups without a dead job are absent."""
    with connection.cursor() as cursor:
        cursor.execute(_DEAD_GROUPS)
        return {(queue, reason, code): int(n) for queue, reason, code, n in cursor.fetchall()}


def last_looks() -> dict[Group, int]:
    """The as-of time of the last investigation that counts for each group with dead jobs; others are absent."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT g.queue, g.reason, g.code, i.as_of_ms FROM (SELECT c.queue, c.reason, c.code, "
            "(SELECT max(v.investigation_id) FROM investigated_groups AS v WHERE v.queue = c.queue "
            "AND v.reason = c.reason AND v.code = c.code) AS last "
            f"FROM ({_DEAD_GROUPS}) AS c) AS g JOIN investigations AS i ON i.id = g.last"
        )
        return {(queue, reason, code): at_ms for queue, reason, code, at_ms in cursor.fetchall()}


# --- rows -----------------------------------------------------------------------------------------------------------


def chunk(filter: Filter, as_of_ms: int, after: Position | None, limit: int) -> list[DeadRow]:  # noqa: A002
    """The next rows oldest first, after a position. Fewer than `limit` means that there are no more: it looks on."""
    rows: list[DeadRow] = []
    while True:
        found = stretch(filter, as_of_ms, after, limit - len(rows))
        rows += found.rows
        if len(rows) >= limit or found.searched_to is None:
            return rows
        after = found.searched_to


def stretch(
    filter: Filter,  # noqa: A002
    as_of_ms: int,
    after: Position | None,
    limit: int,
    *,
    newest_first: bool = False,
) -> Stretch:
    """Up to `limit` rows beyond a position, from at most about 20,000 rows looked at."""
    streams = _streams(filter)
    if not streams:
        return Stretch([])
    span = _all([_in_span(filter, as_of_ms), _beyond(after, newest_first)])
    conditions = [span]
    fence = None
    if filter.by_row or (filter.by_group and streams == [None]):
        fence = _fence(streams, span, newest_first)
        if fence is not None:
            conditions.append(_up_to(fence, newest_first))
        conditions += _by_row(filter)
    if streams == [None]:
        conditions.append(_in_group(filter))
    rows = _merged(streams, _all(conditions), limit, newest_first)
    return Stretch(rows, fence if len(rows) < limit else None)


def _streams(filter: Filter) -> list[Group | None]:  # noqa: A002
    """The groups to read side by side, each by its index; [None]: the whole quarantine as one stream."""
    if not filter.by_group:
        return [None]
    if filter.queue is not None and filter.reason is not None and filter.code is not None:
        group = (filter.queue, filter.reason, filter.code)
        return [group] if filter.admits_group(*group) else []
    wanted: list[Group | None] = [group for group in sorted(groups()) if filter.admits_group(*group)]
    return wanted if len(wanted) <= MAX_STREAMS else [None]


def _order(newest_first: bool) -> str:
    way = " DESC" if newest_first else ""
    return f"ORDER BY changed_at_ms{way}, seq{way}"


def _beyond(after: Position | None, newest_first: bool) -> Sql:
    if after is None:
        return "", []
    return f"(j.changed_at_ms, j.seq) {'<' if newest_first else '>'} (%s, %s)", list(after)


def _up_to(fence: Position, newest_first: bool) -> Sql:
    return f"(j.changed_at_ms, j.seq) {'>=' if newest_first else '<='} (%s, %s)", list(fence)


def _source(stream: Group | None) -> Sql:
    if stream is None:
        return "j.state = 'dead'", []
    return "j.state = 'dead' AND j.queue = %s AND j.reason = %s AND j.code = %s", list(stream)


def _fence(streams: list[Group | None], span: Sql, newest_first: bool) -> Position | None:
    """A position before which at most SCAN rows of all streams lie, or None when there are fewer. Reads indexes only."""
    queries, values = [], []
    for stream in streams:
        sql, given = _all([_source(stream), span])
        queries.append(
            f"SELECT * FROM (SELECT changed_at_ms, seq FROM jobs AS j WHERE {sql} {_order(newest_first)} "
            "LIMIT 1 OFFSET %s) AS s"
        )
        values += [*given, SCAN // len(streams)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(queries), values)
        found = [(at_ms, seq) for at_ms, seq in cursor.fetchall()]
    if not found:
        return None
    return max(found) if newest_first else min(found)


def _merged(streams: list[Group | None], condition: Sql, limit: int, newest_first: bool) -> list[DeadRow]:
    queries, values = [], []
    for stream in streams:
        sql, given = _all([_source(stream), condition])
        queries.append(
            f"SELECT * FROM (SELECT {_COLUMNS} FROM jobs AS j WHERE {sql} {_order(newest_first)} LIMIT %s) AS s"
        )
        values += [*given, limit]
    text = queries[0]
    if len(queries) > 1:
        text = f"SELECT * FROM ({' UNION ALL '.join(queries)}) AS m {_order(newest_first)} LIMIT %s"
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
        return _scanned(filter, as_of_ms, cap)
    if low == 0:  # everything, less what died at or after the end of the span
        sql, values = _sum_of_counts(filter)
        parts = [(sql, values), *_sums(filter, pieces(high, END_MS, as_of_ms), sign=-1)]
    else:
        parts = _sums(filter, pieces(low, high, as_of_ms), sign=1)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT " + ", ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]
        )
        numbers = [int(number or 0) for number in cursor.fetchone()]
    if any(abs(number) > CAP for number, (sql, _) in zip(numbers, parts, strict=True) if "FROM jobs" in sql):
        return _scanned(filter, as_of_ms, cap)  # so many deaths in one minute that its rows are not all counted
    return Count(max(0, sum(numbers)))


def _sum_of_counts(filter: Filter) -> Sql:  # noqa: A002
    sql, values = _all([("state = 'dead'", []), _in_group(filter, "")])
    return f"(SELECT sum(n) FROM counts WHERE {sql})", values


def _sums(filter: Filter, cut: Pieces, *, sign: int) -> list[Sql]:  # noqa: A002
    group, group_values = _in_group(filter, "")
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


def _scanned(filter: Filter, as_of_ms: int, cap: int) -> Count:  # noqa: A002
    """By rows: up to `cap` matches in what one answer may look at."""
    streams = _streams(filter)
    if not streams:
        return Count(0)
    span = _in_span(filter, as_of_ms)
    fence = _fence(streams, span, newest_first=False)
    conditions = [span, *_by_row(filter)]
    if fence is not None:
        conditions.append(_up_to(fence, newest_first=False))
    if streams == [None]:
        conditions.append(_in_group(filter))
    queries, values = [], []
    for stream in streams:
        sql, given = _all([_source(stream), *conditions])
        queries.append(f"SELECT * FROM (SELECT 1 AS one FROM jobs AS j WHERE {sql} LIMIT %s) AS s")
        values += [*given, cap + 1]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({' UNION ALL '.join(queries)}) AS m", values)
        n = int(cursor.fetchone()[0])
    return Count(min(n, cap), exact=fence is None and n <= cap)
