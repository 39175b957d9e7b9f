"""Events of the record as people read them: a page of the list, one event with its neighbours, the rows of an export.

A page costs the same at ten events and ten million. Without a person or target the newest events are taken from the
index of each action, so that events which are not shown (refused attempts for an operator, the redriver's steps) cost
nothing however many they are. With one, at most SCAN events of that person or target are looked at for one page, and
the page says where it stopped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import AuditEvent
from queue_app.policy.audit_filters import AuditFilter
from queue_app.reads import audit_search

PAGE = 50

_FIELDS = (
    *("seq", "link", "at_ms", "actor_id", "name", "roles", "action", "target", "note", "source", "proof", "detail"),
    *("prev", "hash", "version"),
)


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event as it is stored; `detail` is its JSON text."""

    seq: int
    link: int
    at_ms: int
    actor_id: int | None
    name: str
    roles: str
    action: str
    target: str
    note: str
    source: str
    proof: str
    detail: str
    prev: str
    hash: str
    version: int


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first. `older` and `newer` are places to go on from, None at the ends.

    `searched_to`: the search stopped at this event although older ones may match; `older` goes on from there.
    """

    rows: Sequence[EventRow]
    older: int | None
    newer: int | None
    searched_to: int | None = None


def page(
    wanted: AuditFilter, *, with_refused: bool, before: int | None = None, after: int | None = None, size: int = PAGE
) -> Page:
    """A page of events older than `before`, or newer than `after`, or the newest. At most six queries."""
    low, high = audit_search.bounds(wanted)
    up = after is not None and before is None
    if up and after is not None:
        low = max(low, after + 1)
    elif before is not None:
        high = min(high, before)
    span = audit_search.Span(low, high, *audit_search.by_time(wanted))
    driver = audit_search.driver(wanted)
    if driver is None:
        found, searched_to = (
            audit_search.by_action(audit_search.actions(wanted, with_refused), span, size + 1, up=up),
            None,
        )
    else:
        found, searched_to = audit_search.by_scan(driver, wanted, with_refused, span, size + 1, up=up)
    more = len(found) > size
    seqs = sorted(found[:size], reverse=True)
    rows = _rows(seqs)
    if up:
        older = seqs[-1] if seqs else (after or 0) + 1
        return Page(rows, older, seqs[0] if more else searched_to, searched_to)
    newer = seqs[0] if seqs and before is not None else before - 1 if before else None
    return Page(rows, seqs[-1] if more else searched_to, newer, searched_to)


def event(seq: int) -> EventRow | None:
    """One event, or None."""
    return _one(_rows([seq]))


def of_target(target: str, actions: Sequence[str], limit: int) -> list[EventRow]:
    """Events of these actions about one target, oldest first, at most `limit`; its other events cost nothing."""
    ends = [
        AuditEvent.objects.filter(target=target).order_by(order).values_list("seq", flat=True).first()
        for order in ("seq", "-seq")
    ]
    if ends[0] is None or ends[1] is None:
        return []
    # A sum of texts has no index, so each action is read from its own, within the ends.
    span = audit_search.Span(ends[0], ends[1] + 1, ["target || '' = %s"], [target])
    return _rows(audit_search.by_action(actions, span, limit, up=True))[::-1]


def known_names(limit: int = 50) -> list[str]:
    """Names of people, to be offered while typing."""
    return list(User.objects.order_by("username").values_list("username", flat=True)[:limit])


def count(
    wanted: AuditFilter, *, with_refused: bool, upto: int, look: int | None = None, rest: Callable[[], object] = bool
) -> int:
    """Exactly how many events with seq <= `upto` match. It looks at as many rows as there are: for exports only.

    Each look is a statement over `look` events (None: all) of those that an index tells apart: a filter by what is rare
    costs little in any record. `rest()` is called between two looks.
    """
    sql, values, low, high = _whole(wanted, with_refused, upto)
    n = 0
    for first, last in _looks(wanted, low, high, look, rest):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM audit WHERE {sql}", [*values, first, last])
            n += int(cursor.fetchone()[0])
    return n


def stretch(
    wanted: AuditFilter,
    *,
    with_refused: bool,
    upto: int,
    after: int,
    limit: int,
    look: int | None = None,
    rest: Callable[[], object] = bool,
) -> list[EventRow]:
    """The next matching events with after < seq <= upto, oldest first; in looks with rests between as in `count`."""
    sql, values, low, high = _whole(wanted, with_refused, upto)
    rows: list[EventRow] = []
    for first, last in _looks(wanted, max(low, after + 1), high, look, rest):
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(_FIELDS)} FROM audit WHERE {sql} ORDER BY seq LIMIT %s",
                [*values, first, last, limit - len(rows)],
            )
            rows += [EventRow(*row) for row in cursor.fetchall()]
        if len(rows) == limit:
            break
    return rows


def _looks(
    wanted: AuditFilter, low: int, high: int, look: int | None, rest: Callable[[], object]
) -> Iterator[tuple[int, int]]:
    """The first and last seq of each look, which together are low to high."""
    walked = audit_search.walked(wanted) if look is not None else None
    while low <= high:
        last = high if look is None else _end_of_look(walked, low, high, look)
        yield low, last
        low = last + 1
        if low <= high:
            rest()


def _end_of_look(walked: tuple[str, list[Any]] | None, low: int, high: int, look: int) -> int:
    """The seq up to which about `look` events are walked. Reads an index only."""
    if walked is None:
        return min(high, low + look - 1)
    sql, values = walked
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT seq FROM audit WHERE {sql} AND seq >= %s AND seq <= %s ORDER BY seq LIMIT 1 OFFSET %s",
            [*values, low, high, look - 1],
        )
        found = cursor.fetchone()
    return high if found is None else int(found[0])


def _whole(wanted: AuditFilter, with_refused: bool, upto: int) -> tuple[str, list[Any], int, int]:
    """The condition with its values, which ends with two bounds of seq; and the lowest and highest seq that may match."""
    driver, driver_values = audit_search.driver(wanted) or ("TRUE", [])
    rest, rest_values = audit_search.rest(wanted, with_refused=with_refused)
    low, high = audit_search.bounds(wanted)
    sql = " AND ".join([f"({driver})", *rest, "seq >= %s", "seq <= %s"])
    return sql, [*driver_values, *rest_values], low, min(high - 1, upto)


def _rows(seqs: Sequence[int]) -> list[EventRow]:
    found = AuditEvent.objects.filter(pk__in=seqs).order_by("-seq").values_list(*_FIELDS) if seqs else []
    return [EventRow(*row) for row in found]


def _one(rows: list[EventRow]) -> EventRow | None:
    return rows[0] if rows else None
