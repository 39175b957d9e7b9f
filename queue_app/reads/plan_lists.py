"""Redrives in lists: all, those that wait for a person, those of a cause."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.db.models import Sum

from queue_app.models import Plan, PlanGroup, Result
from queue_app.policy.figures import Results
from queue_app.policy.plans import CLOSED, OPEN
from queue_app.reads.groups import results_by_batch


@dataclass(frozen=True, slots=True)
class Line:
    """A redrive in a list. `waiting` orders have had no turn; `results` tell of the redriven ones."""

    id: int
    queue: str
    state: str
    why: str
    note: str
    requested_by: int | None
    requested_name: str
    created_at_ms: int
    changed_at_ms: int
    expires_at_ms: int
    planned: int
    redriven: int
    skipped: int
    rate_mj: int
    solo: bool
    results: Results

    @property
    def waiting(self) -> int:
        """Orders without a turn so far."""
        return self.planned - self.redriven - self.skipped

    @property
    def open(self) -> bool:
        """Whether anything can still become of it."""
        return self.state in OPEN


def plans(
    *,
    before: int | None = None,
    states: Collection[str] | None = None,
    queue: str | None = None,
    limit: int = 50,
) -> list[Line]:
    """Redrives, the newest first; `before` is the number of the last one seen. Two queries."""
    rows = Plan.objects.order_by("-id")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    if states is not None:
        rows = rows.filter(state__in=list(states))
    if queue is not None:
        rows = rows.filter(queue=queue)
    return lines_of(list(rows[:limit]))


def waiting_for(user_id: int, roles: Collection[str], *, solo: bool = False, limit: int = 50) -> list[Line]:
    """Redrives that wait for this person: a lead decides on what others proposed and on what stopped by itself."""
    if "team_lead" not in roles:
        return []
    rows = Plan.objects.filter(state__in=("proposed", "halted", "paused")).exclude(state="paused", why="person")
    if not solo:
        rows = rows.exclude(requested_by_id=user_id)
    return lines_of(list(rows.order_by("id")[:limit]))


def of_group(queue: str, reason: str, code: str, limit: int = 5) -> list[Line]:
    """The last redrives that had orders of this cause, the newest first; numbers and results are those of this cause
    alone. Two queries."""
    rows = PlanGroup.objects.filter(plan__queue=queue, reason=reason, code=code).select_related("plan")
    found = list(rows.order_by("-plan_id")[:limit])
    results: dict[int, dict[str, int]] = {}
    rows_of_cause = Result.objects.filter(batch__in=[row.plan_id for row in found], reason=reason, code=code)
    for batch, outcome, n in rows_of_cause.values_list("batch", "outcome").annotate(Sum("n")).order_by():
        results.setdefault(batch, {})[outcome] = n
    return [
        replace(
            line_of(row.plan, Results(**results.get(row.plan_id, {}))),
            planned=row.planned,
            redriven=row.redriven,
            skipped=row.skipped,
        )
        for row in found
    ]


def lines_of(rows: Sequence[Plan]) -> list[Line]:
    """The plans as lines; one query for all results."""
    results = results_by_batch([plan.pk for plan in rows])
    return [line_of(plan, results.get(plan.pk, Results())) for plan in rows]


def line_of(plan: Plan, results: Results) -> Line:
    """One plan as a line."""
    return Line(
        plan.pk,
        plan.queue,
        plan.state,
        plan.why,
        plan.note,
        plan.requested_by_id,
        plan.requested_name,
        plan.created_at_ms,
        plan.changed_at_ms,
        plan.expires_at_ms,
        plan.planned,
        plan.redriven,
        plan.skipped,
        plan.rate_mj,
        plan.solo,
        results,
    )


def is_final(state: str) -> bool:
    """Whether nothing can become of it any more, so that a page need not ask again."""
    return state in CLOSED
