"""One turn of a worker: claim a job, hand it to `deliver`, finish it (DESIGN section 4, `run_once`)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from queue_app.policy.attempts import Lease, Result, check_result
from queue_app.policy.errors import BadAck, Cancelled, Permanent, Retryable
from queue_app.policy.orders import check_code
from queue_app.services.leases import claim, finish_state, record_unknown, release

log = structlog.get_logger(__name__)

Deliver = Callable[[Lease], object]


class Signal:
    """What a worker tells a delivery that runs in another thread. Plain flags: one side writes, the other reads."""

    __slots__ = ("cancelled", "good_until_ms", "lost")

    def __init__(self, good_until_ms: int) -> None:
        self.cancelled = False  # nothing new may begin
        self.lost = False  # another worker may have taken over
        self.good_until_ms = good_until_ms  # of the monotonic clock: the lease surely lasts so long


@dataclass(frozen=True, slots=True)
class Held(Lease):
    """A lease in the hands of a worker that renews it. To `deliver` it is a lease; one that takes long may ask it."""

    signal: Signal = field(compare=False, repr=False)

    @property
    def lost(self) -> bool:
        """Whether the token was lost: another worker may be delivering this order now, and what comes is refused."""
        return self.signal.lost

    def checkpoint(self) -> None:
        """To be called right before the effect: Cancelled if it must not happen any more. Afterwards nothing recalls it."""
        if self.signal.cancelled or self.signal.lost:
            raise Cancelled


def held(lease: Lease, good_until_ms: int) -> Held:
    """The lease with a signal of its own."""
    return Held(
        lease.id,
        lease.queue,
        lease.quantity,
        lease.payload_text,
        lease.attempt,
        lease.token,
        lease.lease_until,
        lease.deadline,
        Signal(good_until_ms),
    )


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
        return answer_of(deliver, lease)
    except Cancelled:
        return None
    except BaseException as error:
        keep_unknown(lease, error, now_ms=now_ms)
        raise


def answer_of(deliver: Deliver, lease: Lease) -> Result:
    """The outcome as `deliver` told it; asks nothing of the database, so any thread may call it.

    Raises Cancelled, and whatever proves nothing. A code that could not be stored is a mistake of the adapter.
    """
    try:
        answer = deliver(lease)
    except Retryable as wish:
        return check_result(Result(lease.id, lease.token, "retry", wish.code, wish.retry_after_ms))
    except Permanent as refusal:
        return check_result(Result(lease.id, lease.token, "permanent", refusal.code))
    if answer is not True:
        raise BadAck
    return Result(lease.id, lease.token, "ok")


def keep_unknown(lease: Lease, error: BaseException, *, now_ms: int | None = None) -> None:
    """Write the evidence at once; its own failure must not hide the error that is on its way to the caller."""
    try:
        record_unknown(lease.id, lease.token, code_of(error), now_ms=now_ms)
    except Exception as trouble:
        log.error("unknown_outcome_not_recorded", job=lease.id, token=lease.token, code=type(trouble).__name__)


def code_of(error: BaseException) -> str:
    """The code under which an outcome that proves nothing is kept."""
    if not isinstance(error, BadAck):
        return "exception"
    try:
        return check_code(error.code)
    except ValueError:
        return "bad_ack"
