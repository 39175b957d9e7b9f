"""The threads that deliver. They speak HTTP and nothing else: the worker's own thread owns the database.

What goes in and what comes out are queues in memory, bounded because the worker never holds more than it asked for.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from django.db import connections

from queue_app import clock
from queue_app.policy.attempts import Result
from queue_app.policy.errors import Cancelled
from queue_app.services import runs
from queue_app.services.runs import Held


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a lease in hand: an outcome, or what was raised instead; neither: it was not begun."""

    lease: Held
    result: Result | None = None
    error: BaseException | None = None
    took_ms: int = 0


class Hands:
    """`n` threads. `ring` is called, by one of them, when `group` leases have ended or nothing waits for a thread."""

    def __init__(self, deliver: runs.Deliver, n: int, *, ring: Callable[[], None]) -> None:
        self.ended: deque[Ended] = deque()
        self.group = 1
        self.closed = False  # no thread begins with anything from now on
        self.margin_ms = 0  # a delivery begins only if its lease surely lasts that much longer
        self.rung = False
        self._deliver = deliver
        self._ring = ring
        self._work: SimpleQueue[Held | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"hand-{k}", daemon=True) for k in range(n)]

    def start(self) -> None:
        """Start the threads. They are daemons: a delivery that does not end must not keep the process alive."""
        for thread in self._threads:
            thread.start()

    def give(self, lease: Held) -> None:
        """Have this lease delivered by the next free thread."""
        self._work.put(lease)

    def take_back(self) -> list[Held]:
        """The leases that no thread has begun with."""
        found: list[Held] = []
        try:
            while True:
                lease = self._work.get_nowait()
                if lease is not None:
                    found.append(lease)
        except Empty:
            return found

    def waiting(self) -> int:
        """How many leases no thread has begun with."""
        return self._work.qsize()

    def gather(self) -> list[Ended]:
        """All that ended since the last call."""
        self.rung = False  # before the look, so that whatever ends during it rings again
        found: list[Ended] = []
        while self.ended:
            found.append(self.ended.popleft())
        return found

    def dismiss(self, limit_s: float) -> None:
        """Let the threads go as soon as they have nothing to do; those still delivering after the limit are left alone."""
        for _thread in self._threads:
            self._work.put(None)
        end_ms = clock.monotonic_ms() + int(limit_s * 1000)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, (end_ms - clock.monotonic_ms()) / 1000))

    def _run(self) -> None:
        try:
            while (lease := self._work.get()) is not None:
                self.ended.append(self._one(lease))
                if not self.rung and (len(self.ended) >= self.group or self._work.empty()):
                    self.rung = True
                    self._ring()
        finally:
            connections.close_all()  # if `deliver` asked the database, it did so in a connection of this thread

    def _one(self, lease: Held) -> Ended:
        signal, begun_ms = lease.signal, clock.monotonic_ms()
        if self.closed or signal.cancelled or signal.lost or begun_ms + self.margin_ms > signal.good_until_ms:
            return Ended(lease)
        try:
            result = runs.answer_of(self._deliver, lease)
        except Cancelled:
            return Ended(lease)
        except BaseException as error:  # the worker's thread lets it reach the caller
            self.closed = self.closed or not isinstance(error, Exception)
            return Ended(lease, error=error, took_ms=clock.monotonic_ms() - begun_ms)
        return Ended(lease, result, took_ms=clock.monotonic_ms() - begun_ms)
