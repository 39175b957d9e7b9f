"""A small question that a service asks inside its transaction: how full is a queue."""

from django.db.models import Sum

from queue_app.models import Count


def unfinished(queue: str) -> int:
    """Orders of the queue that are pending or leased, from the counters."""
    rows = Count.objects.filter(queue=queue, state__in=["pending", "leased"])
    return int(rows.aggregate(total=Sum("n"))["total"] or 0)
