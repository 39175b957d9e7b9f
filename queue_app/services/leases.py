"""Handing out and finishing: the moves of workers (DESIGN section 4). Each runs in one short write transaction."""

from collections.abc import Iterable, Sequence

from queue_app.policy.attempts import Lease, Result, check_proof, check_result
from queue_app.policy.decisions import Done, Quarantine, RetryAt, burial, decide, lease_end_ms
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.orders import check_code, check_owner, check_queue_name
from queue_app.policy.queues import QueuePolicy
from queue_app.store import database, evidence, jobs, queues
from queue_app.store.jobs import JobRow

BURIALS_PER_CALL = 100  # a claim stays short however many dead-by-now jobs stand before the living ones
MAX_CLAIM = 1_000
MAX_LEASE_MS = 86_400_000
LEASE_EXPIRED = "lease_expired"  # outcome and code of a token whose worker never said anything


def claim(
    owner: str, *, queue: str = "snacks", limit: int = 1, lease_ms: int | None = None, now_ms: int | None = None
) -> list[Lease]:
    """Take up to `limit` due jobs by (available_at, seq). Two claimers never get the same token of a job.

    Due jobs without budget are quarantined on the way, 100 a call at most. `lease_ms` None means the queue's own.
    Raises ValueError for a bad owner, limit or lease, InvalidOrder for an undeclared queue.
    """
    check_owner(owner)
    _check_span("limit", limit, MAX_CLAIM)
    if lease_ms is not None:
        _check_span("lease_ms", lease_ms, MAX_LEASE_MS)
    with database.write():
        return _claim(owner, _policy(queue), limit, lease_ms, database.instant(now_ms))


def finish(
    id: str,  # noqa: A002 - DESIGN section 5 names it
    token: int,
    outcome: str,
    *,
    code: str = "",
    retry_after_ms: int | None = None,
    now_ms: int | None = None,
) -> bool:
    """End an attempt: "ok", "retry" or "permanent". False, and no change to the job, unless it is leased with this token.

    An unknown outcome or a bad code is a ValueError before any write.
    """
    return finish_state(Result(id, token, outcome, code, retry_after_ms), now_ms=now_ms) is not None


def finish_state(result: Result, *, now_ms: int | None = None) -> str | None:
    """As `finish`, with the job's new state, or None when the token was refused."""
    check_result(result)
    with database.write():
        return _finish(result, database.instant(now_ms), {})


def finish_many(results: Iterable[Result], *, now_ms: int | None = None) -> list[bool]:
    """End many attempts in one transaction; an answer per result, in order. A bad one is a ValueError before any write."""
    checked = [check_result(result) for result in results]
    with database.write():
        return _finish_all(checked, database.instant(now_ms))


def finish_and_claim(
    results: Iterable[Result],
    owner: str,
    *,
    queue: str = "snacks",
    limit: int = 1,
    lease_ms: int | None = None,
    now_ms: int | None = None,
) -> tuple[list[bool], list[Lease]]:
    """End attempts and take the next jobs in the same transaction: one commit where two would do."""
    checked = [check_result(result) for result in results]
    check_owner(owner)
    _check_span("limit", limit, MAX_CLAIM)
    if lease_ms is not None:
        _check_span("lease_ms", lease_ms, MAX_LEASE_MS)
    with database.write():
        now = database.instant(now_ms)
        return _finish_all(checked, now), _claim(owner, _policy(queue), limit, lease_ms, now)


def renew(id: str, token: int, *, lease_ms: int | None = None, now_ms: int | None = None) -> bool:  # noqa: A002
    """Extend the lease of this token to now + lease, never past the deadline by more than one lease, never shorter."""
    check_proof(id, token)
    if lease_ms is not None:
        _check_span("lease_ms", lease_ms, MAX_LEASE_MS)
    with database.write():
        now = database.instant(now_ms)
        job = jobs.read(id, lock=True)
        if job is None or job.state != "leased" or job.token != token:
            return False
        span = _policy(job.queue).lease_ms if lease_ms is None else lease_ms
        return jobs.extend(id, token, lease_end_ms(now, span, job.deadline))


def release(id: str, token: int, *, now_ms: int | None = None) -> bool:  # noqa: A002
    """Give back a job that was not started: available now, the attempt not spent, the token kept."""
    check_proof(id, token)
    with database.write():
        return jobs.give_back(id, token, database.instant(now_ms))


def record_unknown(id: str, token: int, code: str, *, now_ms: int | None = None) -> bool:  # noqa: A002
    """Record an answer that proves nothing. The job stays leased: the lease's end brings it back (DESIGN section 4)."""
    check_proof(id, token)
    check_code(code)
    with database.write():
        now = database.instant(now_ms)
        job = jobs.read(id, lock=True)
        if job is None or job.state != "leased" or job.token != token:
            return False
        return evidence.add_failure(
            id, token, attempt=job.attempts, at_ms=now, outcome="unknown", code=code, worker=job.owner or ""
        )


# --- inside the transaction -----------------------------------------------------------------------------------------


def _policy(queue: str) -> QueuePolicy:
    policy = queues.policy_of(check_queue_name(queue))
    if policy is None:
        raise InvalidOrder(f"No queue {queue!r} is declared.")
    return policy


def _claim(owner: str, policy: QueuePolicy, limit: int, lease_ms: int | None, now: int) -> list[Lease]:
    if policy.paused:
        return []
    until = now + (policy.lease_ms if lease_ms is None else lease_ms)
    ordered = policy.ordering == "ordered"
    taken: list[Lease] = []
    buried = 0
    while len(taken) < limit:
        # Once the bound on burials is reached, the call still looks for jobs to hand out.
        found = jobs.due(policy.name, now, limit - len(taken), ordered=ordered, with_budget=buried >= BURIALS_PER_CALL)
        moved = False
        for job in found:
            reason = burial(job.spent, now_ms=now)
            if reason is None:
                if jobs.lease(job, owner, now, until):
                    moved = True
                    _record_lost(job, now)
                    taken.append(_lease_of(job, until))
            elif buried < BURIALS_PER_CALL:
                moved = True
                buried += 1
                _bury(job, reason, now)
        if not moved:
            break
    return taken


def _lease_of(job: JobRow, until: int) -> Lease:
    return Lease(job.id, job.queue, job.quantity, job.payload, job.attempts + 1, job.token + 1, until, job.deadline)


def _bury(job: JobRow, reason: str, now: int) -> None:
    """Quarantine a due job whose budget is over, with its failure row."""
    lost = _record_lost(job, now)
    code = LEASE_EXPIRED if lost else evidence.last_code(job.id)
    if not jobs.bury(job, reason, code, now):
        raise RuntimeError(f"Job {job.id} moved inside the transaction that holds it.")
    if job.state == "pending":
        evidence.add_failure(job.id, job.token + 1, attempt=job.attempts, at_ms=now, outcome="deadline_passed")
    _record_end(job, "dead", reason, code, job.token + 1, now)


def _record_lost(job: JobRow, now: int) -> bool:
    """Write that the token of an expired lease was lost, unless it has told something already (DESIGN section 3)."""
    if job.state != "leased":
        return False
    return evidence.add_failure(
        job.id,
        job.token,
        attempt=job.attempts,
        at_ms=now,
        outcome=LEASE_EXPIRED,
        code=LEASE_EXPIRED,
        worker=job.owner or "",
    )


def _finish_all(results: Sequence[Result], now: int) -> list[bool]:
    jobs.read_many(sorted({result.id for result in results}), lock=True)
    policies: dict[str, QueuePolicy] = {}
    return [_finish(result, now, policies) is not None for result in results]


def _finish(result: Result, now: int, policies: dict[str, QueuePolicy]) -> str | None:
    job = jobs.read(result.id, lock=True)
    if job is None or job.state != "leased" or job.token != result.token:
        if job is not None and job.token > result.token:
            evidence.note_late_finish(job.id, result.token, result.outcome, now)
        return None
    policy = policies.get(job.queue) or policies.setdefault(job.queue, _policy(job.queue))
    decision = decide(result.outcome, job.spent, policy, now, code=result.code, retry_after_ms=result.retry_after_ms)
    if isinstance(decision, Done):
        state, moved = "done", jobs.complete(job.id, job.token, now)
    elif isinstance(decision, RetryAt):
        state, moved = "pending", jobs.retry(job.id, job.token, decision.at_ms, decision.wait_ms, now)
    else:
        state, moved = "dead", jobs.quarantine(job.id, job.token, decision.reason, decision.code, now)
    if not moved:
        return None
    if result.outcome != "ok":
        evidence.add_failure(
            job.id,
            job.token,
            attempt=job.attempts,
            at_ms=now,
            outcome=result.outcome,
            code=result.code,
            worker=job.owner or "",
        )
    if isinstance(decision, Quarantine):
        _record_end(job, "dead", decision.reason, decision.code, job.token, now)
    elif state == "done":
        _record_end(job, "done", "", "", job.token, now)
    return state


def _record_end(job: JobRow, state: str, reason: str, code: str, token: int, now: int) -> None:
    if job.redriven:
        evidence.add_redrive_outcome(job.id, state=state, reason=reason, code=code, end_token=token, at_ms=now)


# --- arguments ------------------------------------------------------------------------------------------------------


def _check_span(name: str, value: object, high: int) -> None:
    if type(value) is not int or not 1 <= value <= high:
        raise ValueError(f"{name} must be a whole number from 1 to {high:,}.")
