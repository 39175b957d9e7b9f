"""A redrive's list by cause: what is on it, what is at stake, what came of it, and what people found out about it."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection
from django.db.models import Sum

from queue_app.models import Plan, PlanGroup, Result
from queue_app.policy.answers import effect_possible
from queue_app.policy.canaries import Group
from queue_app.policy.figures import Look, Results
from queue_app.reads.groups import LOOK_COLUMNS, results_by_group


@dataclass(frozen=True, slots=True)
class CauseLine:
    """One cause of a list. `again`: redriven before; `results`: of this batch; `before`: of all other batches with it.

    `left_out`: an approver left it out. `effect_possible`: these orders may already have been delivered. `look`: the last
    investigation that counts for the whole cause, `finding_comment` what was written beside it.
    """

    reason: str
    code: str
    planned: int
    redriven: int
    skipped: int
    again: int
    oldest_ms: int
    newest_ms: int
    left_out: bool
    effect_possible: bool
    results: Results
    before: Results
    look: Look | None = None
    finding_comment: str = ""

    @property
    def waiting(self) -> int:
        """Orders without a turn so far."""
        return self.planned - self.redriven - self.skipped

    @property
    def at_stake(self) -> int:
        """Orders that another round would redrive."""
        return 0 if self.left_out else self.waiting


def at_stake(plan_id: int, left_out: Collection[Group]) -> dict[Group, int]:
    """Orders without a turn, of each cause that has any and that no earlier round left out: what a decision is about."""
    rows = PlanGroup.objects.filter(plan_id=plan_id).order_by("reason", "code")
    waiting = {(row.reason, row.code): row.planned - row.redriven - row.skipped for row in rows}
    return {group: n for group, n in waiting.items() if n > 0 and group not in left_out}


def causes_of(plan: Plan, left_out: Collection[Group]) -> tuple[CauseLine, ...]:
    """Every cause of the list, the largest first. Four queries at any number of causes."""
    of_batch = results_of(plan.pk)
    of_all = results_by_group()
    looks = _looks(plan)
    rows = PlanGroup.objects.filter(plan_id=plan.pk).order_by("-planned", "reason", "code")
    lines = []
    for row in rows:
        group = row.reason, row.code
        results = of_batch.get(group, Results())
        look, comment = looks.get(group, (None, ""))
        lines.append(
            CauseLine(
                row.reason,
                row.code,
                row.planned,
                row.redriven,
                row.skipped,
                row.again,
                row.oldest_ms,
                row.newest_ms,
                group in left_out,
                effect_possible(row.code),
                results,
                _without(of_all.get((plan.queue, *group), Results()), results),
                look,
                comment,
            )
        )
    return tuple(lines)


def _without(all_of_them: Results, part: Results) -> Results:
    return Results(
        all_of_them.waiting - part.waiting,
        all_of_them.done - part.done,
        all_of_them.dead_same - part.dead_same,
        all_of_them.dead_other - part.dead_other,
    )


def results_of(plan_id: int) -> dict[Group, Results]:
    """What came of the redriven orders of one batch, by the cause that they were dead for. One query."""
    rows = Result.objects.filter(batch=plan_id).values_list("reason", "code", "outcome").annotate(Sum("n")).order_by()
    found: dict[Group, dict[str, int]] = {}
    for reason, code, outcome, n in rows:
        found.setdefault((reason, code), {})[outcome] = n
    return {cause: Results(**outcomes) for cause, outcomes in found.items()}


def _looks(plan: Plan) -> dict[Group, tuple[Look, str]]:
    """The last look at each cause of the list, with its comment. One query."""
    columns = ", ".join(f"i.{name.strip()}" for name in LOOK_COLUMNS.split(","))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT g.reason, g.code, i.comment, {columns} FROM (SELECT p.reason, p.code, (SELECT "
            "max(v.investigation_id) FROM investigated_groups AS v WHERE v.queue = %s AND v.reason = p.reason "
            "AND v.code = p.code) AS last FROM plan_groups AS p WHERE p.plan_id = %s) AS g "
            "JOIN investigations AS i ON i.id = g.last",
            [plan.queue, plan.pk],
        )
        return {(reason, code): (Look(*look), comment) for reason, code, comment, *look in cursor.fetchall()}
