"""Orders outside the quarantine, page by page, and any order by the beginning of its id. By position, never by offset.

Each page looks at a bounded number of rows: a search that found too little by then says so and goes on from there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.reads.conditions import beginning

LOOKED_AT = 10_000  # rows of one page's search at most
PAGE_SIZE = 50
LISTS = ("pending", "leased", "unknown", "done")
"""Waiting for delivery, being delivered, of these the ones with an unknown answer, delivered."""

_COLUMNS = (
    "id, seq, queue, quantity, state, reason, code, attempts, max_attempts, redriven, available_at, lease_until, owner"
)
_PLACES = {"pending": r"[0-9]{1,15}\.[0-9]{1,19}", "leased": r"[0-9]{1,15}\.[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"}
_PLACES |= {"unknown": _PLACES["leased"], "done": r"[0-9]{1,19}", "": r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"}
_UNPROVED = "EXISTS (SELECT 1 FROM failures AS f WHERE f.job_id = j.id AND f.token = j.token AND f.outcome = 'unknown')"


class PlaceError(SnackOpsError, ValueError):
    """A link into the list that cannot be read."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One order. Instants in ms; `unproved`: its last delivery got an answer that proves nothing."""

    id: str
    seq: int
    queue: str
    quantity: int
    state: str
    reason: str
    code: str
    attempts: int
    max_attempts: int
    redriven: int
    available_at: int
    lease_until: int | None
    owner: str | None
    changed_at_ms: int
    unproved: bool


@dataclass(frozen=True, slots=True)
class OrderPage:
    """One page. `next`: the place to go on from, None at the end; `searching`: not every row was looked at yet."""

    rows: tuple[OrderRow, ...]
    next: str | None
    searching: bool


def page(which: str, queues: Sequence[str], as_of_ms: int, *, after: str = "", size: int = PAGE_SIZE) -> OrderPage:
    """A page of one of LISTS: waiting by when they are due, being delivered by the lease's end, delivered the last
    accepted first. `queues` are those to show. Raises PlaceError for an `after` that no page gave out."""
    place = _place(which, after)
    found = _SEARCHES[which](queues, place, as_of_ms, size + 1)
    return _page(which, found[0], size, found[1])


def beginning_with(prefix: str, *, after: str = "", size: int = PAGE_SIZE) -> OrderPage:
    """Orders of any state whose id begins so, by id. Raises PlaceError."""
    (start,) = _place("", after) or ("",)
    condition, values = beginning(prefix)
    return _page("", _read(f"{condition} AND j.id > %s", [*values, start], "j.id", size + 1), size, None)


def _place(which: str, text: str) -> tuple[Any, ...] | None:
    if not text:
        return None
    if not re.fullmatch(_PLACES[which], text):
        raise PlaceError(gettext_noop("This link into the list cannot be read; start at its beginning."))
    if which == "":
        return (text,)
    first, _, rest = text.partition(".")
    numbers = (int(first),) if which == "done" else (int(first), int(rest) if which == "pending" else rest)
    if any(type(number) is int and number >= 2**63 for number in numbers):
        raise PlaceError(gettext_noop("This link into the list cannot be read; start at its beginning."))
    return numbers


def _place_of(which: str, row: OrderRow) -> str:
    if which == "pending":
        return f"{row.available_at}.{row.seq}"
    if which in ("leased", "unknown"):
        return f"{row.lease_until}.{row.id}"
    return str(row.seq) if which == "done" else row.id


def _page(which: str, rows: list[OrderRow], size: int, searched_to: str | None) -> OrderPage:
    shown = tuple(rows[:size])
    if len(rows) > size:
        return OrderPage(shown, _place_of(which, shown[-1]), searching=False)
    return OrderPage(shown, searched_to, searching=searched_to is not None)


# --- searches: rows, and how far the search came when it was cut short ------------------------------------------------

_Found = tuple[list[OrderRow], str | None]


def _pending(queues: Sequence[str], place: tuple[Any, ...] | None, _as_of_ms: int, limit: int) -> _Found:
    """Per queue along the claim's own index, then merged: no index has the due times of all queues in one order."""
    found: list[OrderRow] = []
    for queue in queues:
        sql, values = "j.queue = %s AND j.state = 'pending'", [queue]
        if place is not None:
            sql, values = f"{sql} AND (j.available_at, j.seq) > (%s, %s)", [*values, *place]
        found += _read(sql, values, "j.available_at, j.seq", limit)
    return sorted(found, key=lambda row: (row.available_at, row.seq))[:limit], None


def _leased(queues: Sequence[str], place: tuple[Any, ...] | None, _as_of_ms: int, limit: int) -> _Found:
    return _leases(queues, place, limit), None


def _unknown(queues: Sequence[str], place: tuple[Any, ...] | None, as_of_ms: int, limit: int) -> _Found:
    looked_at = _leases(queues, place, LOOKED_AT)
    wanted = [row for row in looked_at if row.unproved or (row.lease_until or 0) <= as_of_ms]
    cut = len(looked_at) == LOOKED_AT and len(wanted) < limit
    return wanted[:limit], _place_of("unknown", looked_at[-1]) if cut else None


def _leases(queues: Sequence[str], place: tuple[Any, ...] | None, limit: int) -> list[OrderRow]:
    sql, values = _of_queues(queues, "j.state = 'leased'")
    if place is not None:
        sql, values = f"{sql} AND (j.lease_until, j.id) > (%s, %s)", [*values, *place]
    return _read(sql, values, "j.lease_until, j.id", limit)


def _done(queues: Sequence[str], place: tuple[Any, ...] | None, _as_of_ms: int, limit: int) -> _Found:
    """Along the order of acceptance, a bounded stretch of it: there is no index of delivered orders, which every
    finish would have to pay for."""
    bound, values = ("WHERE s.seq < %s", [*place]) if place is not None else ("", [])
    stretch = f"SELECT s.seq FROM jobs AS s {bound} ORDER BY s.seq DESC LIMIT {LOOKED_AT}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), min(seq) FROM ({stretch}) AS t", values)
        n, lowest = cursor.fetchone()
    if not n:
        return [], None
    sql, given = _of_queues(queues, "j.state = 'done' AND j.seq >= %s")
    if place is not None:
        sql, given = f"{sql} AND j.seq < %s", [*given, *place]
    rows = _read(sql, [lowest, *given], "j.seq DESC", limit)
    return rows, str(lowest) if n == LOOKED_AT and len(rows) < limit else None


_SEARCHES = {"pending": _pending, "leased": _leased, "unknown": _unknown, "done": _done}


def _of_queues(queues: Sequence[str], condition: str) -> tuple[str, list[Any]]:
    return f"{condition} AND j.queue IN ({', '.join(['%s'] * len(queues))})", [*queues]


def _read(condition: str, values: Sequence[Any], order: str, limit: int) -> list[OrderRow]:
    columns = ", ".join(f"j.{name.strip()}" for name in (_COLUMNS + ", changed_at_ms").split(","))
    unproved = f"CASE WHEN j.state = 'leased' AND {_UNPROVED} THEN 1 ELSE 0 END"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns}, {unproved} FROM jobs AS j WHERE {condition} ORDER BY {order} LIMIT %s",
            [*values, limit],
        )
        return [OrderRow(*(*row[:-1], bool(row[-1]))) for row in cursor.fetchall()]
