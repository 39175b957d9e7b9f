"""Which open plan holds a job."""

from collections.abc import Sequence

from django.db import connection

from queue_app.policy.plans import OPEN
from queue_app.store.database import placeholders
from queue_app.store.given import Given
from queue_app.store.statements import fetch

_WANTED = Given("id text")


def holders(job_ids: Sequence[str], *, except_plan: int | None = None) -> dict[str, int]:
    """Job id -> id of the open plan that holds it. A hold of a closed plan does not count."""
    if not job_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT h.job_id, h.plan_id FROM holds AS h JOIN plans AS p ON p.id = h.plan_id "
            f"WHERE h.job_id IN ({placeholders(len(job_ids))}) AND p.state IN ({placeholders(len(OPEN))})",
            [*job_ids, *OPEN],
        )
        return {job_id: plan for job_id, plan in cursor.fetchall() if plan != except_plan}


def take(plan_id: int, job_ids: Sequence[str]) -> set[str]:
    """Hold these jobs for a plan, those that no open plan holds; the ids that it got.

    In id order, so that two plans that are made at once on PostgreSQL cannot wait for each other.
    """
    if not job_ids:
        return set()
    taken = fetch(
        f"INSERT INTO holds AS h (job_id, plan_id) SELECT g.id, %s FROM {_WANTED.table} WHERE 1 = 1 "
        "ON CONFLICT (job_id) DO UPDATE SET plan_id = excluded.plan_id WHERE NOT EXISTS "
        f"(SELECT 1 FROM plans AS p WHERE p.id = h.plan_id AND p.state IN ({placeholders(len(OPEN))})) "
        "RETURNING job_id",
        [plan_id, *_WANTED.values([(job_id,) for job_id in sorted(job_ids)]), *OPEN],
    )
    return {job_id for (job_id,) in taken}
