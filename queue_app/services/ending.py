"""What becomes of jobs whose attempts have ended (DESIGN section 4, "finish"). Inside the transaction of `leases.py`."""

from collections.abc import Callable, Mapping, Sequence

from queue_app.policy.attempts import Result
from queue_app.policy.decisions import Decision, Done, Quarantine, RetryAt, decide
from queue_app.policy.queues import QueuePolicy
from queue_app.services import gates
from queue_app.store import ends, evidence
from queue_app.store.ends import HeldRow
from queue_app.store.evidence import End, FailureRow

_Ending = tuple[Result, HeldRow, Decision]


def end_all(
    results: Sequence[Result], held: Mapping[str, HeldRow], now: int, policy_of: Callable[[str], QueuePolicy]
) -> list[str | None]:
    """The new state for each result, or None where the token was refused. Of one token the first result counts.

    `held`: the jobs that the results name, as `store.ends.held` found them.
    """
    if not results:
        return []
    endings: dict[str, _Ending] = {}
    owners: dict[int, str] = {}
    late: list[tuple[str, int, str]] = []
    for place, result in enumerate(results):
        job = held.get(result.id)
        if job is not None and job.owned_by(result.token):
            if job.id not in endings:
                endings[job.id] = (result, job, _decide(result, job, now, policy_of))
                owners[place] = job.id
        elif job is not None and job.token > result.token:
            late.append((job.id, result.token, result.outcome))
    states = _carry_out(endings, now)
    evidence.note_late_finishes(late, now)
    return [states.get(owners.get(place, "")) for place in range(len(results))]


def _decide(result: Result, job: HeldRow, now: int, policy_of: Callable[[str], QueuePolicy]) -> Decision:
    policy = policy_of(job.queue) if result.outcome == "retry" else _ANY
    return decide(result.outcome, job.spent, policy, now, code=result.code, retry_after_ms=result.retry_after_ms)


_ANY = QueuePolicy("any")  # success and refusal ask nothing of the queue


def _carry_out(endings: dict[str, _Ending], now: int) -> dict[str, str]:
    """Job id -> new state, of those that moved: one update for each kind of end, then the evidence."""
    done, waits, deaths = [], [], []
    for result, job, decision in endings.values():
        if isinstance(decision, Done):
            done.append((job.id, result.token))
        elif isinstance(decision, RetryAt):
            waits.append((job.id, result.token, decision.at_ms, decision.wait_ms))
        else:
            deaths.append((job.id, result.token, decision.reason, decision.code))
    states = dict.fromkeys(ends.complete(done, now), "done")
    states |= dict.fromkeys(ends.retry(waits, now), "pending")
    states |= dict.fromkeys(ends.quarantine(deaths, now), "dead")
    _record([ending for job_id, ending in endings.items() if job_id in states], now)
    return states


def _record(moved: Sequence[_Ending], now: int) -> None:
    evidence.add_failures(
        [
            FailureRow(job.id, job.token, job.attempts, result.outcome, result.code, job.owner or "")
            for result, job, _ in moved
            if result.outcome != "ok"
        ],
        now,
    )
    evidence.add_redrive_outcomes(
        [_end(job, decision) for _, job, decision in moved if job.redriven and not isinstance(decision, RetryAt)], now
    )
    by_queue: dict[str, list[Result]] = {}
    asked = set()
    for result, job, _ in moved:
        by_queue.setdefault(job.queue, []).append(result)
        if result.outcome != "ok" or job.troubled:
            asked.add(job.queue)
    for queue in sorted(asked):  # while all is well there is nothing to tell
        gates.ended(queue, by_queue[queue], now)


def _end(job: HeldRow, decision: Decision) -> End:
    if isinstance(decision, Quarantine):
        return End(job.id, "dead", decision.reason, decision.code, job.token)
    return End(job.id, "done", "", "", job.token)
