"""What the engine's tests say briefly: an order put in, a queue declared, the stored rows read back."""

from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import Failure, Hold, Job, LateFinish, Plan, Redrive, RedriveOutcome
from queue_app.policy.queues import QueuePolicy
from queue_app.services import queue
from queue_app.store import queues
from tests.conftest import START_MS

T = START_MS
LEASE = 30_000
DAY = 86_400_000


def declare(name: str = "snacks", **policy: Any) -> QueuePolicy:
    """Make or change a queue; what is not named has its default."""
    value = QueuePolicy(name, **policy)
    queues.declare(value)
    return value


def put(*ids: str, at: int = T, quantity: int = 7, **more: Any) -> None:
    """Accept orders at an instant."""
    for job_id in ids:
        assert queue.enqueue(job_id, quantity, now_ms=at, **more) == "accepted"


def take(owner: str = "w1", *, at: int = T, **more: Any) -> queue.Lease:
    """Claim exactly one job."""
    (lease,) = queue.claim(owner, now_ms=at, **more)
    return lease


def kill(job_id: str, *, at: int = T, code: str = "http_422", quantity: int = 7, name: str = "snacks") -> queue.Lease:
    """Put an order in and refuse it for good: dead/permanent at token 1."""
    put(job_id, at=at, quantity=quantity, queue=name)
    lease = take(at=at, queue=name)
    assert lease.id == job_id
    assert queue.finish(job_id, lease.token, "permanent", code=code, now_ms=at)
    return lease


def row(job_id: str) -> dict[str, Any]:
    """The stored job, every column."""
    return Job.objects.filter(pk=job_id).values().get()


def stand(job_id: str) -> tuple[Any, ...]:
    """Where a job stands, in short: state, reason, code, attempts, token."""
    return Job.objects.values_list("state", "reason", "code", "attempts", "token").get(pk=job_id)


def failures(job_id: str) -> list[tuple[Any, ...]]:
    """Its failure rows by token: token, attempt, outcome, code, worker."""
    fields = ("token", "attempt", "outcome", "code", "worker")
    return list(Failure.objects.filter(job_id=job_id).order_by("token").values_list(*fields))


def snapshot() -> dict[str, list[dict[str, Any]]]:
    """Everything that a refused call must leave as it was."""
    models = (Job, Failure, LateFinish, Redrive, RedriveOutcome)
    kept = {model._meta.db_table: list(model.objects.order_by("pk").values()) for model in models}
    with connection.cursor() as cursor:
        for table, order in (("audit", "seq"), ("heads", "name"), ("tallies", "name")):
            cursor.execute(f"SELECT * FROM {table} ORDER BY {order}")
            names = [column[0] for column in cursor.description]
            kept[table] = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    return kept


def hold(job_id: str, by: User, *, state: str, at: int = T) -> int:
    """A plan in a state that holds the job; returns its number."""
    plan = Plan.objects.create(
        queue="snacks",
        state=state,
        selection="{}",
        as_of_ms=at,
        note="INC-1",
        requested_by=by,
        created_at_ms=at,
        changed_at_ms=at,
        expires_at_ms=at + DAY,
        asked_rate_mj=1_000,
        rate_mj=1_000,
    )
    Hold.objects.update_or_create(job_id=job_id, defaults={"plan": plan})
    return int(plan.pk)
