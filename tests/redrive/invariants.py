"""What must hold of every plan after every move and every fault, read from the tables alone."""

import json

from django.db import connection

from queue_app.models import Plan, PlanGroup, PlanItem, Redrive
from queue_app.policy.plans import OPEN
from queue_app.policy.selections import EMPTY_DIGEST, digest_on
from queue_app.services.verification import verify


def check_plans() -> None:
    """Every invariant of every plan, and the chain of the record."""
    for plan in Plan.objects.all():
        check_plan(plan)
    assert verify().whole
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.job_id FROM plan_items AS i JOIN plans AS p ON p.id = i.plan_id "
            f"WHERE p.state IN ({', '.join(['%s'] * len(OPEN))}) GROUP BY i.job_id HAVING count(*) > 1",
            OPEN,
        )
        assert not cursor.fetchall(), "a job in two open plans"


def check_plan(plan: Plan) -> None:
    """Numbers add up, the list is what its digest says, and each redriven item has exactly one redrives row."""
    items = list(PlanItem.objects.filter(plan=plan).order_by("pos"))
    states = [item.state for item in items]
    assert plan.planned == len(items)
    assert plan.redriven == states.count("redriven")
    assert plan.skipped == states.count("skipped") == sum(json.loads(plan.skips).values())
    assert [item.pos for item in items] == list(range(1, plan.planned + 1))
    assert plan.digest == digest_on(EMPTY_DIGEST, [(item.pos, item.job_id, item.token) for item in items])
    causes = PlanGroup.objects.filter(plan=plan)
    for column in ("planned", "redriven", "skipped"):
        assert sum(causes.values_list(column, flat=True)) == getattr(plan, column), column
    restarted = sorted(Redrive.objects.filter(batch=plan.pk).values_list("job_id", "token"))
    assert restarted == sorted((item.job_id, item.token) for item in items if item.state == "redriven")
    if plan.state == "ended":
        assert "waiting" not in states
