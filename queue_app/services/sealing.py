"""The seal of a batch: once every redriven order has its end, one event holds the digest over all outcomes (DESIGN 12).

A batch ends when all its items had their turn; outcomes keep arriving after that, and the seal follows the last one. Of
a stopped batch the orders without a turn count as `left`.
"""

from queue_app.policy.selections import EMPTY_DIGEST, outcome_on
from queue_app.reads import outcomes
from queue_app.services import programs
from queue_app.store import chain, database, plans

BITE = 2_000


@database.retried
def seal(plan_id: int, *, now_ms: int | None = None) -> bool:
    """Go on with the seal of one batch by one bite; whether there is more to do now."""
    with database.write():
        plan = plans.read(plan_id, lock=True, pass_over=True)
        if plan is None or plan.state not in ("ended", "stopped") or plan.sealed_at_ms is not None:
            return False
        if outcomes.awaited(plan_id):
            return False
        now = database.now_ms() if now_ms is None else now_ms
        found = outcomes.all_of(plan_id, plan.sealed_pos, BITE)
        digest = outcome_on(plan.outcome_digest or EMPTY_DIGEST, found)
        last = len(found) < BITE
        plans.change(
            plan,
            outcome_digest=digest,
            sealed_pos=found[-1][0] if found else plan.sealed_pos,
            sealed_at_ms=now if last else None,
        )
        if last:
            chain.append(
                [
                    programs.event(
                        "batch.outcomes",
                        plan_id,
                        now,
                        digest=digest,
                        planned=plan.planned,
                        redriven=plan.redriven,
                        skipped=plan.skipped,
                    )
                ]
            )
        return not last
