"""The loop of a worker: claim, have delivered, finish, until told to stop (DESIGN sections 4 and 6).

One thread owns the database: it claims, finishes, renews and says that the worker lives. The others only deliver
(`hands.py`). What was delivered but could not be written down is kept in memory and written as soon as the database
answers again; if the process dies before, the lease's end brings the job back and the receiver recognises the id.
"""

import random
import socket
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import structlog
from django.db import DatabaseError, InterfaceError, connection

from queue_app import clock
from queue_app.delivery.hands import Hands
from queue_app.delivery.holding import Holding, Tally
from queue_app.delivery.troubles import trouble_of
from queue_app.policy import paces
from queue_app.policy.queues import QueuePolicy
from queue_app.reads import sizes
from queue_app.services import leases, life_signs, runs
from queue_app.services.life_signs import BEAT_MS, Work
from queue_app.store import processes, queues

log = structlog.get_logger(__name__)

IDLE_MS = (100, 1_000)  # between looks at an empty queue
TROUBLE_MS = (500, 30_000)  # between tries while the database refuses
LOOK_MS = 500  # between looks at the queue's row and the own: what a person says acts everywhere within a second


@dataclass(frozen=True, slots=True)
class Settings:
    """How one worker works. Durations in ms; `lease_ms` None means the queue's own.

    `prefetch` 0 lets the worker judge by how fast jobs end; else so many are in hand, delivered or waiting.
    """

    owner: str
    queue: str = "snacks"
    prefetch: int = 0
    lease_ms: int | None = None
    delivery_ms: int = 10_000  # what one delivery takes at most; with less of the lease left, none begins
    until_idle: bool = False  # end when nothing is due
    until_empty: bool = False  # end when nothing is unfinished, or what is left was cancelled
    concurrency: int = 1
    drain_ms: int = 30_000  # how long running deliveries may take after `stop`


class Worker:
    """One worker. `deliver` is called outside any transaction, in up to `concurrency` threads at once.

    `wait(seconds)` replaces the waits in which nothing is in hand.
    """

    def __init__(self, deliver: runs.Deliver, settings: Settings, *, wait: Callable[[float], object] | None = None):
        self._settings = settings
        # put() of a SimpleQueue may be called in a signal handler, whatever it interrupts; an Event could deadlock
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._wait = wait or self._listen
        self._hands = Hands(deliver, settings.concurrency, ring=lambda: self._bell.put(None))
        self._holding = Holding(self._hands)
        self._policy: QueuePolicy | None = None
        self._arrived = self._told = self._said_told = False
        self._drain_end_ms: int | None = None
        self._paused = False
        self._dry = False  # the last claim found nothing
        self._empty = False  # nothing of the queue is unfinished
        self._trouble = ""
        self._trouble_ms, self._idle_ms = TROUBLE_MS[0], IDLE_MS[0]
        self._lease_ms = 0
        self._look_at_ms = self._claim_at_ms = 0
        self._beaten_ms = -BEAT_MS
        self._ended_ms, self._mean_us, self._capacity_mj, self._commit_ms = 0, 0, 0, 5
        self._rate_mj, self._rated_n = 0, 0  # of the time since the last beat

    @property
    def tally(self) -> Tally:
        """How the attempts of this worker ended so far."""
        return self._holding.tally

    def stop(self) -> None:
        """No new claim from now on, and nothing begins any more; safe in a signal handler."""
        self._told = self._hands.closed = True
        self._bell.put(None)

    def run(self) -> Tally:
        """Work until `stop`; then let running deliveries end, write them down and give back what was not begun.

        An exception of `deliver` that is meant to end the process (KeyboardInterrupt, SystemExit) is raised after that.
        """
        self._try(self._arrive)
        self._hands.start()
        try:
            while self._step():
                pass
        finally:
            self._end()
        if self._holding.fatal is not None:
            raise self._holding.fatal
        return self.tally

    # --- one turn ---------------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """One turn of the loop; whether to go on."""
        now = clock.monotonic_ms()
        self._measure(now, *self._holding.gather())
        if self._holding.fatal is not None:
            self.stop()
        if self._told and self._drain_end_ms is None:
            self._drain_end_ms = now + self._settings.drain_ms
            self._look_at_ms = 0  # the pages learn at once that it takes nothing new
            self._holding.cancel()
        if not (self._try(lambda: self._look(now)) and self._try(lambda: self._settle(now))):
            self._sit_out(self._trouble_wait_ms())
            return self._drain_end_ms is None or clock.monotonic_ms() < self._drain_end_ms
        self._trouble_ms = TROUBLE_MS[0]
        if self._over():
            return False
        self._rest()
        return True

    def _trouble_wait_ms(self) -> float:
        """Longer each time, but not so long that the leases of what still runs, or the time for draining, are over."""
        wait_ms = self._trouble_ms * random.uniform(0.5, 1.0)  # noqa: S311 - spreads the tries
        self._trouble_ms = min(self._trouble_ms * 2, TROUBLE_MS[1])
        if len(self._holding):
            wait_ms = min(wait_ms, max(self._lease_ms / 6, TROUBLE_MS[0] / 2))
        if self._drain_end_ms is not None:
            wait_ms = min(wait_ms, max(self._drain_end_ms - clock.monotonic_ms(), 0))
        return wait_ms

    def _arrive(self) -> None:
        life_signs.arrive(self._settings.owner, "worker", self._settings.queue, self._work())
        self._arrived = True

    def _look(self, now: int) -> None:
        """Renew, beat, and see whether the queue was paused or cancelled, or this worker told to end, meanwhile."""
        if now < self._look_at_ms:
            return
        if not self._arrived:  # the database refused: its row would tell what another process of this name was told
            self._arrive()
        self._policy = queues.policy_of(self._settings.queue) or self._policy
        self._look_at_ms = now + LOOK_MS
        if not self._told and processes.told_to_drain(self._settings.owner):
            log.info("told_to_drain", worker=self._settings.owner)
            self.stop()
        if self._policy is None:
            return
        self._lease_ms = self._settings.lease_ms or self._policy.lease_ms
        self._look_at_ms = now + min(LOOK_MS, self._lease_ms // 6)
        self._hands.margin_ms = min(self._settings.delivery_ms, self._lease_ms // 2)
        self._holding.renew(now, self._lease_ms, self._settings.lease_ms)
        if self._policy.paused != self._paused:
            self._paused = self._policy.paused
            (self._holding.cancel if self._paused else self._holding.go_on)()
        if not self._settings.prefetch and not self._ahead() and len(self._holding) > self._settings.concurrency:
            self._holding.take_back()  # the receiver became slow: what waits here, another worker may begin
        if now - self._beaten_ms >= BEAT_MS or self._told != self._said_told:
            self._rate_mj = (self.tally.ended - self._rated_n) * 1_000_000 // max(now - self._beaten_ms, 1)
            self._beaten_ms, self._rated_n, self._said_told = now, self.tally.ended, self._told
            settings, work = self._settings, self._work()
            life_signs.beat(settings.owner, "worker", settings.queue, self._trouble, work)

    def _settle(self, now: int) -> None:
        """Write down what ended, and in the same transaction take new jobs as far as hands are free."""
        self._holding.write_down()
        settings, results, room = self._settings, self._holding.results, self._room()
        if room > 0 and (results or now >= self._claim_at_ms):
            before = clock.monotonic_ms()
            answers, taken = leases.finish_and_claim(
                results, settings.owner, queue=settings.queue, limit=room, lease_ms=settings.lease_ms
            )
            self._commit_ms += (clock.monotonic_ms() - before - self._commit_ms) // 4
            self._holding.report(answers)
            self._holding.take(taken, before + self._lease_ms)
            self._dry = not taken
            self._plan_next_claim(now, full=len(taken) == room)
        elif results:
            self._holding.report(leases.finish_many(results))
        if settings.until_empty and (self._dry or self._paused) and not len(self._holding):
            self._empty = sizes.unfinished(settings.queue) == 0
            if self._policy is not None and self._policy.ordering == "ordered":
                self.tally.stuck = sizes.stuck(settings.queue)

    def _plan_next_claim(self, now: int, *, full: bool) -> None:
        """At once if there may be more; else soon, and less and less often while nothing comes."""
        if not self._dry or (self._policy and self._policy.delivery_rate_mj):
            self._idle_ms = IDLE_MS[0]  # a rate lets through what it holds back for moments only
        self._claim_at_ms = 0 if full else now + self._idle_ms
        self._idle_ms = min(self._idle_ms * 2, IDLE_MS[1])

    def _room(self) -> int:
        if self._told or self._paused or self._policy is None:
            return 0
        settings = self._settings
        wanted = max(settings.prefetch, settings.concurrency)
        return wanted + (0 if settings.prefetch else self._ahead()) - len(self._holding)

    def _ahead(self) -> int:
        return paces.ahead(self._capacity_mj, self._commit_ms)

    def _measure(self, now: int, ended: int, took_ms: int) -> None:
        if ended or not len(self._holding):
            self._ended_ms = now
        self._mean_us = paces.mean_us(self._mean_us, ended, took_ms, now - self._ended_ms)
        self._capacity_mj = paces.capacity_mj(self._settings.concurrency, self._mean_us)
        self._hands.group = paces.group(self._capacity_mj)

    def _over(self) -> bool:
        if self._drain_end_ms is not None and clock.monotonic_ms() >= self._drain_end_ms:
            return True
        if len(self._holding) or self._holding.unwritten or self._hands.ended:
            return False
        if self._drain_end_ms is not None or (self._settings.until_idle and self._dry):
            return True
        cancelled = self._paused and self._policy is not None and not self._policy.accepting
        return self._settings.until_empty and (cancelled or self._empty or self.tally.stuck > 0)

    def _rest(self) -> None:
        """Wait until something is to be done: enough has ended, it is time to claim, renew or look, or `stop`."""
        now = clock.monotonic_ms()
        next_ms = self._look_at_ms
        gathers = self._hands.group > 1 and self._hands.waiting() > 0  # nobody has nothing to do
        if self._room() > 0 and not gathers:
            next_ms = min(next_ms, self._claim_at_ms)
        if not len(self._holding):
            if next_ms > now:
                self._wait((next_ms - now) / 1000)
            return
        if gathers:
            next_ms = min(next_ms, now + paces.GATHER_MS)
        if self._drain_end_ms is not None:
            next_ms = min(next_ms, self._drain_end_ms)
        if next_ms > now:
            self._listen((next_ms - now) / 1000)

    # --- the database, the end --------------------------------------------------------------------------------------

    def _listen(self, seconds: float) -> bool:
        """Whether somebody rang before the time was over."""
        try:
            self._bell.get(timeout=max(seconds, 0.001))
        except Empty:
            return False
        return True

    def _sit_out(self, wait_ms: float) -> None:
        """Wait in trouble. A delivery that ends meanwhile rings, too, but makes no database well: `stop` alone is heeded."""
        end_ms, told = clock.monotonic_ms() + wait_ms, self._told
        rang = self._wait(wait_ms / 1000)
        while rang is True and self._told == told and clock.monotonic_ms() < end_ms:
            rang = self._listen((end_ms - clock.monotonic_ms()) / 1000)

    def _work(self) -> Work:
        tally, settings = self.tally, self._settings
        return Work(
            host=socket.gethostname()[:128],
            concurrency=settings.concurrency,
            ended=tally.ended,
            failed=tally.ended - tally.ok,
            rate_mj=self._rate_mj,
            draining=self._told,
        )

    def _try(self, act: Callable[[], object]) -> bool:
        """Whether the database took it. Trouble is logged by kind, never by its text, and the connection renewed."""
        try:
            act()
        except (DatabaseError, InterfaceError) as error:
            self._trouble = trouble_of(error)
            log.error("database_refuses", worker=self._settings.owner, code=self._trouble)
            connection.close()
            return False
        self._trouble = ""
        return True

    def _end(self) -> None:
        """Write down what ended, give back what was not begun, leave the leases of what still runs."""
        self._holding.cancel()
        self._holding.gather()
        self._try(self._holding.write_down)
        if self._holding.results:
            self._try(lambda: self._holding.report(leases.finish_many(self._holding.results)))
        self.tally.left = len(self._holding) + len(self._holding.results)
        self._hands.dismiss(0 if self.tally.left else 1)
        self._try(lambda: life_signs.leave(self._settings.owner, self._work()))
