"""What one worker has in hand: leases being delivered or waiting for a thread, and what is still to be written down."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from queue_app.delivery.hands import Hands
from queue_app.policy.attempts import Lease, Result
from queue_app.services import leases, runs
from queue_app.services.runs import Held

log = structlog.get_logger(__name__)

EACH_BY_NAME = 3  # so many delivered orders are named in the log; of a larger group it keeps the number


@dataclass(slots=True)
class Tally:
    """How the attempts of one worker ended. `back`: given back, not begun; `left`: still leased when it ended; `stuck`:
    orders of the queue that wait for a person, because the one before them is in quarantine."""

    ok: int = 0
    retry: int = 0
    permanent: int = 0
    unknown: int = 0
    refused: int = 0  # told too late: another worker had taken over
    back: int = 0
    left: int = 0
    stuck: int = 0

    @property
    def ended(self) -> int:
        """All attempts that ended."""
        return self.ok + self.retry + self.permanent + self.unknown + self.refused


class Holding:
    """The leases in hand. Every method belongs to the worker's own thread; those that write may raise DatabaseError."""

    def __init__(self, hands: Hands) -> None:
        self.tally = Tally()
        self.results: list[Result] = []
        self.fatal: BaseException | None = None
        self._hands = hands
        self._held: dict[tuple[str, int], Held] = {}
        self._back: list[Held] = []
        self._unknown: deque[tuple[str, int, str]] = deque()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def unwritten(self) -> bool:
        """Whether something is still to be written down."""
        return bool(self.results or self._back or self._unknown)

    def take(self, taken: Iterable[Lease], good_until_ms: int) -> None:
        """Hand new leases to the threads; each lasts until then at least, on the monotonic clock."""
        for lease in taken:
            mine = runs.held(lease, good_until_ms)
            self._held[lease.id, lease.token] = mine
            self._hands.give(mine)

    def gather(self) -> tuple[int, int]:
        """Sort what ended: outcomes, what was not begun, and answers that prove nothing. How many deliveries ended, and
        how long they took in all (ms)."""
        found = self._hands.gather()
        for ended in found:
            lease = ended.lease
            self._held.pop((lease.id, lease.token), None)
            if ended.error is not None:
                self._note_unknown(lease, ended.error)
            elif ended.result is None:
                self._back.append(lease)
            else:
                if lease.signal.cancelled:
                    log.warning("cancel_too_late", job=lease.id, token=lease.token, outcome=ended.result.outcome)
                self.results.append(ended.result)
        delivered = [ended.took_ms for ended in found if ended.result or ended.error]
        return len(delivered), sum(delivered)

    def _note_unknown(self, lease: Held, error: BaseException) -> None:
        code = runs.code_of(error)
        log.error("unknown_outcome", job=lease.id, token=lease.token, code=code, kind=type(error).__name__)
        self.tally.unknown += 1
        self._unknown.append((lease.id, lease.token, code))
        if not isinstance(error, Exception):
            self.fatal = self.fatal or error

    def cancel(self) -> None:
        """Nothing in hand may begin any more; what no thread has taken yet is given back, the rest at its checkpoint."""
        for lease in self._held.values():
            lease.signal.cancelled = True
        self.take_back()

    def go_on(self) -> None:
        """What is still in hand may go on after all."""
        for lease in self._held.values():
            lease.signal.cancelled = False

    def take_back(self) -> None:
        """Take from the threads what none of them has begun with, to give it back."""
        for lease in self._hands.take_back():
            del self._held[lease.id, lease.token]
            self._back.append(lease)

    def write_down(self) -> None:
        """Write what proves nothing, and give back what was not begun. What ended well is `results`."""
        while self._unknown:
            job_id, token, code = self._unknown[0]
            leases.record_unknown(job_id, token, code)
            self._unknown.popleft()
        if self._back:
            released = leases.release_many([(lease.id, lease.token) for lease in self._back])
            self.tally.back += sum(released)
            self._back = []

    def report(self, answers: list[bool]) -> None:
        """Count and log what the database said to `results`, which then are done with."""
        named = sum(result.outcome == "ok" for result in self.results) <= EACH_BY_NAME
        delivered = 0
        for result, kept in zip(self.results, answers, strict=True):
            name = result.outcome if kept else "refused"
            setattr(self.tally, name, getattr(self.tally, name) + 1)
            if kept and result.outcome == "ok" and not named:
                delivered += 1
                continue
            log.info(
                "finished" if kept else "finish_refused",
                job=result.id,
                token=result.token,
                outcome=result.outcome,
                code=result.code,
            )
        if delivered:
            log.info("finished_many", n=delivered, outcome="ok")
        self.results = []

    def renew(self, now_ms: int, lease_ms: int, wanted_ms: int | None) -> None:
        """Extend every lease of which a third has passed, in one statement; tell a delivery whose token is lost.

        `now_ms` of the monotonic clock; `wanted_ms` is the worker's own lease, or None for the queue's.
        """
        soon = now_ms + lease_ms * 2 // 3
        due = [lease for lease in self._held.values() if lease.signal.good_until_ms <= soon and not lease.signal.lost]
        if not due:
            return
        kept = leases.renew_many([(lease.id, lease.token) for lease in due], lease_ms=wanted_ms)
        for lease, ours in zip(due, kept, strict=True):
            if ours:
                lease.signal.good_until_ms = now_ms + lease_ms
            else:
                lease.signal.lost = True
                log.warning("lease_lost", job=lease.id, token=lease.token)
