"""Which open plan holds a job."""

from collections.abc import Sequence

from django.db import connection

from queue_app.policy.plans import OPEN
from queue_app.store.database import placeholders


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
