"""A filter as SQL over `jobs AS j`, and what is asked of groups."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from queue_app.policy.answers import ANSWERS
from queue_app.policy.filters import Filter

NO_EFFECT = tuple(sorted(answer.code for answer in ANSWERS if not answer.effect_possible))

Group = tuple[str, str, str]
"""(queue, reason, code)."""
Sql = tuple[str, list[Any]]
"""A condition and its values."""

DEAD_GROUPS = (
    "SELECT queue, reason, code, sum(n) AS n FROM counts WHERE state = 'dead' "
    "GROUP BY queue, reason, code HAVING sum(n) > 0"
)


def where(filter: Filter, as_of_ms: int) -> Sql:  # noqa: A002
    """The condition over `jobs AS j` that holds for exactly the jobs that the filter means, and its values.

    Only jobs dead since before the as-of time. Asks one small query when the filter has `looked`.
    """
    parts = [("j.state = 'dead'", []), in_group(filter), in_span(filter, as_of_ms), *by_row(filter)]
    return all_of(parts)


def all_of(parts: Sequence[Sql]) -> Sql:
    """The conditions joined by AND; empty ones are left out."""
    real = [part for part in parts if part[0]]
    return " AND ".join(sql for sql, _ in real), [value for _, values in real for value in values]


def in_group(filter: Filter, alias: str = "j.") -> Sql:  # noqa: A002
    """What the filter says of the group, over columns with this prefix."""
    parts: list[Sql] = [
        (f"{alias}{name} = %s", [value])
        for name, value in (("queue", filter.queue), ("reason", filter.reason), ("code", filter.code))
        if value is not None
    ]
    if filter.effect is not None:
        marks = ", ".join(["%s"] * len(NO_EFFECT))
        parts.append((f"{alias}code {'NOT IN' if filter.effect else 'IN'} ({marks})", list(NO_EFFECT)))
    return all_of(parts)


def in_span(filter: Filter, as_of_ms: int) -> Sql:  # noqa: A002
    """What the filter says of the time of death."""
    low, high = filter.span(as_of_ms)
    return "j.changed_at_ms >= %s AND j.changed_at_ms < %s", [low, high]


def by_row(filter: Filter) -> list[Sql]:  # noqa: A002
    """What the filter says of the job's own row, a condition for each."""
    parts: list[Sql] = []
    if filter.id_prefix is not None:
        parts.append(beginning(filter.id_prefix))
    if filter.attempts_min is not None:
        parts.append(("j.attempts >= %s", [filter.attempts_min]))
    if filter.attempts_max is not None:
        parts.append(("j.attempts <= %s", [filter.attempts_max]))
    if filter.redriven is not None:
        parts.append((f"j.redriven {'> 0' if filter.redriven else '= 0'}", []))
    if filter.looked is not None:
        sql, values = _looked(filter)
        parts.append((f"({sql})" if filter.looked else f"NOT ({sql})", values))
    return parts


def beginning(id_prefix: str) -> Sql:
    """Ids that begin so. Ids are ordered bytewise on both databases, so a range does it, without LIKE's wildcards."""
    after = id_prefix[:-1] + chr(ord(id_prefix[-1]) + 1)
    return "j.id >= %s AND j.id < %s", [id_prefix, after]


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


def groups() -> dict[Group, int]:
    """How many are dead now, by group, from the counters. Groups without a dead job are absent."""
    with connection.cursor() as cursor:
        cursor.execute(DEAD_GROUPS)
        return {(queue, reason, code): int(n) for queue, reason, code, n in cursor.fetchall()}


def last_looks() -> dict[Group, int]:
    """The as-of time of the last investigation that counts for each group with dead jobs; others are absent."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT g.queue, g.reason, g.code, i.as_of_ms FROM (SELECT c.queue, c.reason, c.code, "
            "(SELECT max(v.investigation_id) FROM investigated_groups AS v WHERE v.queue = c.queue "
            "AND v.reason = c.reason AND v.code = c.code) AS last "
            f"FROM ({DEAD_GROUPS}) AS c) AS g JOIN investigations AS i ON i.id = g.last"
        )
        return {(queue, reason, code): at_ms for queue, reason, code, at_ms in cursor.fetchall()}
