"""A small question that a service asks inside its transaction: how full is a queue."""

from django.db import connection
from django.db.models import Sum

from queue_app.models import Count


def unfinished(queue: str) -> int:
    """Orders of the queue that are pending or leased, from the counters."""
    rows = Count.objects.filter(queue=queue, state__in=["pending", "leased"])
    return int(rows.aggregate(total=Sum("n"))["total"] or 0)


def stuck(queue: str) -> int:
    """How many orders of the queue wait though none of them can be handed out, ever, unless a person acts.

    0 while one of them is with a worker or may still be handed out, now or later: each waits behind one in quarantine.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM jobs AS j WHERE j.queue = %s AND (j.state = 'leased' OR (j.state = 'pending' AND "
            "(j.order_key = '' OR NOT EXISTS (SELECT 1 FROM jobs AS e WHERE e.queue = j.queue AND e.order_key = j.order_key "
            "AND NOT (e.order_key = '') AND e.seq < j.seq AND e.state IN ('pending', 'leased', 'dead') AND NOT EXISTS "
            "(SELECT 1 FROM unblocks AS u WHERE u.job_id = e.id AND u.token = e.token AND e.state = 'dead'))))))",
            [queue],
        )
        moves = bool(cursor.fetchone()[0])
    return 0 if moves else unfinished(queue)
