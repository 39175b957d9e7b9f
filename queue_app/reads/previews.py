"""What would be frozen before it is, and what changed since it was.

Counts by cause are exact where counters know them; what only rows can tell is looked for in a bounded number of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import connection

from queue_app.models import Plan, Queue
from queue_app.policy import buckets
from queue_app.policy.approvals import Warned, must_type_count
from queue_app.policy.errors import gettext_noop
from queue_app.policy.figures import Results
from queue_app.policy.filters import Filter
from queue_app.policy.plans import OPEN, UnknownPlan
from queue_app.policy.selections import Selection
from queue_app.policy.terms import Terms
from queue_app.reads import conditions, dead, selected, warnings
from queue_app.reads.dead import CAP, Count, DeadRow
from queue_app.reads.groups import results_by_group
from queue_app.reads.latecomers import died_since
from queue_app.reads.warnings import Cause

SCAN_ROWS = 2_000  # rows looked at for what only rows can tell
MAX_CAUSES = 40


@dataclass(frozen=True, slots=True)
class PreviewCause:
    """One cause of the selection. `again`: redriven before; `before`: what all redrives of this cause led to."""

    reason: str
    code: str
    n: int
    again: int
    oldest_ms: int
    before: Results


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be frozen. `n` counts the selection; `beyond_horizon`, `too_old` and `held` are part of it and would be
    left out; `eligible` is the rest within the cap. `rows_exact` False: causes' `again` and `held` were counted among the
    oldest rows only, so there may be more. `duration_ms` is for `eligible` at this pace."""

    queue: str
    as_of_ms: int
    n: Count
    eligible: int
    causes: tuple[PreviewCause, ...]
    oldest_ms: int | None
    beyond_horizon: int
    too_old: int
    held: dict[int, int]
    rows_exact: bool
    duration_ms: int
    ends_at_ms: int
    warnings: tuple[Warned, ...]
    must_type: bool
    in_request: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """Since the list was frozen: orders that died of its causes and are not on it (`died`), and of its first 10,000 waiting
    ones those that would now be skipped (`gone`)."""

    died: Count
    gone: int
    gone_exact: bool


def preview(selection: Selection, terms: Terms, now_ms: int) -> Preview:
    """What this selection holds now and what a redrive of it would be like. Writes nothing."""
    as_of = now_ms + 1
    rows, more = _rows(selection, as_of)
    queue = selection.queue or (rows[0].queue if rows else "")
    filter_ = selection.filter
    n = Count(len(rows)) if filter_ is None else dead.count(filter_, as_of)
    if filter_ is not None and more and not filter_.by_row:
        causes = _counted_causes(filter_, as_of, rows)
    else:
        causes = _causes_of(rows)
    policy = Queue.objects.filter(pk=queue).values("redrive_horizon_ms").first()
    horizon = as_of - policy["redrive_horizon_ms"] if policy else 0
    alive = max(horizon, 0 if terms.max_dead_ms is None else as_of - terms.max_dead_ms)
    beyond = _dead_before(selection, rows, horizon, as_of)
    too_old = _dead_before(selection, rows, alive, as_of) - beyond
    # a freeze asks who holds an order only of those that are not too old
    held = _held([row for row in rows if row.changed_at_ms >= alive])
    eligible = max(0, n.n - beyond - too_old - sum(held.values()))
    eligible = eligible if terms.cap is None else min(eligible, terms.cap)
    warned = warnings.about(
        queue,
        [Cause(cause.reason, cause.code, cause.n, cause.again, cause.oldest_ms) for cause in causes],
        canary=terms.canary,
        now_ms=now_ms,
    )
    duration = buckets.duration_ms(eligible, terms.rate_mj, terms.steps)
    return Preview(
        queue=queue,
        as_of_ms=now_ms,
        n=n,
        eligible=eligible,
        causes=causes,
        oldest_ms=rows[0].changed_at_ms if rows else None,
        beyond_horizon=beyond,
        too_old=too_old,
        held=held,
        rows_exact=not more,
        duration_ms=duration,
        ends_at_ms=now_ms + duration,
        warnings=warned,
        must_type=must_type_count(eligible, warned),
        in_request=n.n <= SCAN_ROWS,
    )


def changes_since(plan_id: int, now_ms: int, died: Count | None = None) -> Changes:
    """What changed since the list of a plan was frozen. Raises UnknownPlan. Four queries at most, at any number of causes."""
    plan = Plan.objects.filter(pk=plan_id).first()
    if plan is None:
        raise UnknownPlan(gettext_noop("There is no such redrive."))
    gone, looked_at = _gone(plan_id, plan.next_pos)
    died = died or died_since(plan_id, plan.queue, plan.as_of_ms, plan.ended_at_ms, now_ms)
    return Changes(died, gone, looked_at < CAP)


def _rows(selection: Selection, as_of: int) -> tuple[list[DeadRow], bool]:
    """The oldest rows, and whether there are more."""
    if selection.filter is None:
        return selected.by_ids(selection.ids, as_of, (-1, -1), len(selection.ids)), False
    found = dead.stretch(selection.filter, as_of, None, SCAN_ROWS + 1)
    return found.rows[:SCAN_ROWS], len(found.rows) > SCAN_ROWS or found.searched_to is not None


def _causes_of(rows: Sequence[DeadRow]) -> tuple[PreviewCause, ...]:
    before = results_by_group()
    by_cause: dict[tuple[str, str], list[DeadRow]] = {}
    for row in rows:
        by_cause.setdefault((row.reason, row.code), []).append(row)
    causes = [
        PreviewCause(
            reason,
            code,
            len(them),
            sum(row.redriven > 0 for row in them),
            them[0].changed_at_ms,
            before.get((them[0].queue, reason, code), Results()),
        )
        for (reason, code), them in by_cause.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (-cause.n, cause.reason, cause.code)))


def _counted_causes(wanted: Filter, as_of: int, rows: Sequence[DeadRow]) -> tuple[PreviewCause, ...]:
    """Causes by the counters; how many were redriven before by the rows that were looked at."""
    seen = {(cause.reason, cause.code): cause for cause in _causes_of(rows)}
    before = results_by_group()
    causes = []
    admitted = [group for group in sorted(conditions.groups()) if wanted.admits_group(*group)]
    for queue, reason, code in admitted[:MAX_CAUSES]:
        one = replace(wanted, queue=queue, reason=reason, code=code, effect=None)
        n = dead.count(one, as_of).n
        if not n:
            continue
        known = seen.get((reason, code))
        first = known.oldest_ms if known else dead.stretch(one, as_of, None, 1).rows[0].changed_at_ms
        again = known.again if known else 0
        causes.append(PreviewCause(reason, code, n, again, first, before.get((queue, reason, code), Results())))
    return tuple(sorted(causes, key=lambda cause: (-cause.n, cause.reason, cause.code)))


def _dead_before(selection: Selection, rows: Sequence[DeadRow], before_ms: int, as_of: int) -> int:
    """How many of the selection are dead since before an instant."""
    if not rows or rows[0].changed_at_ms >= before_ms:  # the oldest of all is among the rows
        return 0
    if selection.filter is None:
        return sum(row.changed_at_ms < before_ms for row in rows)
    end = before_ms if selection.filter.died_to_ms is None else min(before_ms, selection.filter.died_to_ms)
    return dead.count(replace(selection.filter, died_to_ms=end), as_of).n


def _held(rows: Sequence[DeadRow]) -> dict[int, int]:
    """Open plan -> how many of these rows it holds."""
    if not rows:
        return {}
    marks = ", ".join(["%s"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT h.plan_id, count(*) FROM holds AS h JOIN plans AS p ON p.id = h.plan_id "
            f"WHERE h.job_id IN ({marks}) AND p.state IN ({', '.join(['%s'] * len(OPEN))}) "
            "GROUP BY h.plan_id ORDER BY h.plan_id",
            [*(row.id for row in rows), *OPEN],
        )
        return dict(cursor.fetchall())


def _gone(plan_id: int, from_pos: int) -> tuple[int, int]:
    """Among the next waiting items: how many are not dead with their token any more, and how many were looked at."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(sum(CASE WHEN j.state = 'dead' AND j.token = i.token THEN 0 ELSE 1 END), 0) "
            "FROM (SELECT job_id, token FROM plan_items WHERE plan_id = %s AND pos >= %s AND state = 'waiting' "
            "ORDER BY pos LIMIT %s) AS i LEFT JOIN jobs AS j ON j.id = i.job_id",
            [plan_id, from_pos, CAP],
        )
        looked_at, gone = cursor.fetchone()
    return int(gone), int(looked_at)
