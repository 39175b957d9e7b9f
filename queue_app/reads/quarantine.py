"""The list of the quarantine, page by page: by position, never by offset, so that nothing is skipped or repeated while
orders die and leave, and page one thousand costs what page one costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import connection

from queue_app.policy.cursors import NEWEST, OLDEST, Cursor, PageRequest
from queue_app.policy.filters import Filter
from queue_app.policy.plans import OPEN
from queue_app.reads import dead
from queue_app.reads.conditions import last_looks
from queue_app.reads.dead import Count, DeadRow, Position, Stretch


@dataclass(frozen=True, slots=True)
class ListedRow:
    """One row of the list. `place`: the cursor at this row, for links that know their neighbours; `looked`: somebody
    investigated it or its group after its death; `held_by`: the open plan that holds it."""

    job: DeadRow
    place: str
    looked: bool
    held_by: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """One page as of an instant. `count`: all that match; `newer`: matching ones that died since, not in the list.

    `next` and `previous` are cursors, None at the ends. `searching`: the search stopped after a bounded number of rows
    before the page was full, and `next` goes on with it.
    """

    filter: Filter
    as_of_ms: int
    sort: str
    size: int
    rows: tuple[ListedRow, ...]
    count: Count
    newer: Count
    next: str | None
    previous: str | None
    searching: bool


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The orders before and after one in the list, each with the cursor at it; None at the ends."""

    previous: tuple[str, str] | None
    next: tuple[str, str] | None


def page(filter: Filter, request: PageRequest, now_ms: int) -> Page:  # noqa: A002
    """The page asked for; the first one of a list is as of now, later ones as of their cursor."""
    cursor = request.cursor
    # One millisecond more, so that what died in this very millisecond is in the list that is opened now.
    as_of_ms = min(cursor.as_of_ms, now_ms + 1) if cursor else now_ms + 1
    maker = _Maker(filter, request.sort, as_of_ms)
    if cursor and cursor.back:
        part = maker.before((cursor.at_ms, cursor.seq), request.size)
    else:
        part = maker.beyond((cursor.at_ms, cursor.seq) if cursor else None, request.size)
    return Page(
        filter=filter,
        as_of_ms=as_of_ms,
        sort=request.sort,
        size=request.size,
        rows=maker.listed(part.rows),
        count=dead.count(filter, as_of_ms),
        newer=newer(filter, as_of_ms, now_ms),
        next=maker.cursor(part.goes_on, back=False) if part.goes_on else None,
        previous=maker.cursor(part.goes_back, back=True) if part.goes_back else None,
        searching=part.searching,
    )


def newer(filter: Filter, as_of_ms: int, now_ms: int) -> Count:  # noqa: A002
    """How many that match died at or after the as-of time of a list."""
    if filter.min_age_ms or (filter.died_to_ms is not None and filter.died_to_ms <= as_of_ms):
        return Count(0)
    since = max(as_of_ms, filter.died_from_ms or 0)
    return dead.count(replace(filter, died_from_ms=since, min_age_ms=None, max_age_ms=None), now_ms + 1)


def neighbours(filter: Filter, cursor: Cursor) -> Neighbours:  # noqa: A002
    """What stands beside the place of a cursor, though the row there may be gone. Two bounded searches."""
    maker = _Maker(filter, cursor.sort, cursor.as_of_ms)
    place = (cursor.at_ms, cursor.seq)
    found = [maker.read(place, 1, back=back).rows for back in (True, False)]
    beside = [(rows[0].id, maker.cursor(rows[0].position, back=False)) if rows else None for rows in found]
    return Neighbours(*beside)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows and where the list goes on from them, both ways."""

    rows: list[DeadRow]
    goes_on: Position | None
    goes_back: Position | None
    searching: bool


class _Maker:
    """Reads one list: a filter, a sort, an instant."""

    def __init__(self, filter: Filter, sort: str, as_of_ms: int) -> None:  # noqa: A002
        self._filter, self._sort, self._as_of_ms = filter, sort, as_of_ms
        self._digest = filter.digest()

    def cursor(self, position: Position, *, back: bool) -> str:
        return Cursor(self._digest, self._sort, back, self._as_of_ms, *position).encode()

    def read(self, place: Position | None, limit: int, *, back: bool) -> Stretch:
        newest_first = (self._sort == NEWEST) != back
        return dead.stretch(self._filter, self._as_of_ms, place, limit, newest_first=newest_first)

    def beyond(self, after: Position | None, size: int) -> _Part:
        """One more row than the page is read, to know whether the list goes on."""
        found = self.read(after, size + 1, back=False)
        rows = found.rows[:size]
        goes_on = found.searched_to or (rows[-1].position if len(found.rows) > size else None)
        goes_back = None
        if after is not None:
            goes_back = rows[0].position if rows else self._past(after, back=False)
        return _Part(rows, goes_on, goes_back, found.searched_to is not None)

    def before(self, place: Position, size: int) -> _Part:
        """The rows before a place, in the order of the list; the list's beginning when none is left there."""
        found = self.read(place, size + 1, back=True)
        rows = found.rows[:size][::-1]
        if not rows and found.searched_to is None:
            return self.beyond(None, size)
        goes_back = found.searched_to or (rows[0].position if len(found.rows) > size else None)
        goes_on = rows[-1].position if rows else self._past(place, back=True)
        return _Part(rows, goes_on, goes_back, found.searched_to is not None)

    def _past(self, place: Position, *, back: bool) -> Position:
        """A place just beyond one, so that turning round there meets the row at it."""
        step = 1 if (self._sort == OLDEST) != back else -1
        return place[0], max(place[1] + step, 0)

    def listed(self, rows: Sequence[DeadRow]) -> tuple[ListedRow, ...]:
        seen, looks, held = _looked_at(rows), last_looks(), _held(rows)
        return tuple(
            ListedRow(
                job=row,
                place=self.cursor(row.position, back=False),
                looked=row.id in seen or looks.get(row.group, 0) > row.changed_at_ms,
                held_by=held.get(row.id),
            )
            for row in rows
        )


def _looked_at(rows: Sequence[DeadRow]) -> set[str]:
    """Those that an investigation of their own covers."""
    if not rows:
        return set()
    died = {row.id: row.changed_at_ms for row in rows}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT job_id, max(as_of_ms) FROM investigations WHERE job_id <> '' "
            f"AND job_id IN ({', '.join(['%s'] * len(died))}) GROUP BY job_id",
            list(died),
        )
        return {job_id for job_id, as_of_ms in cursor.fetchall() if as_of_ms > died[job_id]}


def _held(rows: Sequence[DeadRow]) -> dict[str, int]:
    if not rows:
        return {}
    ids, states = ", ".join(["%s"] * len(rows)), ", ".join(["%s"] * len(OPEN))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT h.job_id, h.plan_id FROM holds AS h JOIN plans AS p ON p.id = h.plan_id "
            f"WHERE h.job_id IN ({ids}) AND p.state IN ({states})",
            [*(row.id for row in rows), *OPEN],
        )
        return dict(cursor.fetchall())
