"""One life of the product under one seed: actors take turns, time passes, faults strike, and in the end all is drained."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, transaction

from queue_app import clock as product_clock
from queue_app.models import Job, Plan
from queue_app.policy.errors import SnackOpsError
from queue_app.services import batches, queue
from queue_app.services.approvals import Proof
from tests.conftest import Clock
from tests.engine.rows import declare
from tests.simulation.faults import Faults
from tests.simulation.history import History
from tests.simulation.receiver import Receiver

PASSING = (0, 0, 1, 5, 20, 100, 100, 400, 1_500)  # ms between two turns
LEASE_MS = 2_000
BUSY = ("freezing", "approved", "running", "paused", "halted")


class Refused(Exception):
    """The database refused: nothing of this call happened."""


class Unsure(Exception):
    """Nobody knows whether this call happened."""


class World:
    """Everything that one seed lives in."""

    def __init__(self, seed: int, clock: Clock, people: tuple[User, User], proof: Proof, *, one_in: int = 12) -> None:
        self.rng = Random(seed)
        self.clock = clock
        self.people = people
        self.proof = proof
        self.history = History()
        self.faults = Faults(Random(seed + 1), one_in)
        self.receiver = Receiver(Random(seed + 2), lambda: clock.now)

    def call(self, actor: str, op: str, act: Callable[[], Any], *, whole: bool = True, **about: Any) -> Any:
        """One call of a service, written down. `whole`: it is one transaction, so that an error means that nothing happened.

        None when the product said no. Raises Refused and Unsure.
        """
        event = self.history.begin(self.clock.now, actor, op, about)
        try:
            with self.faults.call():
                event.answer = act()
        except (InterfaceError, OperationalError) as error:
            event.phase = "fail" if whole and isinstance(error, OperationalError) else "unknown"
            event.answer = str(error)
            raise (Refused if event.phase == "fail" else Unsure) from error
        except SnackOpsError as no:
            event.phase, event.answer = "refused", f"{type(no).__name__}: {no}"
            return None
        event.phase = "ok"
        return event.answer

    def live(self, actors: list[Any], turns: int) -> None:
        """Actors in a drawn order; each may lose its memory between two steps."""
        for _ in range(turns):
            actor = self.rng.choice(actors)
            self.receiver.arrivals()
            try:
                actor.turn()
            except (Refused, Unsure):
                actor.die()  # as a process whose loop gave up; the next turn begins with nothing remembered
            if self.rng.random() < 0.02:
                actor.die()
            if self.rng.random() < 0.01:
                self.receiver.deaf_until = self.clock.now + 5_000
            self.clock.advance(self.rng.choice(PASSING))

    def drain(self, redriver: Any) -> None:
        """Faults are over and everybody helps: nothing may be left that waits."""
        self.faults.one_in = 0
        self.receiver.deaf_until = 0
        for _ in range(300):
            for plan in Plan.objects.filter(state__in=("paused", "halted")):
                self.call("last", "stop", lambda pk=plan.pk: batches.stop(self.people[0], pk).first, plan=plan.pk)
            self.clock.advance(1_000)
            self.receiver.arrivals()
            redriver.once()
            leases = self.call("last", "claim", lambda: queue.claim("last", limit=100))
            for lease in leases:
                self.receiver.effects.setdefault(lease.id, 1)
                self.receiver.quantities.setdefault(lease.id, lease.quantity)
            about = {"results": [(lease.id, lease.token, "ok") for lease in leases]}
            self.call("last", "finish", lambda found=leases: _finish(found), **about)
            busy = Job.objects.filter(state__in=("pending", "leased")).exists()
            if not busy and not Plan.objects.filter(state__in=BUSY).exists():
                return
        raise AssertionError(f"not drained: {list(Job.objects.filter(state__in=('pending', 'leased')).values())}")


def _finish(leases: list[Any]) -> list[bool]:
    return queue.finish_many([queue.Result(lease.id, lease.token, "ok") for lease in leases])


@contextmanager
def lived(seed: int, clock: Clock, people: tuple[User, User], proof: Proof, **more: Any) -> Iterator[World]:
    """A world of its own for this seed; nothing of it stays."""
    start = clock.now
    try:
        with _unkept(seed, clock, people, proof, **more) as world:
            yield world
    finally:
        clock.now = start


@contextmanager
def _unkept(seed: int, clock: Clock, people: tuple[User, User], proof: Proof, **more: Any) -> Iterator[World]:
    with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(product_clock, "monotonic_ms", lambda: clock.now)
        declare(
            max_attempts=2, lease_ms=LEASE_MS, wait_base_ms=200, wait_cap_ms=2_000, budget_ms=60_000,
            redrive_horizon_ms=3_600_000,
        )  # fmt: skip
        world = World(seed, clock, people, proof, **more)
        try:
            with world.faults.installed():
                yield world
        finally:
            transaction.set_rollback(True)
