"""Guarded writes of plans: every change names the state it leaves, and every move is one of `policy.plans.MOVES`."""

from typing import Any

from django.db import connection
from django.db.models import Max

from queue_app.models import Approval, Plan, PlanGroup, RedriveOutcome
from queue_app.policy.plans import CLOSED, MOVES
from queue_app.store.database import is_postgresql


def read(plan_id: int, *, lock: bool = False, pass_over: bool = False) -> Plan | None:
    """The plan, or None. `lock` holds its row on PostgreSQL (SQLite's write transaction holds everything anyway);
    `pass_over` gives None at once when somebody else holds it."""
    held = (" FOR UPDATE SKIP LOCKED" if pass_over else " FOR UPDATE") if lock and is_postgresql() else ""
    # written out: composing the text anew for its 50 columns takes ten times as long as the row, at each step of a batch
    return next(iter(Plan.objects.raw(f"SELECT * FROM plans WHERE id = %s{held}", [plan_id])), None)


def by_form_key(key: str) -> Plan | None:
    """The plan that this form made, or None."""
    return Plan.objects.filter(form_key=key).first()


def add(**values: Any) -> Plan:
    """A new plan in state `freezing`."""
    return Plan.objects.create(state="freezing", **values)


def move(plan: Plan, name: str, now_ms: int, **changes: Any) -> bool:
    """Make a legal move and the changes that go with it, unless the plan left its state or round since it was read.

    On success `plan` is brought up to date. A move that the table does not know is a KeyError: a mistake in the code.
    """
    to = MOVES[plan.state, name].to
    changes |= {"state": to, "changed_at_ms": now_ms}
    if to in CLOSED:
        changes["ended_at_ms"] = now_ms
    return change(plan, **changes)


def change(plan: Plan, **changes: Any) -> bool:
    """Change columns of a plan that is still in the state, round and progress that were read."""
    moved = Plan.objects.filter(
        pk=plan.pk,
        state=plan.state,
        round=plan.round,
        redriven=plan.redriven,
        skipped=plan.skipped,
        frozen_after_ms=plan.frozen_after_ms,
        frozen_after_seq=plan.frozen_after_seq,
        sealed_pos=plan.sealed_pos,
    ).update(**changes)
    if moved != 1:
        return False
    for name, value in changes.items():
        setattr(plan, name, value)
    return True


def another_runs(queue: str) -> bool:
    """Whether a batch of this queue is running."""
    return Plan.objects.filter(queue=queue, state="running").exists()


def next_in_turn(queue: str) -> int | None:
    """The approved plan of the queue that waits longest for its turn."""
    return (
        Plan.objects.filter(queue=queue, state="approved")
        .order_by("changed_at_ms", "id")
        .values_list("id", flat=True)
        .first()
    )


def groups(plan_id: int) -> dict[tuple[str, str], PlanGroup]:
    """The causes of a plan, by (reason, code)."""
    return {(row.reason, row.code): row for row in PlanGroup.objects.filter(plan_id=plan_id).order_by("reason", "code")}


def decision_of(plan_id: int, round_: int) -> Approval | None:
    """What was decided in this round, or None."""
    made = Approval.objects.raw("SELECT * FROM approvals WHERE plan_id = %s AND round = %s", [plan_id, round_])
    return next(iter(made), None)


def add_decision(**values: Any) -> Approval:
    """Write down a decision; its round must not have one."""
    return Approval.objects.create(**values)


def last_outcome(plan_id: int) -> int:
    """The id of the batch's newest outcome, 0 when there is none."""
    return RedriveOutcome.objects.filter(batch=plan_id).aggregate(last=Max("id"))["last"] or 0


def to_seal(limit: int = 50) -> list[int]:
    """Ended and stopped batches whose redriven orders all have their end but whose seal is not in the record."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.id FROM plans AS p WHERE p.sealed_at_ms IS NULL AND p.state IN ('ended', 'stopped') AND "
            "coalesce((SELECT sum(r.n) FROM results AS r WHERE r.batch = p.id AND r.outcome = 'waiting'), 0) = 0 "
            "ORDER BY p.id LIMIT %s",
            [limit],
        )
        return [row[0] for row in cursor.fetchall()]


def at_work() -> list[Plan]:
    """Every plan that time, results or progress may move: being made, proposed, approved or running, oldest first."""
    states = ("freezing", "proposed", "approved", "running")
    return list(Plan.objects.filter(state__in=states).only("id", "state", "queue", "expires_at_ms").order_by("id"))
