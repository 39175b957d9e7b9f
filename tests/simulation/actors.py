"""Who acts: customers, workers, redrivers, an operator, a lead, a housekeeper. Each step is one call; memory can be lost."""

from collections.abc import Iterator
from typing import Any

from queue_app.delivery.redriver import Redriver
from queue_app.models import Plan
from queue_app.policy.filters import Filter
from queue_app.policy.selections import by_filter
from queue_app.policy.terms import Terms
from queue_app.services import approvals, batches, housekeeping, leases, plans, queue
from tests.simulation.world import LEASE_MS, Refused, Unsure, World

IDS = [f"o{number}" for number in range(14)]


class Actor:
    """Goes on where it was at each turn; after `die` it begins anew and knows nothing."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self._life: Iterator[None] | None = None

    def turn(self) -> None:
        """One step."""
        if self._life is None:
            self._life = self.live()
        try:
            next(self._life)
        except StopIteration:
            self._life = None

    def die(self) -> None:
        """Everything in memory is gone."""
        self._life = None

    def call(self, op: str, act: Any, **more: Any) -> Any:
        """As `World.call`, by this actor."""
        return self.world.call(self.name, op, act, **more)

    def live(self) -> Iterator[None]:
        """The steps, each ends at a yield."""
        raise NotImplementedError


class Customer(Actor):
    """Puts orders in, again and again with the same id, now and then with another quantity."""

    def live(self) -> Iterator[None]:
        rng = self.world.rng
        some = rng.sample(IDS, rng.randint(1, 3))
        orders = [(job_id, 7 if rng.random() < 0.95 else 8) for job_id in some]
        self.call(
            "enqueue",
            lambda: queue.enqueue_many([{"id": job_id, "quantity": quantity} for job_id, quantity in orders]),
            orders=orders,
        )
        yield


class Worker(Actor):
    """Claims, delivers outside any transaction, finishes; late, twice, or not at all."""

    def live(self) -> Iterator[None]:
        rng = self.world.rng
        wanted = rng.randint(1, 3)
        found = self.call("claim", lambda: queue.claim(self.name, limit=wanted, lease_ms=LEASE_MS))
        yield
        for lease in found or []:
            yield from self._delivered(lease)

    def _delivered(self, lease: Any) -> Iterator[None]:
        rng, receiver = self.world.rng, self.world.receiver
        if rng.random() < 0.06:
            self.call("release", lambda: queue.release(lease.id, lease.token), job=lease.id, token=lease.token)
            return
        flight = receiver.send(lease)
        for _ in range(rng.choice((1, 1, 2, 8))):
            yield
            if rng.random() < 0.2:
                self.call("renew", lambda: queue.renew(lease.id, lease.token, lease_ms=LEASE_MS), job=lease.id)
        answer = self.understood(receiver.answered(flight))
        if answer == "bad_ack":
            self.call("unknown", lambda: leases.record_unknown(lease.id, lease.token, answer), job=lease.id)
            return
        outcome = {"ok": "ok", "http_422": "permanent"}.get(answer, "retry")
        code = "" if outcome == "ok" else answer
        for _ in range(3):
            try:
                self.finish(lease, outcome, code)
                break
            except (Refused, Unsure):
                yield  # it asks again with the same token, and must not do it twice

    def understood(self, answer: str) -> str:
        """What an answer means; '' is a time-out."""
        return answer or "timeout"

    def finish(self, lease: Any, outcome: str, code: str) -> None:
        """One result."""
        self.call(
            "finish",
            lambda: [queue.finish(lease.id, lease.token, outcome, code=code)],
            results=[(lease.id, lease.token, outcome)],
        )


class Restarter(Actor):
    """The product's own redriver; what it remembers is lost with it."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._redriver = Redriver(name)

    def die(self) -> None:
        super().die()
        self._redriver = Redriver(self.name)

    def live(self) -> Iterator[None]:
        self.call("round", self._redriver.once, whole=False)
        yield


class Operator(Actor):
    """Asks for redrives of what is dead, and steers them."""

    def live(self) -> Iterator[None]:
        rng, user = self.world.rng, self.world.people[0]
        plan = Plan.objects.order_by("-pk").first()
        if plan is None or plan.state in ("ended", "stopped", "rejected", "withdrawn", "expired", "cancelled"):
            terms = Terms(rng.choice((2_000, 50_000)), canary=rng.randint(0, 3), canary_wait_ms=5_000, max_attempts=1)
            selection = by_filter(Filter(queue="snacks"))
            self.call("ask", lambda: plans.ask(user, selection, terms, note="INC-1").plan, whole=False)
        elif rng.random() < 0.5:
            move, act = rng.choice(
                [
                    ("pause", batches.pause),
                    ("resume", batches.resume),
                    ("resume", batches.resume),
                    ("stop", batches.stop),
                ]
            )
            self.call(move, lambda: act(user, plan.pk).first, plan=plan.pk)
        elif rng.random() < 0.2:
            self.call("withdraw", lambda: plans.withdraw(user, plan.pk).first, plan=plan.pk)
        yield


class Lead(Actor):
    """Approves or rejects what is proposed, and lets go on what halted."""

    def live(self) -> Iterator[None]:
        user = self.world.people[1]
        for plan in Plan.objects.filter(state__in=("proposed", "halted")):
            given = {"round": plan.round + 1, "digest": plan.digest, "note": "OK-1", "proof": self.world.proof}
            about = {"plan": plan.pk, "round": plan.round + 1}
            if self.world.rng.random() < 0.1 and plan.state == "proposed":
                self.call("reject", lambda: approvals.reject(user, plan.pk, **given).first, **about)  # noqa: B023
            else:
                typed = str(plan.planned - plan.redriven - plan.skipped)
                act = lambda: approvals.approve(user, plan.pk, typed=typed, **given).first  # noqa: B023, E731
                self.call("approve", act, **about)
            yield
        yield


class Housekeeper(Actor):
    """Tidies what gathers by itself."""

    def live(self) -> Iterator[None]:
        self.call("tidy", housekeeping.tidy, whole=False)
        yield


def everybody(world: World, worker: type[Worker] = Worker) -> list[Actor]:
    """Who lives in a world; workers and redrivers most often have their turn."""
    workers = [worker(world, f"w{number}") for number in range(3)]
    redrivers = [Restarter(world, f"r{number}") for number in range(2)]
    people = [Operator(world, "oda"), Lead(world, "tom")]
    return [Customer(world, "c"), *workers, *workers, *redrivers, *people, Housekeeper(world, "h")]
