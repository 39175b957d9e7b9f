"""The loop of a redriver: make lists, begin batches, tick, seal, let run out, until told to stop (DESIGN section 8).

It keeps nothing but how long a tick may be: everything else lies in the database, so it may be killed anywhere, and as
many as wanted may run. It rests at least as long as it held the write lock, so that workers and pages get their turn.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

import structlog
from django.db import DatabaseError, InterfaceError, connection

from queue_app import clock
from queue_app.delivery.troubles import trouble_of
from queue_app.models import Plan
from queue_app.policy.buckets import BITE, next_bite
from queue_app.policy.selections import CHUNK
from queue_app.services import asking, freezing, housekeeping, life_signs, sealing, ticks
from queue_app.services.life_signs import BEAT_MS, Work
from queue_app.store import database, plans

log = structlog.get_logger(__name__)

IDLE_MS = 200  # between looks when nothing is due: a pause or stop takes effect by itself, a new approval within this
SEAL_MS = 1_000
TROUBLE_MS = (500, 30_000)  # between tries while the database refuses, and for one plan that cannot go on


@dataclass(slots=True)
class _Pace:
    """How one plan is handled by this process."""

    due_ms: int = 0  # on the monotonic clock
    trouble_ms: int = 0
    bite: int = BITE[1] // 4
    chunk: int = CHUNK[0]


@dataclass(slots=True)
class Redriver:
    """One redriver in one thread. `wait(seconds)` -> whether to stop; tests replace it."""

    owner: str
    wait: Callable[[float], bool] | None = None
    _told: bool = False
    # put() of a SimpleQueue may be called in a signal handler, whatever it interrupts; an Event could deadlock
    _bell: SimpleQueue[None] = field(default_factory=SimpleQueue)
    _paces: dict[int, _Pace] = field(default_factory=dict)
    _beaten_ms: int = -BEAT_MS
    _sealed_ms: int = -SEAL_MS
    _arrived: bool = False
    _detail: str = ""
    _held_ms: int = 0  # of the write lock, in the round at hand

    def stop(self) -> None:
        """End after the transaction at hand; safe in a signal handler."""
        self._told = True
        self._bell.put(None)

    def run(self) -> None:
        """Work until `stop`. Trouble with the database never ends it: it waits longer and longer, and tries again."""
        wait = self.wait or self._listen
        trouble_ms = TROUBLE_MS[0]
        while not self._told:
            try:
                rest_ms = self.once()
                trouble_ms, self._detail = TROUBLE_MS[0], ""
            except (DatabaseError, InterfaceError) as error:
                self._detail = trouble_of(error)
                log.error("database_refuses", redriver=self.owner, code=self._detail)
                connection.close()
                rest_ms, trouble_ms = trouble_ms, min(trouble_ms * 2, TROUBLE_MS[1])
            wait(rest_ms / 1_000)
        self.leave()

    def _listen(self, seconds: float) -> bool:
        try:
            self._bell.get(timeout=seconds)
        except Empty:
            return False
        return True

    def once(self) -> int:
        """One round over all plans that something is due for; how long to rest (ms)."""
        self._beat()
        self._held_ms = 0
        now = database.now_ms()
        open_plans = plans.at_work()
        self._paces = {plan.pk: self._paces.get(plan.pk) or _Pace() for plan in open_plans}
        for plan in open_plans:
            if self._told:
                break
            if self._paces[plan.pk].due_ms <= clock.monotonic_ms():
                self._turn(plan, now)
        self._seal()
        return self._rest_ms()

    def _turn(self, plan: Plan, now: int) -> None:
        """What is due for one plan. What goes wrong in one plan alone must not hold up the others."""
        pace = self._paces[plan.pk]
        try:
            delay_ms = self._act(plan, pace, now)
            pace.trouble_ms = 0
        except (DatabaseError, InterfaceError):
            raise
        except Exception as error:
            log.error("plan_refuses", redriver=self.owner, plan=plan.pk, kind=type(error).__name__)
            pace.trouble_ms = delay_ms = min(max(pace.trouble_ms * 2, TROUBLE_MS[0]), TROUBLE_MS[1])
        pace.due_ms = clock.monotonic_ms() + delay_ms

    def _act(self, plan: Plan, pace: _Pace, now: int) -> int:
        if plan.state != "running" and now >= plan.expires_at_ms:
            asking.let_run_out(plan.pk)
            return IDLE_MS
        if plan.state == "freezing":
            progress = freezing.step(plan.pk, pace.chunk)
            if progress is not None:
                pace.chunk = progress.size
                self._held_ms += progress.held_ms
            return 1 if progress is None or not progress.done else IDLE_MS
        if plan.state == "approved":
            return 0 if ticks.begin(plan.pk) else IDLE_MS
        if plan.state == "running":
            return self._tick(plan, pace)
        return IDLE_MS  # proposed: people decide

    def _tick(self, plan: Plan, pace: _Pace) -> int:
        done = ticks.tick(plan.pk, bite=pace.bite)
        self._held_ms += done.held_ms
        pace.bite = next_bite(pace.bite, done.held_ms)
        if done.redriven or done.skipped:
            log.info("tick", plan=plan.pk, redriven=done.redriven, skipped=done.skipped, held_ms=done.held_ms)
        return IDLE_MS if done.due_ms is None else done.due_ms

    def _seal(self) -> None:
        if clock.monotonic_ms() - self._sealed_ms < SEAL_MS:
            return
        more = False
        for plan_id in plans.to_seal():
            more = sealing.seal(plan_id) or more
        if not more:
            self._sealed_ms = clock.monotonic_ms()

    def _rest_ms(self) -> int:
        """Until the next is due, and at least as long as this round held the lock: it is free half the time."""
        now_ms = clock.monotonic_ms()
        next_ms = min((pace.due_ms for pace in self._paces.values()), default=now_ms + IDLE_MS) - now_ms
        return max(1, min(IDLE_MS, max(next_ms, self._held_ms)))

    def _beat(self) -> None:
        if clock.monotonic_ms() - self._beaten_ms < BEAT_MS:
            return
        if self._arrived:
            life_signs.beat(self.owner, "redriver", "", self._detail)
        else:
            life_signs.arrive(self.owner, "redriver", work=Work(host=socket.gethostname()[:128]))
            self._arrived = True
        housekeeping.tidy_if_due()  # once a minute over all redrivers
        self._beaten_ms = clock.monotonic_ms()

    def leave(self) -> None:
        """Record that this process ended by itself."""
        try:
            life_signs.leave(self.owner)
        except (DatabaseError, InterfaceError) as error:
            log.error("database_refuses", redriver=self.owner, code=trouble_of(error))
