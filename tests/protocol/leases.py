"""One job among two workers, a redriver and a crash, as states and steps: the lease protocol for the explorer.

What follows from an attempt, and when a claim buries, is asked of `queue_app.policy.decisions` itself. What stands in the
store's SQL (who is due, what a guarded update checks and changes) is written here as `Rules`, one function each, so that a
mistake can be planted in it; `test_leases.py` lets the real store make the same moves and compares.

Instants are relative to now and end at -1 ("past"): 0 is exactly now. A transaction has two steps, a look and a guarded
write, and is as old as its look: its clock stands still while it runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from queue_app.policy import decisions
from queue_app.policy.decisions import Decision, Done, RetryAt, Spent
from queue_app.policy.queues import QueuePolicy
from tests.protocol.explorer import Step

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


def _due(job: Job) -> bool:
    if job.state == "pending":
        return job.available <= 0
    return job.state == "leased" and (job.lease or 0) <= 0


def _owns(job: Job, token: int) -> bool:
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
    due: Callable[[Job], bool] = _due
    owns: Callable[[Job, int], bool] = _owns
    unmoved: Callable[[Job, str, int], bool] = _unmoved
    lease: Callable[[Job, int], Job] = _lease
    bury: Callable[[Job, str], Job] = _bury
    restart: Callable[[Job, int], Job] = _restart
    release: Callable[[Job], Job] = _release
    may_restart: Callable[[Job, int], bool] = lambda job, token: job.state == "dead" and job.token == token
    lost_at_look: bool = False  # planted: the evidence of a lost token is written before the guarded update decides


RULES = Rules()


# --- what happens ---------------------------------------------------------------------------------------------------


def steps(world: World, rules: Rules = RULES) -> Iterator[Step[World]]:
    """Everything that may happen next."""
    if (later := _later(world)) is not None and later != world:
        yield Step("time passes", later)
    busy = any(actor.doing in ("claim", "finish", "redrive") for actor in (*world.workers, world.redriver))
    may_open = not (rules.locked and busy)
    for at, worker in enumerate(world.workers):
        if at and worker == world.workers[0]:
            continue  # the two are the same: what one may do the other may
        name = _name(worker)
        if worker.doing == "idle":
            yield from _idle(world, at, name, rules) if may_open else ()
        elif worker.doing == "claim":
            yield _claimed(world, at, name, rules)
        elif worker.doing == "holds":
            yield from _holding(world, at, name, rules) if may_open else ()
        else:
            yield from _finished(world, at, name, rules)
        if worker.doing != "idle" and world.crashes:
            yield Step(f"{name} is killed", _put(world, at, Worker())._replace(crashes=0), fair=False)
    yield from _redriving(world, rules, may_open)


def _later(world: World) -> World | None:
    """One unit on, unless a transaction would become older than one unit."""
    actors = [_aged(actor) for actor in (*world.workers, world.redriver)]
    if any(actor is None for actor in actors):
        return None
    job = world.job
    down = [max(PAST, value - 1) for value in (job.available, job.deadline)]
    lease = None if job.lease is None else max(PAST, job.lease - 1)
    moved = job._replace(available=down[0], deadline=down[1], lease=lease)
    return _plain(world._replace(job=moved, workers=tuple(actors[:-1]), redriver=actors[-1]))


def _aged(actor: Worker) -> Worker | None:
    if actor.doing not in ("claim", "finish", "redrive"):
        return actor
    return None if actor.age else actor._replace(age=1)


def _plain(world: World) -> World:
    """The same world in one form: the workers are alike, and the instants of an ended job mean nothing."""
    job = world.job
    if job.state in ("done", "dead"):
        job = job._replace(available=PAST, deadline=PAST)
    evidence = world.evidence & (_bit(job.token) | _bit(max(job.token - 1, 0)))
    return world._replace(
        job=job,
        workers=world.workers if world.workers[0] <= world.workers[1] else world.workers[::-1],
        evidence=evidence,
    )


def _put(world: World, at: int, worker: Worker, **more: object) -> World:
    workers = tuple(worker if place == at else other for place, other in enumerate(world.workers))
    return _plain(world._replace(workers=workers, **more))


def _bit(token: int) -> int:
    return 1 << token


def _idle(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    job = world.job
    if not rules.due(job):
        if _due(job):
            yield Step(f"{name} claims and finds nothing", world, broken="a job that is due is handed out or buried")
        return
    move = rules.burial(job.spent, now_ms=NOW) or "lease"
    evidence = world.evidence | (_bit(job.token) if rules.lost_at_look and job.state == "leased" else 0)
    wrong = "" if _due(job) else "nobody takes a job before it is due, or a lease before it ran out"
    seen = Worker("claim", job.token, job.state, (move,))
    yield Step(f"{name} looks for due jobs, sees {_told(job)}", _put(world, at, seen, evidence=evidence), broken=wrong)


def _claimed(world: World, at: int, name: str, rules: Rules) -> Step[World]:
    worker, job = world.workers[at], world.job
    if not rules.unmoved(job, worker.what, worker.token):
        return Step(f"{name} claims nothing: the job moved", _put(world, at, Worker()))
    evidence = world.evidence | (_bit(worker.token) if worker.what == "leased" else 0)
    if worker.move == ("lease",):
        taken = rules.lease(job, worker.age)._replace(given=job.given + 1)
        label = f"{name} takes it: attempt {taken.attempts}, token {taken.token}"
        after = _put(world, at, Worker("holds", taken.token), job=taken, evidence=evidence)
        return Step(label, after, broken=_moved(world, after, name))
    (reason,) = worker.move
    buried = rules.bury(job, str(reason))
    own = worker.token + 1 if job.state == "leased" else buried.token
    wrong = "a burial has a token and evidence of its own" if buried.token <= job.token else ""
    if job.state == "pending":
        wrong = wrong or ("a burial has a token and evidence of its own" if evidence & _bit(own) else "")
        evidence |= _bit(buried.token)
    after = _put(world, at, Worker(), job=buried, evidence=evidence)
    return Step(f"{name} buries it: {reason}", after, broken=_moved(world, after, name) or wrong)


def _holding(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    """The delivery itself moves nothing here: it may have any answer, whenever the worker comes to finish."""
    worker, job = world.workers[at], world.job
    yield from _look_to_finish(world, at, name, rules)
    owns = rules.owns(job, worker.token)
    until = decisions.lease_end_ms(NOW, LEASE, NOW + job.deadline) - NOW
    renewed = job._replace(lease=max(job.lease or PAST, until)) if owns else job
    after = _put(world, at, worker, job=renewed)
    if after != world:
        yield Step(f"{name} renews", after, fair=False, broken=_stale(world, after, worker.token))
    if world.returns:
        back = rules.release(job)._replace(given=job.given - 1) if owns else job
        after = _put(world, at, Worker(), job=back, returns=world.returns - 1)
        yield Step(f"{name} gives it back", after, fair=False, broken=_stale(world, after, worker.token))
    noted = world.evidence | (_bit(worker.token) if owns else 0)
    yield Step(f"{name} notes an unknown answer", _put(world, at, Worker(), evidence=noted), fair=False)


def _look_to_finish(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    worker, job = world.workers[at], world.job
    if not rules.owns(job, worker.token):
        wrong = "an answer of the job's own token counts" if _owns(job, worker.token) else ""
        yield Step(
            f"{name} is told that token {worker.token} is not the owner", _put(world, at, Worker()), broken=wrong
        )
        return
    for answer in decisions.OUTCOMES:
        decision = rules.decide(answer, job.spent, POLICY, NOW)
        if isinstance(decision, RetryAt):
            move: tuple[str | int, ...] = ("pending", decision.at_ms - NOW)
        else:
            move = ("done",) if isinstance(decision, Done) else ("dead", decision.reason)
        opened = worker._replace(doing="finish", what=answer, move=move)
        yield Step(f"{name} comes to finish with {answer}", _put(world, at, opened), fair=answer == "ok")


def _finished(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    """The guarded write. A worker that does not learn what became of it may come again with the same token."""
    worker, job = world.workers[at], world.job
    if not rules.owns(job, worker.token):
        wrong = "an answer of the job's own token counts" if _owns(job, worker.token) else ""
        yield Step(f"{name} finishes nothing: the job moved", _put(world, at, Worker()), broken=wrong)
        return
    evidence = world.evidence | (_bit(job.token) if worker.what != "ok" else 0)
    state, *more = worker.move
    ended = job._replace(state=str(state), lease=None)
    if state == "pending":
        ended = ended._replace(available=max(PAST, int(more[0]) - worker.age))
    elif state == "dead":
        ended = ended._replace(reason=str(more[0]))
    after = _put(world, at, Worker(), job=ended, evidence=evidence)
    wrong = _moved(world, after, name) or _stale(world, after, worker.token)
    if (state == "done") != (worker.what == "ok"):
        wrong = wrong or "done means that the receiver said so"
    label = f"{name} finishes token {worker.token}: {_told(ended)}"
    yield Step(label, after, broken=wrong)
    unsure = _put(world, at, Worker("holds", worker.token), job=ended, evidence=evidence)
    yield Step(f"{label}, and does not learn it", unsure, fair=False)


def _redriving(world: World, rules: Rules, may_open: bool) -> Iterator[Step[World]]:
    job, redriver = world.job, world.redriver
    if redriver.doing == "idle":
        if world.redrives and may_open and rules.may_restart(job, job.token):
            looks = Worker("redrive", job.token)
            yield Step("the redriver looks at its item", world._replace(redriver=looks, redrives=0), fair=False)
        return
    idle = world._replace(redriver=Worker())
    if not rules.may_restart(job, redriver.token):
        yield Step("the redriver skips it: the job moved", idle)
    else:
        after = _plain(idle._replace(job=rules.restart(job, redriver.age)))
        wrong = "" if job.state == "dead" else "only what is dead is redriven"
        yield Step("the redriver restarts it", after, broken=wrong or _moved(world, after, "the redriver"))
    if world.crashes:
        killed = world._replace(redriver=Worker(), redrives=1, crashes=0)
        yield Step("the redriver is killed inside its transaction", killed, fair=False)


def _name(worker: Worker) -> str:
    if worker.doing == "idle":
        return "a worker"
    return f"the holder of token {worker.token}" if worker.doing != "claim" else f"who saw token {worker.token}"


def _told(job: Job) -> str:
    return f"{job.state}{'/' + job.reason if job.reason else ''} at token {job.token}"


# --- what must hold -------------------------------------------------------------------------------------------------


def _moved(before: World, after: World, who: str) -> str:
    """The rule that this move of the job breaks, or ''."""
    old, new = before.job, after.job
    if new.token < old.token:
        return "a token never goes back"
    if old.state == "dead" and new.state != "dead" and who != "the redriver":
        return "what is dead leaves by a redrive only"
    if old.state == "done" and new != old:
        return "what is done stays done"
    return ""


def _stale(before: World, after: World, token: int) -> str:
    old, new = before.job, after.job
    return "a token that does not own the job changes nothing" if old != new and not _owns(old, token) else ""


def broken(world: World) -> str:
    """The rule that does not hold in this state, or ''."""
    job = world.job
    held = [worker.token for worker in world.workers if worker.doing in ("holds", "finish")]
    if len(held) != len(set(held)):
        return "two workers hold one token"
    if any(token > job.token for token in held):
        return "a worker holds a token that the job has not reached"
    if job.attempts > job.most or job.given > job.most:
        return "a job is handed out as often as its budget says, not more"
    if (job.state == "leased") != (job.lease is not None) or (job.state == "dead") != (job.reason != ""):
        return "lease and reason belong to their states"
    if job.state == "done" and world.evidence & _bit(job.token):
        return "no token is both done and failed"
    if job.state == "dead" and not world.evidence & (_bit(job.token) | _bit(max(job.token - 1, 0))):
        return "what is dead has evidence"
    return ""


def ended(world: World) -> bool:
    """Delivered, or in quarantine where a person decides."""
    return world.job.state in ("done", "dead")
