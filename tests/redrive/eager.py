"""A worker process that ends orders as they come: `python -m tests.redrive.eager OWNER ORDERS`, until so many ended."""

import sys

import django

from tests.waiting import came_true


def main(owner: str, orders: int) -> None:
    """Claim and finish; several of these share the orders."""
    django.setup()
    from queue_app.models import Job, RedriveOutcome
    from queue_app.services import queue

    while RedriveOutcome.objects.count() < orders:
        leases = queue.claim(owner, limit=20)
        queue.finish_many([queue.Result(lease.id, lease.token, "ok") for lease in leases])
        if not leases:
            came_true(lambda: Job.objects.filter(state="pending").exists(), limit_s=0.5)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
