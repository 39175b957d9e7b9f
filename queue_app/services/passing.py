"""The plain turn: all that was delivered is done, the next jobs are new, nothing stands in between. One statement.

Inside the transaction of `leases.py`. Whatever is out of the ordinary goes step by step (`ending.py`, `handing_out.py`)
by the same rules; a plain turn is what these steps would have done.
"""

from collections.abc import Mapping, Sequence

from queue_app.policy.attempts import Lease, Result
from queue_app.policy.decisions import burial
from queue_app.services.handing_out import leases_of
from queue_app.store import jobs
from queue_app.store.ends import HeldRow
from queue_app.store.glances import Glance
from queue_app.store.jobs import JobRow
from queue_app.store.queues import Standing

# Queues that handed out freely when this process last saw them: worth a look ahead. A guess; each turn reads how it stands.
_free: set[str] = set()


def looks_ahead(queue: str, limit: int) -> int:
    """For how many due jobs to look before it is known how the queue stands."""
    return limit if queue in _free else 0


def pass_on(
    results: Sequence[Result], seen: Glance, standing: Standing, owner: str, lease_ms: int | None
) -> tuple[list[bool], list[Lease]] | None:
    """An answer for each result and the new leases; None when the turn is not plain, and nothing was written then.

    Fewer leases than jobs were due: somebody moved one in between, and there may be others to hand out.
    """
    policy, now = standing.policy, standing.now_ms
    free = policy.ordering == "independent" and not policy.paused and policy.delivery_rate_mj is None
    free = free and not standing.troubled
    (_free.add if free else _free.discard)(policy.name)
    if not free or seen.due is None or not _succeeded(results, seen.held) or not _new(seen.due, now):
        return None
    until = now + (policy.lease_ms if lease_ms is None else lease_ms)
    moved = jobs.pass_on([(result.id, result.token) for result in results], seen.due, owner, now, until)
    return [result.id in moved for result in results], leases_of([job for job in seen.due if job.id in moved], until)


def _succeeded(results: Sequence[Result], held: Mapping[str, HeldRow]) -> bool:
    """Whether every result is the only one of its job, a success of its owner, and leaves nothing else to be written."""
    if len(held) != len(results):
        return False
    for result in results:
        job = held.get(result.id)
        if job is None or result.outcome != "ok" or not job.owned_by(result.token) or job.redriven or job.troubled:
            return False
    return True


def _new(due: Sequence[JobRow], now: int) -> bool:
    """Whether none is taken over from another worker, and all have a budget."""
    return all(job.state == "pending" and burial(job.spent, now_ms=now) is None for job in due)
