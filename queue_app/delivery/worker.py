"""The loop of a worker: claim, deliver, finish, until told to stop (DESIGN sections 4 and 6).

What was delivered but could not be written down is kept in memory and written as soon as the database answers again; if
the process dies before, the lease's end brings the job back and the receiver recognises the id.
"""

import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, InterfaceError, connection

from queue_app import clock
from queue_app.policy.attempts import Lease, Result
from queue_app.services import leases, life_signs, runs
from queue_app.services.life_signs import BEAT_MS

log = structlog.get_logger(__name__)

IDLE_MS = (100, 1_000)  # between looks at an empty queue
TROUBLE_MS = (500, 30_000)  # between tries while the database refuses


class DrainOver(BaseException):
    """The time for ending the running delivery is over: it stays leased, and its lease's end brings it back."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one worker works. Durations in ms; `lease_ms` None means the queue's own."""

    owner: str
    queue: str = "snacks"
    prefetch: int = 1
    lease_ms: int | None = None
    delivery_ms: int = 10_000  # what one delivery takes at most; a lease with less left is renewed first
    until_idle: bool = False


class Worker:
    """One worker in one thread. `deliver` is called outside any transaction."""

    def __init__(self, deliver: runs.Deliver, settings: Settings, *, wait: Callable[[float], bool] | None = None):
        self._deliver = deliver
        self._settings = settings
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait  # seconds -> whether to stop
        self._leases: deque[Lease] = deque()
        self._results: list[Result] = []
        self._beaten_ms = -BEAT_MS
        self._detail = ""
        self.delivering = False

    def stop(self) -> None:
        """No new claim from now on; safe in a signal handler."""
        self._stop.set()

    def run(self) -> None:
        """Work until `stop`; then write down what ended and give back what was not started."""
        idle_ms, trouble_ms = IDLE_MS[0], TROUBLE_MS[0]
        self._try(lambda: life_signs.arrive(self._settings.owner, "worker", self._settings.queue))
        while not self._stop.is_set():
            self._beat()
            if not self._try(self._settle):
                self._wait(trouble_ms * random.uniform(0.5, 1.0) / 1000)  # noqa: S311 - spreads the tries
                trouble_ms = min(trouble_ms * 2, TROUBLE_MS[1])
                continue
            trouble_ms = TROUBLE_MS[0]
            if self._leases:
                idle_ms = IDLE_MS[0]
                self._deliver_next()
            elif self._settings.until_idle:
                break
            else:
                self._wait(idle_ms / 1000)
                idle_ms = min(idle_ms * 2, IDLE_MS[1])
        self.end()

    def _settle(self) -> None:
        """One transaction: write down what ended, and take new jobs when there are none in hand."""
        if self._leases:
            if self._results:
                self._report(leases.finish_many(self._results))
            return
        settings = self._settings
        answers, taken = leases.finish_and_claim(
            self._results, settings.owner, queue=settings.queue, limit=settings.prefetch, lease_ms=settings.lease_ms
        )
        self._report(answers)
        self._leases.extend(taken)

    def _report(self, answers: list[bool]) -> None:
        for result, kept in zip(self._results, answers, strict=True):
            log.info(
                "finished" if kept else "finish_refused",
                job=result.id,
                token=result.token,
                outcome=result.outcome,
                code=result.code,
            )
        self._results = []

    def _deliver_next(self) -> None:
        lease = self._leases.popleft()
        if not self._still_ours(lease):
            return
        self.delivering = True
        try:
            result = runs.outcome_of(self._deliver, lease)
        except Exception as error:
            log.error(
                "unknown_outcome",
                job=lease.id,
                token=lease.token,
                code=getattr(error, "code", "exception"),
                kind=type(error).__name__,
            )
            return
        finally:
            self.delivering = False
        if result is None:
            self._try(lambda: leases.release(lease.id, lease.token))
        else:
            self._results.append(result)

    def _still_ours(self, lease: Lease) -> bool:
        """Renew a lease that waited in hand so long that a delivery might outlast it; False when it was lost."""
        if self._settings.prefetch == 1:
            return True
        kept: list[bool] = []
        self._try(lambda: kept.append(leases.renew(lease.id, lease.token, lease_ms=self._settings.lease_ms)))
        return kept == [True]

    def _beat(self) -> None:
        if clock.monotonic_ms() - self._beaten_ms >= BEAT_MS:
            self._beaten_ms = clock.monotonic_ms()
            settings, detail = self._settings, self._detail
            self._try(lambda: life_signs.beat(settings.owner, "worker", settings.queue, detail))

    def _try(self, act: Callable[[], object]) -> bool:
        """Whether the database took it. Trouble is logged by kind, never by its text, and the connection renewed."""
        try:
            act()
        except (DatabaseError, InterfaceError) as error:
            self._detail = trouble_of(error)
            log.error("database_refuses", worker=self._settings.owner, code=self._detail)
            connection.close()
            return False
        self._detail = ""
        return True

    def end(self) -> None:
        """Write down what ended and give back what was not started."""
        if self._results:
            self._try(lambda: self._report(leases.finish_many(self._results)))
        for lease in self._leases:
            self._try(lambda lease=lease: leases.release(lease.id, lease.token))  # type: ignore[misc]
        self._leases.clear()
        self._try(lambda: life_signs.leave(self._settings.owner))


def trouble_of(error: Exception) -> str:
    """A short word for what the database refuses: disk_full, read_only, locked, damaged, or database_error."""
    text = str(error).lower()
    for part, word in (
        ("full", "disk_full"),
        ("no space", "disk_full"),
        ("readonly", "read_only"),
        ("read-only", "read_only"),
        ("locked", "locked"),
        ("malformed", "damaged"),
        ("not a database", "damaged"),
    ):
        if part in text:
            return word
    return "database_error"
