"""What the tests of gates say briefly: failures in a row, a breaker that opened, the stored gate and the record of it."""

from typing import Any

from queue_app.models import AuditEvent, Gate, Job
from queue_app.policy.breakers import SILENT_MS
from queue_app.services import leases, queue
from tests.engine.rows import T, declare, put, take

WAIT = 30_000


def gate(name: str = "snacks") -> Any:
    """The stored gate."""
    return Gate.objects.get(pk=name)


def fail(n: int, *, at: int = T, code: str = "http_503", outcome: str = "retry", max_attempts: int = 3) -> None:
    """So many deliveries in a row end so; the orders are put in for it."""
    for _ in range(n):
        job_id = f"f-{Job.objects.count()}"
        put(job_id, at=at, max_attempts=max_attempts)
        lease = take(at=at)
        if outcome == "unknown":
            assert leases.record_unknown(lease.id, lease.token, code, now_ms=at)
        else:
            assert queue.finish(lease.id, lease.token, outcome, code=code, now_ms=at)


def opened(after: int = 3) -> None:
    """A queue whose breaker opened at T, with two orders that nobody has tried."""
    declare(breaker_after=after, breaker_wait_ms=WAIT, budget_ms=10**9)
    fail_lately()
    fail(after - 1)
    put("x-1", "x-2")


def fail_lately() -> None:
    """One failure, as long before T as the fewest must last; its order is in quarantine and in nobody's way."""
    fail(1, at=T - SILENT_MS, max_attempts=1)


def told(prefix: str = "breaker.") -> list[tuple[str, str, str]]:
    """What the record has of the breaker: action, target, detail."""
    found = AuditEvent.objects.filter(action__startswith=prefix).order_by("-seq")
    return list(found.values_list("action", "target", "detail"))
