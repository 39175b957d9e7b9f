"""What becomes of an attempt: done, another try at an instant, or quarantine because (DESIGN section 4).

Pure: the clock, the jitter and every limit are arguments.
"""

from dataclasses import dataclass

from queue_app.policy.queues import QueuePolicy

OUTCOMES = ("ok", "retry", "permanent")
RETRY_AFTER_CAP_MS = 3_600_000  # a receiver's wish above an hour is not believed


@dataclass(frozen=True, slots=True)
class Done:
    """Delivered: the job is finished for good."""


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Another try, not before `at_ms`; `wait_ms` is what it adds to the waits of this budget."""

    at_ms: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Automatic repetition stops; `reason` is permanent, exhausted or deadline."""

    reason: str
    code: str


Decision = Done | RetryAt | Quarantine


@dataclass(frozen=True, slots=True)
class Spent:
    """What of its budget a job has used: attempts handed out of `max_attempts`, waits so far, and its deadline."""

    attempts: int
    max_attempts: int
    waited_ms: int
    deadline: int


def retry_wait_ms(policy: QueuePolicy, attempt: int, *, retry_after_ms: int | None = None, jitter_ms: int = 0) -> int:
    """The wait in ms after attempt number `attempt` (from 1): base x 2^(attempt-1) up to the cap, plus jitter.

    The receiver's Retry-After counts when it is longer, bounded to [0, one hour].
    """
    doubled = policy.wait_base_ms << min(attempt - 1, 40)  # beyond 2^40 every cap has long been reached
    planned = min(doubled, policy.wait_cap_ms) + jitter_ms
    asked = min(max(retry_after_ms or 0, 0), RETRY_AFTER_CAP_MS)
    return max(planned, asked)


def decide(
    outcome: str,
    spent: Spent,
    policy: QueuePolicy,
    now_ms: int,
    *,
    code: str = "",
    retry_after_ms: int | None = None,
    jitter_ms: int = 0,
) -> Decision:
    """The row `finish` of DESIGN section 4. Raises ValueError for an outcome that is none of OUTCOMES."""
    if outcome == "ok":
        return Done()
    if outcome == "permanent":
        return Quarantine("permanent", code)
    if outcome != "retry":
        raise ValueError(f"The outcome {outcome!r} is none of {', '.join(OUTCOMES)}.")
    if spent.attempts >= spent.max_attempts:
        return Quarantine("exhausted", code)
    wait_ms = retry_wait_ms(policy, spent.attempts, retry_after_ms=retry_after_ms, jitter_ms=jitter_ms)
    if policy.wait_budget_ms is not None and spent.waited_ms + wait_ms > policy.wait_budget_ms:
        return Quarantine("exhausted", "wait_budget")
    if now_ms + wait_ms >= spent.deadline:
        return Quarantine("deadline", code)
    return RetryAt(now_ms + wait_ms, wait_ms)


def burial(spent: Spent, *, now_ms: int) -> str | None:
    """Why a due job is not handed out any more: `exhausted` (this one wins), `deadline`, or None: hand it out."""
    if spent.attempts >= spent.max_attempts:
        return "exhausted"
    if spent.deadline <= now_ms:
        return "deadline"
    return None


def lease_end_ms(now_ms: int, lease_ms: int, deadline: int) -> int:
    """Until when a renewed lease may last: never past the deadline by more than one lease."""
    return min(now_ms + lease_ms, deadline + lease_ms)
