"""Small questions that a service asks inside its transaction: what is known of these ids, how full is a queue."""

from collections.abc import Sequence

from django.db.models import Sum

from queue_app.models import Count, Job
from queue_app.policy.bodies import body_digest


def body_digests(job_ids: Sequence[str]) -> dict[str, str]:
    """Body digest by id, of the jobs that exist."""
    rows = Job.objects.filter(pk__in=job_ids).values_list("id", "queue", "quantity", "payload", "order_key")
    return {job_id: body_digest(queue, quantity, payload, key) for job_id, queue, quantity, payload, key in rows}


def unfinished(queue: str) -> int:
    """Orders of the queue that are pending or leased, from the counters."""
    rows = Count.objects.filter(queue=queue, state__in=["pending", "leased"])
    return int(rows.aggregate(total=Sum("n"))["total"] or 0)
