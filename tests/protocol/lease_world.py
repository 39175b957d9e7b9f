"""One job among two workers, a redriver and a crash: what a state holds, and the rules of the store, each of which may be
planted wrong.

Instants are relative to now and end at -1 ("past"): 0 is exactly now.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from queue_app.policy import decisions
from queue_app.policy.decisions import Decision, Spent
from queue_app.policy.queues import QueuePolicy

NOW = 1_000  # what "now" is called when policy is asked
LEASE, BUDGET, MOST = 1, 4, 3
POLICY = QueuePolicy("snacks", max_attempts=MOST, budget_ms=BUDGET, lease_ms=LEASE, wait_base_ms=1, wait_cap_ms=1)
PAST = -1


class Job(NamedTuple):
    """`lease` is None unless leased. `given`: handed out in this budget and not given back (only the model counts it)."""

    state: str = "pending"
    reason: str = ""
    attempts: int = 0
    token: int = 0
    lease: int | None = None
    available: int = 0
    deadline: int = BUDGET
    given: int = 0
    most: int = MOST

    @property
    def spent(self) -> Spent:
        """As policy wants it."""
        return Spent(self.attempts, self.most, 0, NOW + self.deadline)


class Worker(NamedTuple):
    """`doing`: idle, claim (inside its transaction), holds, finish (inside). `token` is what it holds or saw.

    `what`: the state seen by a claim, or the receiver's answer. `move`: what the open transaction will write.
    """

    doing: str = "idle"
    token: int = 0
    what: str = ""
    move: tuple[str | int, ...] = ()
    age: int = 0


class World(NamedTuple):
    """Everything. `returns`: how often a worker may still give the job back.

    `evidence` has a bit for each token with a failure row, as long as the token can matter: the job's own and the one before.
    """

    job: Job = Job()
    workers: tuple[Worker, ...] = (Worker(), Worker())
    redriver: Worker = Worker()
    evidence: int = 0
    crashes: int = 1
    redrives: int = 1
    returns: int = 1


def due(job: Job) -> bool:
    if job.state == "pending":
        return job.available <= 0
    return job.state == "leased" and (job.lease or 0) <= 0


def owns(job: Job, token: int) -> bool:
    return job.state == "leased" and job.token == token


def _unmoved(job: Job, state: str, token: int) -> bool:
    return (job.state, job.token) == (state, token)


def _lease(job: Job, age: int) -> Job:
    return job._replace(state="leased", lease=LEASE - age, attempts=job.attempts + 1, token=job.token + 1)


def _bury(job: Job, reason: str) -> Job:
    return job._replace(state="dead", reason=reason, token=job.token + 1, lease=None)


def _restart(job: Job, age: int) -> Job:
    return Job(token=job.token, available=-age, deadline=BUDGET - age, most=job.most)


def _release(job: Job) -> Job:
    return job._replace(state="pending", lease=None, available=0, attempts=max(0, job.attempts - 1))


@dataclass(frozen=True)
class Rules:
    """The rules of the store, each of which may be planted wrong. `locked`: a transaction holds the job's row."""

    locked: bool = True
    burial: Callable[..., str | None] = decisions.burial
    decide: Callable[..., Decision] = decisions.decide
    due: Callable[[Job], bool] = due
    owns: Callable[[Job, int], bool] = owns
    unmoved: Callable[[Job, str, int], bool] = _unmoved
    lease: Callable[[Job, int], Job] = _lease
    bury: Callable[[Job, str], Job] = _bury
    restart: Callable[[Job, int], Job] = _restart
    release: Callable[[Job], Job] = _release
    may_restart: Callable[[Job, int], bool] = lambda job, token: job.state == "dead" and job.token == token
    lost_at_look: bool = False  # planted: the evidence of a lost token is written before the guarded update decides


RULES = Rules()


# --- worlds ---------------------------------------------------------------------------------------------------------


def plain(world: World) -> World:
    """The same world in one form: the workers are alike, and the instants of an ended job mean nothing."""
    job = world.job
    if job.state in ("done", "dead"):
        job = job._replace(available=PAST, deadline=PAST)
    evidence = world.evidence & (bit(job.token) | bit(max(job.token - 1, 0)))
    return world._replace(
        job=job,
        workers=world.workers if world.workers[0] <= world.workers[1] else world.workers[::-1],
        evidence=evidence,
    )


def put(world: World, at: int, worker: Worker, **more: object) -> World:
    workers = tuple(worker if place == at else other for place, other in enumerate(world.workers))
    return plain(world._replace(workers=workers, **more))


def bit(token: int) -> int:
    return 1 << token
