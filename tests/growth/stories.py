"""What the tests of growth say briefly: orders delivered long ago, rules of queues, what is there and what is buried."""

from queue_app.models import Job, Queue, Tombstone
from queue_app.policy.windows import DAY_MS
from queue_app.services import queue
from tests.conftest import Clock


def keep(days: int | None, name: str = "snacks") -> None:
    """Let a queue keep its done orders for so many days; None: for ever."""
    Queue.objects.update_or_create(name=name, defaults={"done_kept_ms": None if days is None else days * DAY_MS})


def deliver(ids: list[str], name: str = "snacks", **more: object) -> None:
    """Accept and deliver these orders now."""
    queue.enqueue_many([{"id": one, "quantity": 3, "queue": name, **more} for one in ids])
    leases = queue.claim("w", queue=name, limit=1_000)
    assert {lease.id for lease in leases} == set(ids)
    assert all(queue.finish_many([queue.Result(lease.id, lease.token, "ok") for lease in leases]))


def age(clock: Clock, days: int) -> None:
    """Let time pass."""
    clock.advance(days * DAY_MS)


def there() -> set[str]:
    """Ids of the orders that have a row."""
    return set(Job.objects.values_list("id", flat=True))


def buried() -> set[str]:
    """Ids of the orders that have a tombstone."""
    return set(Tombstone.objects.values_list("job_id", flat=True))
