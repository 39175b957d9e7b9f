"""Investigations as a list, and who is looking at what just now."""

from dataclasses import dataclass

from django.db import connection

from queue_app.policy.figures import Look
from queue_app.policy.filters import Filter, FilterError, from_canonical
from queue_app.reads.conditions import Group
from queue_app.reads.groups import LOOK_COLUMNS

PRESENT_MS = 60_000  # somebody whose form was open within the last minute is still there
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Recorded:
    """An investigation with what it covered. `filter` None: another scope, or not readable by this version."""

    look: Look
    comment: str
    filter: Filter | None
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Looks:
    """A page of investigations, the latest first; `before`: the id to go on from, None at the end."""

    rows: tuple[Recorded, ...]
    before: int | None


def looks(*, before: int | None = None, group: Group | None = None, size: int = PAGE_SIZE) -> Looks:
    """Investigations older than the one with id `before` (None: from the latest): all, or those of one group, at the whole
    of it or at single orders that are in it now. Two queries."""
    conditions: list[str] = ["1 = 1"]
    values: list[int | str] = []
    if before is not None:
        conditions.append("i.id < %s")
        values.append(before)
    if group is not None:
        conditions.append(
            "(EXISTS (SELECT 1 FROM investigated_groups AS g WHERE g.investigation_id = i.id AND g.queue = %s "
            "AND g.reason = %s AND g.code = %s) OR (i.job_id <> '' AND EXISTS (SELECT 1 FROM jobs AS j WHERE "
            "j.id = i.job_id AND j.state = 'dead' AND j.queue = %s AND j.reason = %s AND j.code = %s)))"
        )
        values += [*group, *group]
    columns = ", ".join(f"i.{name.strip()}" for name in LOOK_COLUMNS.split(","))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns}, i.comment, i.selection FROM investigations AS i WHERE {' AND '.join(conditions)} "
            "ORDER BY i.id DESC LIMIT %s",
            [*values, size + 1],
        )
        rows = cursor.fetchall()
    shown = rows[:size]
    covered = _groups([row[0] for row in shown])
    return Looks(
        tuple(Recorded(Look(*row[:10]), row[10], _filter(row[11]), covered.get(row[0], ())) for row in shown),
        shown[-1][0] if len(rows) > size else None,
    )


def _groups(ids: list[int]) -> dict[int, tuple[Group, ...]]:
    if not ids:
        return {}
    found: dict[int, tuple[Group, ...]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT investigation_id, queue, reason, code FROM investigated_groups WHERE investigation_id IN "
            f"({', '.join(['%s'] * len(ids))}) ORDER BY queue, reason, code",
            ids,
        )
        for look, *group in cursor.fetchall():
            found[look] = (*found.get(look, ()), (group[0], group[1], group[2]))
    return found


def _filter(selection: str) -> Filter | None:
    try:
        return from_canonical(selection) if selection else None
    except FilterError:
        return None


def present(as_of_ms: int, *, except_user: int | None = None) -> dict[Group, tuple[str, ...]]:
    """Names of those who have the form of a group open, by group. One query."""
    found: dict[Group, tuple[str, ...]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.queue, p.reason, p.code, u.username, u.id FROM presences AS p "
            "JOIN auth_user AS u ON u.id = p.user_id WHERE p.seen_at_ms > %s ORDER BY u.username",
            [as_of_ms - PRESENT_MS],
        )
        for queue, reason, code, name, user in cursor.fetchall():
            if user != except_user:
                key = (queue, reason, code)
                found[key] = (*found.get(key, ()), name)
    return found
