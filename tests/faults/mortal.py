"""Moves of people and of many at once for a process whose children die at a chosen point: `tests.engine.mortal`."""

from collections.abc import Callable
from typing import Any


def _user(pk: int) -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(pk=pk)


def moves() -> dict[str, Callable[..., Any]]:
    """By name."""
    from queue_app.services import approvals, batches, leases, looks, plans, queue, queues, unblocks

    def reject(user: int, plan: int, proof: list[Any]) -> bool:
        given = approvals.Proof(*proof)
        return approvals.reject(_user(user), plan, round=1, digest="", note="NO-1", proof=given).first

    def results(some: list[list[Any]]) -> list[queue.Result]:
        return [queue.Result(*one) for one in some]

    return {
        "pause": lambda user, plan: batches.pause(_user(user), plan).first,
        "stop": lambda user, plan: batches.stop(_user(user), plan).first,
        "pace": lambda user, plan: batches.set_pace(_user(user), plan, 500).first,
        "withdraw": lambda user, plan: plans.withdraw(_user(user), plan).first,
        "reject": reject,
        "pause_queue": lambda user, name: queues.pause(_user(user), name).first,
        "unblock": lambda user, job: unblocks.unblock(_user(user), job, token=1, note="INC-1").first,
        "look": lambda user, job: len(looks.record(_user(user), "job", "INC-1", "looking", job_id=job).groups),
        "claim": lambda: [[lease.id, lease.token] for lease in queue.claim("w")],
        "finish_many": lambda some: queue.finish_many(results(some)),
        "renew_many": lambda some: leases.renew_many([(job, token) for job, token in some], lease_ms=900_000),
        "release_many": lambda some: leases.release_many([(job, token) for job, token in some]),
    }
