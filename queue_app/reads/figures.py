"""All numbers of DESIGN section 7 in a fixed number of queries, whose cost does not grow with the orders.

Several statements, so a number may be younger than another by the milliseconds between them; what must add up (states,
reasons, codes) comes from one statement.
"""

from collections.abc import Iterable
from typing import Any

from django.db import connection

from queue_app.policy.figures import (
    SILENT_MS,
    Figures,
    GroupFigures,
    Look,
    Oldest,
    ProcessFigures,
    QueueFigures,
    Ratio,
    Results,
    StateFigures,
    Unknown,
    Why,
)
from queue_app.policy.filters import Filter
from queue_app.policy.plans import CARRIED
from queue_app.reads import dead, flows, groups

CAP = 10_000  # leased orders of unknown answer are counted one by one up to here


def figures(as_of_ms: int) -> Figures:
    """The overview's numbers. At most 17 queries."""
    counts = _counts()
    states = _states(counts)
    redrives = groups.results_by_group()
    seven_days = flows.hours(as_of_ms)
    recent = flows.deaths_since(groups.recent_since_ms(as_of_ms))
    causes = groups.assembled(flows.trends(as_of_ms), recent, redrives)
    results = _sum_of_results(redrives.values())
    look = last_look()
    alive = processes(as_of_ms)
    return Figures(
        as_of_ms=as_of_ms,
        states=states,
        queues=_queues(counts, alive),
        groups=causes,
        by_reason=_shares(counts, states.dead, 3),
        by_code=_shares(counts, states.dead, 4),
        oldest=_oldest(),
        look=look,
        since_look=_since(look, states.dead, as_of_ms),
        results=results,
        late_finishes=_late_finishes(),
        windows=flows.windows(as_of_ms, states.dead, results.redriven),
        hours=seven_days,
        recent=sum(recent.values()),
        recent_since_ms=groups.recent_since_ms(as_of_ms),
        surge=flows.surge(seven_days, states.dead) if states.dead else None,
        last_delivery_ms=max((row[6] for row in counts if row[1] == "done"), default=0) or None,
        unknown=_unknown(as_of_ms, causes),
        processes=alive,
        carried=_carried(),
    )


# --- states, reasons, codes -----------------------------------------------------------------------------------------


def _counts() -> list[tuple[Any, ...]]:
    """(queue, state, stage, reason, code, n, last change into it)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT queue, state, stage, reason, code, sum(n), max(last_at_ms) FROM counts "
            "GROUP BY queue, state, stage, reason, code"
        )
        return [(*row[:5], int(row[5]), int(row[6])) for row in cursor.fetchall()]


def _states(counts: Iterable[tuple[Any, ...]]) -> StateFigures:
    found = dict.fromkeys(StateFigures.__slots__, 0)
    for _, state, stage, _, _, n, _ in counts:
        if (stage or state) in found:  # a newer version may know more; its pages show them
            found[stage or state] += n
    return StateFigures(**found)


def why(name: str, f: Figures) -> Why:
    """By reason and code what died in one of the windows (a name of `policy.windows.WINDOWS`) and is dead now. One query,
    for `all` none."""
    window = next(window for window in f.windows if window.name == name)
    if window.since_ms is None:
        return Why(window, f.by_reason, f.by_code)
    found = flows.still_since(window.since_ms, f.as_of_ms)
    by_reason, by_code = (_ranked(((group[place], n) for group, n in found.items()), window.still) for place in (1, 2))
    return Why(window, by_reason, by_code)


def _shares(counts: list[tuple[Any, ...]], total: int, column: int) -> tuple[tuple[str, Ratio], ...]:
    return _ranked(((row[column], row[5]) for row in counts if row[1] == "dead"), total)


def _ranked(parts: Iterable[tuple[str, int]], total: int) -> tuple[tuple[str, Ratio], ...]:
    found: dict[str, int] = {}
    for word, n in parts:
        if n:
            found[word] = found.get(word, 0) + n
    ranked = sorted(found.items(), key=lambda share: (-share[1], share[0]))
    return tuple((word, Ratio(n, total)) for word, n in ranked)


def _queues(counts: list[tuple[Any, ...]], alive: Iterable[ProcessFigures]) -> tuple[QueueFigures, ...]:
    workers: dict[str, int] = {}
    for process in alive:
        if process.kind == "worker" and process.state == "alive":
            workers[process.queue] = workers.get(process.queue, 0) + 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, ordering, paused, accepting FROM queues ORDER BY name")
        declared = cursor.fetchall()
    return tuple(
        QueueFigures(
            name,
            ordering,
            bool(paused),
            bool(accepting),
            _states(row for row in counts if row[0] == name),
            workers.get(name, 0),
        )
        for name, ordering, paused, accepting in declared
    )


def _sum_of_results(parts: Iterable[Results]) -> Results:
    found = list(parts)
    return Results(*(sum(getattr(part, name) for part in found) for name in Results.__slots__))


# --- single facts ---------------------------------------------------------------------------------------------------


def _oldest() -> Oldest | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, changed_at_ms FROM jobs WHERE state = 'dead' ORDER BY changed_at_ms, seq LIMIT 1")
        row = cursor.fetchone()
    return Oldest(*row) if row else None


def last_look() -> Look | None:
    """The last investigation of any scope."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {groups.LOOK_COLUMNS} FROM investigations ORDER BY id DESC LIMIT 1")
        row = cursor.fetchone()
    return Look(*row) if row else None


def _since(look: Look | None, total: int, as_of_ms: int) -> int:
    # one millisecond more, so that what died in this very one is in it, as in the counters
    return total if look is None else dead.count(Filter(died_from_ms=look.as_of_ms), as_of_ms + 1).n


def _carried() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM plans WHERE state IN ({', '.join(['%s'] * len(CARRIED))})", [*CARRIED])
        return int(cursor.fetchone()[0])


def _late_finishes() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(n) FROM tallies WHERE name = 'late_finish'")
        return int(cursor.fetchone()[0] or 0)


def _unknown(as_of_ms: int, causes: Iterable[GroupFigures]) -> Unknown:
    over = "CASE WHEN j.lease_until <= %s THEN 1 ELSE 0 END"
    unproved = (
        "CASE WHEN EXISTS (SELECT 1 FROM failures AS f WHERE f.job_id = j.id AND f.token = j.token "
        "AND f.outcome = 'unknown') THEN 1 ELSE 0 END"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), sum(l.is_over), sum(l.unproved), sum(CASE WHEN l.is_over + l.unproved > 0 THEN 1 ELSE 0 END) "
            f"FROM (SELECT {over} AS is_over, {unproved} AS unproved FROM jobs AS j WHERE j.state = 'leased' "
            "ORDER BY j.lease_until LIMIT %s) AS l",
            [as_of_ms, CAP],
        )
        seen, is_over, not_proved, either = (int(n or 0) for n in cursor.fetchone())
    possible = sum(cause.n for cause in causes if cause.effect_possible)
    return Unknown(either, is_over, not_proved, possible, exact=seen < CAP)


def processes(as_of_ms: int) -> tuple[ProcessFigures, ...]:
    """Workers and redrivers by kind and name, with their state as of the instant. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, kind, queue, started_at_ms, seen_at_ms, stopped_at_ms, detail FROM processes "
            "ORDER BY kind, name"
        )
        rows = cursor.fetchall()
    found = []
    for name, kind, queue, started, seen, stopped, detail in rows:
        silent = seen <= as_of_ms - SILENT_MS
        state = "stopped" if stopped is not None else "silent" if silent else "alive"
        found.append(ProcessFigures(name, kind, queue, state, started, seen, detail))
    return tuple(found)
