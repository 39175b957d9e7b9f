"""Orders that live through the services, so that every number is tested against what really happens."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User

from queue_app.policy.queues import QueuePolicy
from queue_app.services import queue
from queue_app.store import queues
from tests.conftest import Clock


def declare(name: str, **policy: Any) -> None:
    """A queue with this policy."""
    queues.declare(QueuePolicy(name, **policy))


def accept(ids: Iterable[str], *, at: str = "snacks", max_attempts: int = 3) -> None:
    """Accept orders of quantity 1."""
    for job_id in ids:
        assert queue.enqueue(job_id, 1, queue=at, max_attempts=max_attempts) == "accepted"


def refuse(job_id: str, code: str = "http_422", *, at: str = "snacks") -> None:
    """Deliver the next order of the queue, which must be this one, and let the receiver refuse it."""
    (lease,) = queue.claim("worker-1", queue=at)
    assert lease.id == job_id
    assert queue.finish(job_id, lease.token, "permanent", code=code)


def exhaust(job_id: str, code: str = "http_503", *, at: str = "snacks") -> None:
    """The same, with a failure that may be repeated, for an order of one attempt."""
    (lease,) = queue.claim("worker-1", queue=at)
    assert lease.id == job_id
    assert queue.finish(job_id, lease.token, "retry", code=code)


def deliver(job_id: str, *, at: str = "snacks") -> None:
    """Deliver the next order of the queue, which must be this one."""
    (lease,) = queue.claim("worker-1", queue=at)
    assert lease.id == job_id
    assert queue.finish(job_id, lease.token, "ok")


def die(clock: Clock, ids: Iterable[str], code: str = "http_422", *, at: str = "snacks", apart_ms: int = 1_000) -> None:
    """Accept orders and let each be refused, `apart_ms` from one to the next."""
    for job_id in ids:
        accept([job_id], at=at)
        refuse(job_id, code, at=at)
        clock.advance(apart_ms)


def redrive(job_id: str, lead: User, *, batch: int | None = None) -> None:
    """Restart one order."""
    queue.redrive(job_id, "INC-1", approved_by=lead, batch=batch)
