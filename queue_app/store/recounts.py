"""Counting rows beside the counters without stopping the queue, and putting the difference right.

The two databases differ. PostgreSQL reads everything in one snapshot, which keeps nobody waiting. SQLite's readers keep
every commit waiting, so rows that never change (which order is of which queue, redrives, outcomes) are counted in bites up
to a last one. One short transaction counts the rest: what came after, and all that is not done, by partial indexes. Then
deaths are compared hour by hour, each in a transaction of its own: a counter's difference does not move meanwhile.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any

from django.db import connection, transaction

from queue_app import clock
from queue_app.policy.recounting import COLUMNS, Difference, Group, Numbers
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS
from queue_app.store import database, places

BITE = (1_000, 50_000)
BITE_MS = 15  # of one read on SQLite
KEEP_OFF_MS = 60_000  # removals wait so long for a recount that was killed
_STAGE = (
    "CASE WHEN state <> 'pending' THEN '' WHEN attempts > 0 THEN 'retrying' WHEN redriven > 0 THEN 'redriven' "
    "ELSE 'new' END"
)


class Recounted(Exception):
    """Somebody else corrected the counters meanwhile; nothing was changed."""


@contextmanager
def _one_snapshot() -> Iterator[None]:
    """PostgreSQL: everything inside sees one instant. SQLite: nothing; a read that lasts would stop every commit."""
    if not database.is_postgresql():
        yield
        return
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _no_removals() -> Iterator[Callable[[], None]]:
    """SQLite: rows that were counted must not be removed before the end; gives what renews the sign."""
    if database.is_postgresql():
        yield lambda: None
        return

    def renew() -> None:
        with database.write():
            places.keep_off(places.RECOUNT, database.now_ms() + KEEP_OFF_MS)

    renew()
    try:
        yield renew
    finally:
        with database.write():
            places.keep_off(places.RECOUNT, 0)


def measure(minutes_from: int, wait: Callable[[float], object]) -> tuple[Numbers, Numbers, int]:
    """(stored, counted, corrections so far) as of one instant. Minutes are compared from `minutes_from` (ms) on.

    `wait(seconds)` leaves SQLite to others between two bites.
    """
    with _no_removals() as renew, _one_snapshot():
        counting = _Counting(minutes_from)
        for part in (counting.orders, counting.redrives, counting.outcomes):
            _walk(part, wait, renew)
        with _moment():
            counting.end()
            stored, corrections = _stored(), places.read(places.RECOUNT)
        for since, until in _slices(minutes_from):
            with _moment():
                counting.deaths(since, until)
                _store_flows(stored, minutes_from, since, until)
        return stored, counting.numbers, corrections


@contextmanager
def _moment() -> Iterator[None]:
    """What is read inside is of one instant."""
    with nullcontext() if database.is_postgresql() else database.write():
        yield


def _slices(minutes_from: int) -> list[tuple[int | None, int | None]]:
    """All of time, cut at hours that have counters; before minutes are kept, at one hour of a day. None: without end."""
    hours = [
        row[0] for row in _rows(f"SELECT DISTINCT start_ms FROM flows WHERE span_ms = {HOUR_MS} ORDER BY start_ms")
    ]
    days = {hour // DAY_MS: hour for hour in reversed(hours) if hour < minutes_from}
    cuts = [*sorted(days.values()), *(hour for hour in hours if hour >= minutes_from)]
    return list(pairwise([None, *cuts, None]))


def _within(column: str, since: int | None, until: int | None) -> str:
    parts = [f"{column} >= {since}"] * (since is not None) + [f"{column} < {until}"] * (until is not None)
    return " AND ".join(parts) or "1 = 1"


def _walk(part: Callable[[int], bool], wait: Callable[[float], object], renew: Callable[[], None]) -> None:
    size, renewed_ms = BITE[0], clock.monotonic_ms()
    while True:
        began_ms = clock.monotonic_ms()
        more = part(size)
        took_ms = clock.monotonic_ms() - began_ms
        if not more:
            return
        wanted = size * 2 if took_ms <= BITE_MS // 2 else size * BITE_MS // took_ms
        size = max(BITE[0], min(BITE[1], wanted))
        if not database.is_postgresql():
            wait(took_ms / 1_000)
        if clock.monotonic_ms() - renewed_ms > KEEP_OFF_MS // 6:
            renew()
            renewed_ms = clock.monotonic_ms()


def _rows(sql: str, values: Sequence[int] = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(values))
        return cursor.fetchall()


class _Counting:
    """Sums of the rows so far, and up to which row."""

    def __init__(self, minutes_from: int) -> None:
        self.numbers = Numbers()
        self._minutes_from = minutes_from
        self._left: defaultdict[int, Numbers] = defaultdict(Numbers)  # by hour: deaths and redrives of those redriven
        self._orders: Counter[str] = Counter()
        self._seq = self._link = self._outcome = -(2**62)  # below every row, also those that tests number

    def _upto(self, table: str, column: str, after: int, size: int | None) -> int | None:
        """The last of the next `size` rows (None: of all); None when there are none."""
        limit = "" if size is None else f"ORDER BY {column} LIMIT {size}"
        sql = f"SELECT max({column}) FROM (SELECT {column} FROM {table} WHERE {column} > %s {limit}) AS s"
        found: int | None = _rows(sql, [after])[0][0]
        return found

    def orders(self, size: int | None) -> bool:
        """How many orders each queue has, whatever their state: an order never changes its queue."""
        upto = self._upto("jobs", "seq", self._seq, size)
        if upto is None:
            return False
        sql = (
            "SELECT queue, count(*), max(CASE WHEN state = 'done' THEN changed_at_ms END) FROM jobs "
            "WHERE seq > %s AND seq <= %s GROUP BY queue"
        )
        for queue, n, last_ms in _rows(sql, [self._seq, upto]):
            self._orders[queue] += n
            self.numbers.saw((queue, "done", "", "", ""), last_ms)
        self._seq = upto
        return True

    def redrives(self, size: int | None) -> bool:
        """Who left quarantine, and when each of them had died: what was frozen says it, else the last failure."""
        upto = self._upto("redrives", "id", self._link, size)
        if upto is None:
            return False
        sql = (
            "SELECT coalesce(r.batch, 0), r.queue, r.reason, r.code, r.at_ms, i.dead_since_ms, f.at_ms, f.outcome "
            "FROM redrives AS r LEFT JOIN plan_items AS i ON i.plan_id = r.batch AND i.job_id = r.job_id "
            "AND i.token = r.token LEFT JOIN failures AS f ON f.job_id = r.job_id AND f.token = (SELECT max(l.token) "
            "FROM failures AS l WHERE l.job_id = r.job_id AND l.token <= r.token) WHERE r.id > %s AND r.id <= %s"
        )
        for batch, queue, reason, code, at_ms, frozen_ms, failed_ms, outcome in _rows(sql, [self._link, upto]):
            group = (queue, reason, code)
            self.numbers.n["results"][batch, *group, "waiting"] += 1
            self._flow("left_n", at_ms, group)
            if frozen_ms is None and outcome in (None, "unknown"):  # buried later than its failure says
                self.numbers.uncertain.add(group)
            died_ms = failed_ms if frozen_ms is None else frozen_ms
            self._flow("died", at_ms if died_ms is None else died_ms, group)
        self._link = upto
        return True

    def outcomes(self, size: int | None) -> bool:
        """First ends after a redrive."""
        upto = self._upto("redrive_outcomes", "id", self._outcome, size)
        if upto is None:
            return False
        sql = (
            "SELECT coalesce(batch, 0), queue, was_reason, was_code, outcome, count(*) FROM redrive_outcomes "
            "WHERE id > %s AND id <= %s GROUP BY 1, 2, 3, 4, 5"
        )
        for batch, queue, reason, code, outcome, n in _rows(sql, [self._outcome, upto]):
            self.numbers.n["results"][batch, queue, reason, code, outcome] += n
            self.numbers.n["results"][batch, queue, reason, code, "waiting"] -= n
        self._outcome = upto
        return True

    def end(self) -> None:
        """What came after the bites, and all that is not done; the rest of each queue is done."""
        for part in (self.orders, self.redrives, self.outcomes):
            part(None)
        counts, left = self.numbers.n["counts"], Counter(self._orders)
        sql = (
            f"SELECT queue, state, {_STAGE}, count(*), max(changed_at_ms) FROM jobs "
            "WHERE state IN ('pending', 'leased') GROUP BY 1, 2, 3"
        )
        for queue, state, stage, n, last_ms in _rows(sql):
            self._found((queue, state, stage, "", ""), n, last_ms, left)
        sql = (
            "SELECT queue, 'dead', '', reason, code, count(*), max(changed_at_ms) FROM jobs WHERE state = 'dead' "
            "GROUP BY queue, reason, code"
        )
        for *place, n, last_ms in _rows(sql):
            self._found(tuple(place), n, last_ms, left)
        for queue, n in left.items():
            counts[queue, "done", "", "", ""] = n
        (late,) = _rows("SELECT count(*) FROM late_finishes")
        self.numbers.n["tallies"][("late_finish",)] = late[0]

    def deaths(self, since: int | None, until: int | None) -> None:
        """Who died and left within a span of whole hours, those included that were redriven since."""
        self.redrives(None)
        for hour in [hour for hour in self._left if (since or hour) <= hour and (until is None or hour < until)]:
            for column, counted in self._left[hour].flows.items():
                self.numbers.flows[column].update(counted)
        cut = f"CASE WHEN changed_at_ms >= %s THEN {MINUTE_MS} ELSE {HOUR_MS} END"
        sql = (
            f"SELECT queue, reason, code, changed_at_ms - changed_at_ms %% {cut}, count(*) FROM jobs "
            f"WHERE state = 'dead' AND {_within('changed_at_ms', since, until)} GROUP BY 1, 2, 3, 4"
        )
        for queue, reason, code, start_ms, n in _rows(sql, [self._minutes_from]):
            for column in ("died", "still"):
                self.numbers.flow(column, start_ms, (queue, reason, code), n, self._minutes_from)

    def _flow(self, column: str, at_ms: int, group: Group) -> None:
        self._left[at_ms - at_ms % HOUR_MS].flow(column, at_ms, group, 1, self._minutes_from)

    def _found(self, place: tuple[str, ...], n: int, last_ms: int, left: Counter[str]) -> None:
        self.numbers.n["counts"][place] = n
        self.numbers.saw(place, last_ms)
        left[place[0]] -= n


def _stored() -> Numbers:
    found = Numbers()
    for table in ("counts", "results", "tallies"):
        columns = ", ".join(COLUMNS[table])
        last = ", max(last_at_ms)" if table == "counts" else ""
        for row in _rows(f"SELECT {columns}, sum(n){last} FROM {table} GROUP BY {columns}"):
            width = len(COLUMNS[table])
            found.n[table][row[:width]] = int(row[width])
            if last:
                found.saw(row[:width], row[width + 1])
    return found


def _store_flows(found: Numbers, minutes_from: int, since: int | None, until: int | None) -> None:
    columns = ", ".join(COLUMNS["flows"])
    spans = ((HOUR_MS, since), (MINUTE_MS, max(since or minutes_from, minutes_from)))
    for span, first in spans:
        sql = (
            f"SELECT {columns}, sum(died), sum(left_n), sum(still) FROM flows "
            f"WHERE span_ms = {span} AND {_within('start_ms', first, until)} GROUP BY {columns}"
        )
        for *place, died, left, still in _rows(sql):
            for column, n in (("died", died), ("left_n", left), ("still", still)):
                found.flows[column][tuple(place)] = int(n)


def correct(found: Sequence[Difference], corrections: int) -> None:
    """Add the differences to slot 0, in the caller's transaction. Recounted when somebody else did so since."""
    if not places.replace(places.RECOUNT, corrections, corrections + 1):
        raise Recounted
    with connection.cursor() as cursor:
        for one in found:
            keys = COLUMNS[one.table]
            value = one.counted if one.column == "last_at_ms" else one.delta
            kept = f"t.{one.column} + excluded.{one.column}"
            if one.column == "last_at_ms":
                kept = "CASE WHEN t.last_at_ms > excluded.last_at_ms THEN t.last_at_ms ELSE excluded.last_at_ms END"
            cursor.execute(
                f"INSERT INTO {one.table} AS t ({', '.join(keys)}, slot, {one.column}) "
                f"VALUES ({database.placeholders(len(keys))}, 0, %s) "
                f"ON CONFLICT ({', '.join(keys)}, slot) DO UPDATE SET {one.column} = {kept}",
                [*one.place, value],
            )
