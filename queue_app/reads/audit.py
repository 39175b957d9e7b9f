"""Events of the record as people read them: a page of the list, one event with its neighbours, the rows of an export.

A page costs the same at ten events and ten million. Without a person or target the newest events are taken from the
index of each action, so that events which are not shown (refused attempts for an operator, the redriver's steps) cost
nothing however many they are. With one, at most SCAN events of that person or target are looked at for one page, and
the page says where it stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import AuditEvent
from queue_app.policy.audit_filters import REFUSED, STEP, AuditFilter

PAGE = 50
SCAN = 20_000
CLOCK_STEP_MS = 3_600_000  # a clock set back by more than this may hide an event from a filter by time

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


@dataclass(frozen=True, slots=True)
class _Span:
    """Events with low <= seq < high that match, and who may be looked for: SQL with its values."""

    low: int
    high: int
    conditions: list[str]
    values: list[Any]

    @property
    def where(self) -> str:
        return " AND ".join(self.conditions) or "TRUE"


def page(
    wanted: AuditFilter, *, with_refused: bool, before: int | None = None, after: int | None = None, size: int = PAGE
) -> Page:
    """A page of events older than `before`, or newer than `after`, or the newest. At most six queries."""
    low, high = _bounds(wanted)
    up = after is not None and before is None
    if up and after is not None:
        low = max(low, after + 1)
    elif before is not None:
        high = min(high, before)
    span = _Span(low, high, *_by_time(wanted))
    driver = _driver(wanted)
    if driver is None:
        found, searched_to = _by_action(_actions(wanted, with_refused), span, size + 1, up=up), None
    else:
        found, searched_to = _by_scan(driver, wanted, with_refused, span, size + 1, up=up)
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
    span = _Span(ends[0], ends[1] + 1, ["target || '' = %s"], [target])
    return _rows(_by_action(actions, span, limit, up=True))[::-1]


def known_names(limit: int = 50) -> list[str]:
    """Names of people, to be offered while typing."""
    return list(User.objects.order_by("username").values_list("username", flat=True)[:limit])


def count(wanted: AuditFilter, *, with_refused: bool, upto: int) -> int:
    """Exactly how many events with seq <= `upto` match. It looks at as many rows as there are: for exports only."""
    sql, values = _whole(wanted, with_refused, upto)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM audit WHERE {sql}", values)
        return int(cursor.fetchone()[0])


def stretch(wanted: AuditFilter, *, with_refused: bool, upto: int, after: int, limit: int) -> list[EventRow]:
    """The next matching events with after < seq <= upto, oldest first."""
    sql, values = _whole(wanted, with_refused, upto)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(_FIELDS)} FROM audit WHERE seq > %s AND {sql} ORDER BY seq LIMIT %s",
            [after, *values, limit],
        )
        return [EventRow(*row) for row in cursor.fetchall()]


# --- conditions -----------------------------------------------------------------------------------------------------


def _driver(wanted: AuditFilter) -> tuple[str, list[Any]] | None:
    """The condition with an index of its own that finds the fewest rows; None: only the action and the time count."""
    if wanted.stored_target is not None:
        return "target = %s", [wanted.stored_target]
    if wanted.who is None:
        return None
    person = User.objects.filter(username=wanted.who).values_list("pk", flat=True).first()
    if person is not None:
        return "actor_id = %s", [person]
    return "actor_id IS NULL AND (name = %s OR source = %s)", [wanted.who, wanted.who]


def _by_time(wanted: AuditFilter) -> tuple[list[str], list[Any]]:
    bounds = [("at_ms >= %s", wanted.from_ms), ("at_ms < %s", wanted.to_ms)]
    return [sql for sql, at_ms in bounds if at_ms is not None], [at_ms for _sql, at_ms in bounds if at_ms is not None]


def _rest(wanted: AuditFilter, *, with_refused: bool) -> tuple[list[str], list[Any]]:
    """Everything but the driver: time, action, person, and what is not shown."""
    conditions, values = _by_time(wanted)
    if wanted.refused:
        conditions.append("action = %s")
        values.append(REFUSED)
    if wanted.action is not None:
        conditions.append("action = %s")
        values.append(wanted.action)
    elif not wanted.steps:
        conditions.append("action <> %s")
        values.append(STEP)
    if not with_refused:
        conditions.append("action <> %s")
        values.append(REFUSED)
    if wanted.who is not None and wanted.target is not None:
        sql, people = _driver(AuditFilter(who=wanted.who)) or ("TRUE", [])
        conditions.append(f"({sql})")
        values += people
    return conditions, values


def _whole(wanted: AuditFilter, with_refused: bool, upto: int) -> tuple[str, list[Any]]:
    driver, driver_values = _driver(wanted) or ("TRUE", [])
    rest, rest_values = _rest(wanted, with_refused=with_refused)
    low, high = _bounds(wanted)
    sql = " AND ".join([f"({driver})", "seq >= %s", "seq <= %s", *rest])
    return sql, [*driver_values, low, min(high - 1, upto), *rest_values]


def _bounds(wanted: AuditFilter) -> tuple[int, int]:
    """low <= seq < high of the filter's time: found by halving, because seq grows with time except where clocks step."""
    low = 1 if wanted.from_ms is None else _first_since(wanted.from_ms - CLOCK_STEP_MS)
    high = 2**63 - 1 if wanted.to_ms is None else _first_since(wanted.to_ms + CLOCK_STEP_MS)
    return low, high


def _first_since(at_ms: int) -> int:
    """The first seq at or after an instant, or the one after the last; one statement, about 25 looks at ten million."""
    middle = "(SELECT at_ms FROM audit WHERE seq = (low + high) / 2) < %s"
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE half(low, high) AS ("
            "SELECT CAST(0 AS bigint), (SELECT coalesce(max(seq), 0) + 1 FROM audit) UNION ALL "
            f"SELECT CASE WHEN {middle} THEN (low + high) / 2 ELSE low END, "
            f"CASE WHEN {middle} THEN high ELSE (low + high) / 2 END FROM half WHERE high - low > 1"
            ") SELECT min(high) FROM half",
            [at_ms, at_ms],
        )
        return int(cursor.fetchone()[0])


# --- looking --------------------------------------------------------------------------------------------------------


def _actions(wanted: AuditFilter, with_refused: bool) -> list[str]:
    """The actions to be shown: the one asked for, or all that ever happened, hopping through the index."""
    if wanted.action is not None or wanted.refused:
        asked = {action for action in (wanted.action, REFUSED if wanted.refused else None) if action}
        return list(asked) if len(asked) == 1 and (with_refused or REFUSED not in asked) else []
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE hop(action) AS (SELECT min(action) FROM audit UNION ALL "
            "SELECT (SELECT min(action) FROM audit WHERE action > hop.action) FROM hop WHERE hop.action IS NOT NULL"
            ") SELECT action FROM hop WHERE action IS NOT NULL"
        )
        found = [action for (action,) in cursor.fetchall()]
    hidden = {*(() if wanted.steps else (STEP,)), *(() if with_refused else (REFUSED,))}
    return [action for action in found if action not in hidden]


def _by_action(actions: Sequence[str], span: _Span, limit: int, *, up: bool) -> list[int]:
    """The newest (or next newer) seqs of these actions, each action from its index."""
    if not actions:
        return []
    order = "ASC" if up else "DESC"
    one = (
        f"SELECT seq FROM (SELECT seq FROM audit WHERE action = %s AND seq >= %s AND seq < %s AND {span.where} "
        f"ORDER BY seq {order} LIMIT %s) AS found"
    )
    values = [value for action in actions for value in (action, span.low, span.high, *span.values, limit)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT seq FROM ({' UNION ALL '.join([one] * len(actions))}) AS every ORDER BY seq {order} LIMIT %s",
            [*values, limit],
        )
        return [seq for (seq,) in cursor.fetchall()]


def _by_scan(
    driver: tuple[str, list[Any]], wanted: AuditFilter, with_refused: bool, span: _Span, limit: int, *, up: bool
) -> tuple[list[int], int | None]:
    """Seqs of one person or target; and, when SCAN rows were looked at without filling the page, the last of them."""
    order = "ASC" if up else "DESC"
    rest, rest_values = _rest(wanted, with_refused=with_refused)
    inner = (
        f"SELECT seq, at_ms, actor_id, name, source, action FROM audit WHERE {driver[0]} AND seq >= %s AND seq < %s "
        f"ORDER BY seq {order} LIMIT {SCAN}"
    )
    values = [*driver[1], span.low, span.high]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT seq FROM ({inner}) AS scanned WHERE {' AND '.join(rest) or 'TRUE'} ORDER BY seq {order} LIMIT %s",
            [*values, *rest_values, limit],
        )
        found = [seq for (seq,) in cursor.fetchall()]
        if len(found) == limit:
            return found, None
        cursor.execute(f"SELECT count(*), {'max' if up else 'min'}(seq) FROM ({inner}) AS scanned", values)
        scanned, last = cursor.fetchone()
    return found, last if scanned == SCAN else None


def _rows(seqs: Sequence[int]) -> list[EventRow]:
    found = AuditEvent.objects.filter(pk__in=seqs).order_by("-seq").values_list(*_FIELDS) if seqs else []
    return [EventRow(*row) for row in found]


def _one(rows: list[EventRow]) -> EventRow | None:
    return rows[0] if rows else None
