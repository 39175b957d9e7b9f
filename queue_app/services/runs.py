"""One turn of a worker: claim a job, hand it to `deliver`, finish it (DESIGN section 4, `run_once`)."""

from collections.abc import Callable

import structlog

from queue_app.policy.attempts import Lease, Result, check_result
from queue_app.policy.errors import BadAck, Cancelled, Permanent, Retryable
from queue_app.policy.orders import check_code
from queue_app.services.leases import claim, finish_state, record_unknown, release

log = structlog.get_logger(__name__)

Deliver = Callable[[Lease], object]


def run_once(
    deliver: Deliver,
    *,
    owner: str,
    queue: str = "snacks",
    lease_ms: int | None = None,
    now_ms: int | None = None,
) -> str | None:
    """None (nothing due), "lost" (another owner took over meanwhile), or the job's new state.

    Only the value True itself is success. Whatever is neither an answer nor one of Retryable, Permanent and Cancelled
    reaches the caller, and the job stays leased until its lease ends.
    """
    leases = claim(owner, queue=queue, lease_ms=lease_ms, now_ms=now_ms)
    return run_lease(deliver, leases[0], now_ms=now_ms) if leases else None


def run_lease(deliver: Deliver, lease: Lease, *, now_ms: int | None = None) -> str:
    """Deliver one lease that was claimed before; answers and raises as `run_once`."""
    result = outcome_of(deliver, lease, now_ms=now_ms)
    if result is None:
        return "pending" if release(lease.id, lease.token, now_ms=now_ms) else "lost"
    return finish_state(result, now_ms=now_ms) or "lost"


def outcome_of(deliver: Deliver, lease: Lease, *, now_ms: int | None = None) -> Result | None:
    """Call `deliver` outside any transaction and name its outcome; None: not started, give it back."""
    try:
        return _answer(deliver, lease)
    except Cancelled:
        return None
    except BaseException as error:
        _keep_unknown(lease, error, now_ms)
        raise


def _answer(deliver: Deliver, lease: Lease) -> Result:
    """The outcome as `deliver` told it. A code that could not be stored is a mistake of the adapter, and proves nothing."""
    try:
        answer = deliver(lease)
    except Retryable as wish:
        return check_result(Result(lease.id, lease.token, "retry", wish.code, wish.retry_after_ms))
    except Permanent as refusal:
        return check_result(Result(lease.id, lease.token, "permanent", refusal.code))
    if answer is not True:
        raise BadAck
    return Result(lease.id, lease.token, "ok")


def _keep_unknown(lease: Lease, error: BaseException, now_ms: int | None) -> None:
    """Write the evidence at once; its own failure must not hide the error that is on its way to the caller."""
    try:
        record_unknown(lease.id, lease.token, _code(error), now_ms=now_ms)
    except Exception as trouble:
        log.error("unknown_outcome_not_recorded", job=lease.id, token=lease.token, code=type(trouble).__name__)


def _code(error: BaseException) -> str:
    if not isinstance(error, BadAck):
        return "exception"
    try:
        return check_code(error.code)
    except ValueError:
        return "bad_ack"
