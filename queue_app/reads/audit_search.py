"""How events are found: by the index of each action, or of one person or target, at a bounded cost (see `reads.audit`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from queue_app.policy.audit_filters import REFUSED, STEP, AuditFilter

SCAN = 20_000
CLOCK_STEP_MS = 3_600_000  # a clock set back by more than this may hide an event from a filter by time


@dataclass(frozen=True, slots=True)
class Span:
    """Events with low <= seq < high that match, and who may be looked for: SQL with its values."""

    low: int
    high: int
    conditions: list[str]
    values: list[Any]

    @property
    def where(self) -> str:
        return " AND ".join(self.conditions) or "TRUE"


# --- conditions -----------------------------------------------------------------------------------------------------


def driver(wanted: AuditFilter) -> tuple[str, list[Any]] | None:
    """The condition with an index of its own that finds the fewest rows; None: only the action and the time count."""
    if wanted.stored_target is not None:
        return "target = %s", [wanted.stored_target]
    if wanted.who is None:
        return None
    person = User.objects.filter(username=wanted.who).values_list("pk", flat=True).first()
    if person is not None:
        return "actor_id = %s", [person]
    return "actor_id IS NULL AND (name = %s OR source = %s)", [wanted.who, wanted.who]


def walked(wanted: AuditFilter) -> tuple[str, list[Any]] | None:
    """The condition by whose index all matching events are walked; None: every event of the time is looked at."""
    found = driver(wanted)
    if found is not None:
        return ("actor_id IS NULL", []) if found[0].startswith("actor_id IS NULL") else found
    action = REFUSED if wanted.refused else wanted.action
    return None if action is None else ("action = %s", [action])


def by_time(wanted: AuditFilter) -> tuple[list[str], list[Any]]:
    bounds = [("at_ms >= %s", wanted.from_ms), ("at_ms < %s", wanted.to_ms)]
    return [sql for sql, at_ms in bounds if at_ms is not None], [at_ms for _sql, at_ms in bounds if at_ms is not None]


def rest(wanted: AuditFilter, *, with_refused: bool) -> tuple[list[str], list[Any]]:
    """Everything but the driver: time, action, person, and what is not shown."""
    conditions, values = by_time(wanted)
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
        sql, people = driver(AuditFilter(who=wanted.who)) or ("TRUE", [])
        conditions.append(f"({sql})")
        values += people
    return conditions, values


def bounds(wanted: AuditFilter) -> tuple[int, int]:
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


def actions(wanted: AuditFilter, with_refused: bool) -> list[str]:
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


def by_action(actions: Sequence[str], span: Span, limit: int, *, up: bool) -> list[int]:
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


def by_scan(
    driver: tuple[str, list[Any]], wanted: AuditFilter, with_refused: bool, span: Span, limit: int, *, up: bool
) -> tuple[list[int], int | None]:
    """Seqs of one person or target; and, when SCAN rows were looked at without filling the page, the last of them.

    A page is mostly filled from the first few rows, and a database sorts as many as it is told to look at.
    """
    found, scanned, last = _scanned(driver, wanted, with_refused, span, limit, min(8 * limit, SCAN), up=up)
    if len(found) < limit and scanned == min(8 * limit, SCAN) < SCAN:
        found, scanned, last = _scanned(driver, wanted, with_refused, span, limit, SCAN, up=up)
    return found, last if len(found) < limit and scanned == SCAN else None


def _scanned(
    driver: tuple[str, list[Any]],
    wanted: AuditFilter,
    with_refused: bool,
    span: Span,
    limit: int,
    looks: int,
    *,
    up: bool,
) -> tuple[list[int], int, int | None]:
    """The matching seqs among the first `looks` rows of the driver, how many rows there were, and the last."""
    order = "ASC" if up else "DESC"
    others, other_values = rest(wanted, with_refused=with_refused)
    inner = (
        f"SELECT seq, at_ms, actor_id, name, source, action FROM audit WHERE {driver[0]} AND seq >= %s AND seq < %s "
        f"ORDER BY seq {order} LIMIT {looks}"
    )
    values = [*driver[1], span.low, span.high]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT seq FROM ({inner}) AS scanned WHERE {' AND '.join(others) or 'TRUE'} ORDER BY seq {order} LIMIT %s",
            [*values, *other_values, limit],
        )
        found = [seq for (seq,) in cursor.fetchall()]
        if len(found) == limit:
            return found, looks, None
        cursor.execute(f"SELECT count(*), {'max' if up else 'min'}(seq) FROM ({inner}) AS scanned", values)
        scanned, last = cursor.fetchone()
    return found, scanned, last
