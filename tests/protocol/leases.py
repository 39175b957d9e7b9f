"""One job among two workers, a redriver and a crash, as states and steps: the lease protocol for the explorer.

What follows from an attempt, and when a claim buries, is asked of `queue_app.policy.decisions` itself. What stands in the
store's SQL (who is due, what a guarded update checks and changes) is written in `lease_world.py` as `Rules`, one function
each, so that a mistake can be planted in it; `test_leases.py` lets the real store make the same moves and compares.

A transaction has two steps, a look and a guarded write, and is as old as its look: its clock stands still while it runs.
"""

from collections.abc import Iterator

from queue_app.policy import decisions
from queue_app.policy.decisions import Done, RetryAt
from tests.protocol.explorer import Step
from tests.protocol.lease_laws import moved, stale
from tests.protocol.lease_world import (
    LEASE,
    NOW,
    PAST,
    POLICY,
    RULES,
    Job,
    Rules,
    Worker,
    World,
    bit,
    due,
    owns,
    plain,
    put,
)


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
            yield Step(f"{name} is killed", put(world, at, Worker())._replace(crashes=0), fair=False)
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
    return plain(world._replace(job=moved, workers=tuple(actors[:-1]), redriver=actors[-1]))


def _aged(actor: Worker) -> Worker | None:
    if actor.doing not in ("claim", "finish", "redrive"):
        return actor
    return None if actor.age else actor._replace(age=1)


def _idle(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    job = world.job
    if not rules.due(job):
        if due(job):
            yield Step(f"{name} claims and finds nothing", world, broken="a job that is due is handed out or buried")
        return
    move = rules.burial(job.spent, now_ms=NOW) or "lease"
    evidence = world.evidence | (bit(job.token) if rules.lost_at_look and job.state == "leased" else 0)
    wrong = "" if due(job) else "nobody takes a job before it is due, or a lease before it ran out"
    seen = Worker("claim", job.token, job.state, (move,))
    yield Step(f"{name} looks for due jobs, sees {_told(job)}", put(world, at, seen, evidence=evidence), broken=wrong)


def _claimed(world: World, at: int, name: str, rules: Rules) -> Step[World]:
    worker, job = world.workers[at], world.job
    if not rules.unmoved(job, worker.what, worker.token):
        return Step(f"{name} claims nothing: the job moved", put(world, at, Worker()))
    evidence = world.evidence | (bit(worker.token) if worker.what == "leased" else 0)
    if worker.move == ("lease",):
        taken = rules.lease(job, worker.age)._replace(given=job.given + 1)
        label = f"{name} takes it: attempt {taken.attempts}, token {taken.token}"
        after = put(world, at, Worker("holds", taken.token), job=taken, evidence=evidence)
        return Step(label, after, broken=moved(world, after, name))
    (reason,) = worker.move
    buried = rules.bury(job, str(reason))
    own = worker.token + 1 if job.state == "leased" else buried.token
    wrong = "a burial has a token and evidence of its own" if buried.token <= job.token else ""
    if job.state == "pending":
        wrong = wrong or ("a burial has a token and evidence of its own" if evidence & bit(own) else "")
        evidence |= bit(buried.token)
    after = put(world, at, Worker(), job=buried, evidence=evidence)
    return Step(f"{name} buries it: {reason}", after, broken=moved(world, after, name) or wrong)


def _holding(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    """The delivery itself moves nothing here: it may have any answer, whenever the worker comes to finish."""
    worker, job = world.workers[at], world.job
    yield from _look_to_finish(world, at, name, rules)
    owns = rules.owns(job, worker.token)
    until = decisions.lease_end_ms(NOW, LEASE, NOW + job.deadline) - NOW
    renewed = job._replace(lease=max(job.lease or PAST, until)) if owns else job
    after = put(world, at, worker, job=renewed)
    if after != world:
        yield Step(f"{name} renews", after, fair=False, broken=stale(world, after, worker.token))
    if world.returns:
        back = rules.release(job)._replace(given=job.given - 1) if owns else job
        after = put(world, at, Worker(), job=back, returns=world.returns - 1)
        yield Step(f"{name} gives it back", after, fair=False, broken=stale(world, after, worker.token))
    noted = world.evidence | (bit(worker.token) if owns else 0)
    yield Step(f"{name} notes an unknown answer", put(world, at, Worker(), evidence=noted), fair=False)


def _look_to_finish(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    worker, job = world.workers[at], world.job
    if not rules.owns(job, worker.token):
        wrong = "an answer of the job's own token counts" if owns(job, worker.token) else ""
        yield Step(f"{name} is told that token {worker.token} is not the owner", put(world, at, Worker()), broken=wrong)
        return
    for answer in decisions.OUTCOMES:
        decision = rules.decide(answer, job.spent, POLICY, NOW)
        if isinstance(decision, RetryAt):
            move: tuple[str | int, ...] = ("pending", decision.at_ms - NOW)
        else:
            move = ("done",) if isinstance(decision, Done) else ("dead", decision.reason)
        opened = worker._replace(doing="finish", what=answer, move=move)
        yield Step(f"{name} comes to finish with {answer}", put(world, at, opened), fair=answer == "ok")


def _finished(world: World, at: int, name: str, rules: Rules) -> Iterator[Step[World]]:
    """The guarded write. A worker that does not learn what became of it may come again with the same token."""
    worker, job = world.workers[at], world.job
    if not rules.owns(job, worker.token):
        wrong = "an answer of the job's own token counts" if owns(job, worker.token) else ""
        yield Step(f"{name} finishes nothing: the job moved", put(world, at, Worker()), broken=wrong)
        return
    evidence = world.evidence | (bit(job.token) if worker.what != "ok" else 0)
    state, *more = worker.move
    ended = job._replace(state=str(state), lease=None)
    if state == "pending":
        ended = ended._replace(available=max(PAST, int(more[0]) - worker.age))
    elif state == "dead":
        ended = ended._replace(reason=str(more[0]))
    after = put(world, at, Worker(), job=ended, evidence=evidence)
    wrong = moved(world, after, name) or stale(world, after, worker.token)
    if (state == "done") != (worker.what == "ok"):
        wrong = wrong or "done means that the receiver said so"
    label = f"{name} finishes token {worker.token}: {_told(ended)}"
    yield Step(label, after, broken=wrong)
    unsure = put(world, at, Worker("holds", worker.token), job=ended, evidence=evidence)
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
        after = plain(idle._replace(job=rules.restart(job, redriver.age)))
        wrong = "" if job.state == "dead" else "only what is dead is redriven"
        yield Step("the redriver restarts it", after, broken=wrong or moved(world, after, "the redriver"))
    if world.crashes:
        killed = world._replace(redriver=Worker(), redrives=1, crashes=0)
        yield Step("the redriver is killed inside its transaction", killed, fair=False)


def _name(worker: Worker) -> str:
    if worker.doing == "idle":
        return "a worker"
    return f"the holder of token {worker.token}" if worker.doing != "claim" else f"who saw token {worker.token}"


def _told(job: Job) -> str:
    return f"{job.state}{'/' + job.reason if job.reason else ''} at token {job.token}"
