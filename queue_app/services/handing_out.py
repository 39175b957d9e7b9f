"""Which due jobs a claim hands out and which it buries on the way (DESIGN section 4, "claim" and "claim buries").

Inside the transaction of `leases.py`.
"""

from collections.abc import Sequence

from queue_app.policy.attempts import Lease
from queue_app.policy.decisions import burial
from queue_app.services import gates
from queue_app.store import evidence, jobs
from queue_app.store.evidence import End, FailureRow
from queue_app.store.jobs import JobRow
from queue_app.store.queues import Standing

BURIALS_PER_CALL = 100  # a claim stays short however many dead-by-now jobs stand before the living ones
LEASE_EXPIRED = "lease_expired"  # outcome and code of a token whose worker never said anything


def hand_out(owner: str, standing: Standing, limit: int, lease_ms: int | None) -> list[Lease]:
    """Up to `limit` leases of the queue by (available_at, seq); nothing while it is paused or its gate lets none through."""
    policy, now = standing.policy, standing.now_ms
    grant = _grant(standing, limit)
    until = now + (policy.lease_ms if lease_ms is None else lease_ms)
    taken: list[Lease] = []
    left = BURIALS_PER_CALL
    while len(taken) < grant.n:
        # Once the bound on burials is reached, the call still looks for jobs to hand out.
        room, ordered = grant.n - len(taken), policy.ordering == "ordered"
        found = jobs.due(policy.name, now, room, ordered=ordered, with_budget=left == 0)
        judged = [(job, burial(job.spent, now_ms=now)) for job in found]
        leased = _lease([job for job, reason in judged if reason is None], owner, now, until)
        lost = [(job, reason) for job, reason in judged if reason is not None][:left]
        _bury(lost, now)
        taken += leased
        left -= len(lost)
        if len(found) < room or not (leased or lost):
            break
    if taken:
        gates.took(grant, policy, taken, now)
    return taken


def _grant(standing: Standing, limit: int) -> gates.Grant:
    policy = standing.policy
    if policy.paused:
        return gates.Grant(0)
    if policy.delivery_rate_mj is None and not standing.troubled:
        return gates.Grant(limit)
    return gates.granted(policy, standing.now_ms, limit)


def _lease(living: Sequence[JobRow], owner: str, now: int, until: int) -> list[Lease]:
    moved = jobs.lease_all(living, owner, now, until)
    ours = [job for job in living if job.id in moved]
    _record_lost(ours, now)
    return leases_of(ours, until)


def leases_of(jobs: Sequence[JobRow], until: int) -> list[Lease]:
    """What the worker holds of jobs that were handed out to it; `jobs` as they were read before."""
    return [
        Lease(job.id, job.queue, job.quantity, job.payload, job.attempts + 1, job.token + 1, until, job.deadline)
        for job in jobs
    ]


def _bury(lost: Sequence[tuple[JobRow, str]], now: int) -> None:
    """Quarantine due jobs whose budget is over, with their failure rows."""
    if not lost:
        return
    silent = _record_lost([job for job, _ in lost], now)
    codes = evidence.last_codes(job.id for job, _ in lost if job.id not in silent)
    codes |= dict.fromkeys(silent, LEASE_EXPIRED)
    burials = [(job, reason, codes.get(job.id, "")) for job, reason in lost]
    moved = jobs.bury_all(burials, now)
    if len(moved) != len(burials):
        raise RuntimeError("A job moved inside the transaction that holds it.")
    evidence.add_failures(
        [
            FailureRow(job.id, job.token + 1, job.attempts, "deadline_passed", "", "")
            for job, _ in lost
            if job.state == "pending"
        ],
        now,
    )
    evidence.add_redrive_outcomes(
        [End(job.id, "dead", reason, code, job.token + 1) for job, reason, code in burials if job.redriven], now
    )


def _record_lost(taken_over: Sequence[JobRow], now: int) -> set[str]:
    """Write that the tokens of expired leases were lost, unless they have told something (DESIGN section 3); which."""
    rows = [
        FailureRow(job.id, job.token, job.attempts, LEASE_EXPIRED, LEASE_EXPIRED, job.owner or "")
        for job in taken_over
        if job.state == "leased"
    ]
    return {job_id for job_id, _ in evidence.add_failures(rows, now)}
