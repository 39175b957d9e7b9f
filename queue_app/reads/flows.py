"""In and out of the quarantine over time, from the counters of minutes and hours."""

from collections.abc import Sequence

from django.db import connection

from queue_app.policy.figures import Bucket, Surge, Window
from queue_app.policy.headlines import surge_hour_ms, surge_minute_ms
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS, WINDOWS, Pieces, floor, pieces, window_start_ms
from queue_app.reads.conditions import Group

END_MS = HOUR_MS * 10**12  # after every instant, on a whole hour


def hours(as_of_ms: int, days: int = 7) -> tuple[Bucket, ...]:
    """Every hour of the last days, the present one last; hours without a move are zeros. One query."""
    return _series(HOUR_MS, floor(as_of_ms, HOUR_MS) - days * DAY_MS + HOUR_MS, floor(as_of_ms, HOUR_MS))


def minutes(from_ms: int, to_ms: int) -> tuple[Bucket, ...]:
    """Every minute that begins within [from, to]. One query."""
    return _series(MINUTE_MS, floor(from_ms, MINUTE_MS), floor(to_ms, MINUTE_MS))


def _series(span_ms: int, first_ms: int, last_ms: int) -> tuple[Bucket, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT start_ms, sum(died), sum(left_n), sum(still) FROM flows WHERE span_ms = %s AND start_ms >= %s "
            "AND start_ms <= %s GROUP BY start_ms",
            [span_ms, first_ms, last_ms],
        )
        found = {start: (int(died), int(left), int(still)) for start, died, left, still in cursor.fetchall()}
    starts = range(max(first_ms, 0), last_ms + 1, span_ms)
    return tuple(Bucket(start, *found.get(start, (0, 0, 0))) for start in starts)


def trends(as_of_ms: int) -> dict[Group, tuple[int, ...]]:
    """Deaths in each of the last 24 hours by group, the present hour last. Groups without any are absent. One query."""
    first = floor(as_of_ms, HOUR_MS) - DAY_MS + HOUR_MS
    found: dict[Group, list[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT queue, reason, code, start_ms, sum(died) FROM flows WHERE span_ms = %s AND start_ms >= %s "
            "AND start_ms <= %s GROUP BY queue, reason, code, start_ms",
            [HOUR_MS, first, floor(as_of_ms, HOUR_MS)],
        )
        for queue, reason, code, start, died in cursor.fetchall():
            found.setdefault((queue, reason, code), [0] * 24)[(start - first) // HOUR_MS] = int(died)
    return {group: tuple(counts) for group, counts in found.items()}


def deaths_since(since_ms: int) -> dict[Group, int]:
    """All deaths since a whole minute of the last days, by group. One query."""
    return _by_group("died", pieces(since_ms, END_MS, since_ms))


def still_since(since_ms: int, as_of_ms: int) -> dict[Group, int]:
    """What died since a window's beginning and is dead now, by group. One query."""
    return _by_group("still", pieces(since_ms, END_MS, as_of_ms))


def surge(seven_days: Sequence[Bucket], total: int) -> Surge | None:
    """The wave that most of the quarantine came with, or None. At most two queries."""
    hour_ms = surge_hour_ms(seven_days, total)
    if hour_ms is None:
        return None
    since_ms = surge_minute_ms(minutes(hour_ms, hour_ms + HOUR_MS - 1))
    if since_ms is None:
        return None
    shares = _by_group("still", pieces(since_ms, END_MS, since_ms))
    ranked = sorted(((group, n) for group, n in shares.items() if n > 0), key=lambda share: (-share[1], share[0]))
    return Surge(since_ms, sum(n for _, n in ranked), tuple(ranked))


def _by_group(column: str, cut: Pieces) -> dict[Group, int]:
    sql, values = _rows(f"queue, reason, code, {column} AS n", cut)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT queue, reason, code, sum(n) FROM ({sql}) AS p GROUP BY queue, reason, code", values)
        return {(queue, reason, code): int(n) for queue, reason, code, n in cursor.fetchall()}


def windows(as_of_ms: int, dead: int, redrives: int) -> tuple[Window, ...]:
    """The windows of the pages. One query.

    Since ever, as many died as are dead now or were redriven: nothing else leads out of the quarantine.
    """
    starts = {name: window_start_ms(length, as_of_ms) for name, length in WINDOWS.items() if length is not None}
    queries, values = [], []
    for place, start in enumerate(starts.values()):
        sql, given = _rows(f"{place} AS place, died, still", pieces(start, END_MS, as_of_ms))
        queries.append(sql)
        values += given
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT place, sum(died), sum(still) FROM ({' UNION ALL '.join(queries)}) AS p GROUP BY place", values
        )
        found = {place: (int(died), int(still)) for place, died, still in cursor.fetchall()}
    timed = [Window(name, start, *found.get(place, (0, 0))) for place, (name, start) in enumerate(starts.items())]
    return (*timed, Window("all", None, dead + redrives, dead))


def _rows(columns: str, cut: Pieces) -> tuple[str, list[int]]:
    queries, values = [], []
    for span_ms, spans in ((HOUR_MS, cut.hours), (MINUTE_MS, cut.minutes)):
        for low, high in spans:
            queries.append(f"SELECT {columns} FROM flows WHERE span_ms = %s AND start_ms >= %s AND start_ms < %s")
            values += [span_ms, low, high]
    return " UNION ALL ".join(queries), values
