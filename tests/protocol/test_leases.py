"""The lease protocol holds in every state that it can reach, each planted mistake is found, and the store moves alike.

SNACKOPS_MODEL_ATTEMPTS=3 looks at everything without the row's lock too, SNACKOPS_MODEL_REPLAYS=0 replays every move.
"""

import os
from functools import partial

import pytest
from django.db import transaction

from queue_app.models import Failure, Job
from queue_app.services import leases as real
from queue_app.services import queue
from tests.engine.rows import T, declare
from tests.protocol.explorer import Step, explore
from tests.protocol.lease_laws import broken, ended
from tests.protocol.lease_mistakes import MISTAKES
from tests.protocol.lease_world import BUDGET, LEASE, MOST, PAST, RULES, Rules, Worker, World
from tests.protocol.lease_world import Job as ModelJob
from tests.protocol.leases import steps as lease_steps

ATTEMPTS_WITHOUT_LOCK = int(os.environ.get("SNACKOPS_MODEL_ATTEMPTS", "2"))
REPLAYS = int(os.environ.get("SNACKOPS_MODEL_REPLAYS", "150"))
UNIT = 1_000  # ms of one step of the model's time


def explored(rules, attempts, crashes=1):
    start = World(ModelJob(most=attempts), crashes=crashes)
    return explore(start, partial(lease_steps, rules=rules), broken, ended)


def test_two_workers_a_burial_a_redrive_and_a_crash_break_no_rule_in_three_attempts(capsys):
    found = explored(RULES, 3)
    with capsys.disabled():
        print(f"\n[lease protocol, 3 attempts] {found.told()}")
    assert not found.rule, found.told()
    assert found.states > 50_000
    ends = {(world.job.state, world.job.reason) for world in found.reached if ended(world)}
    assert ends == {("done", ""), ("dead", "permanent"), ("dead", "exhausted"), ("dead", "deadline")}


def test_the_guards_alone_hold_without_any_lock_of_the_row(capsys):
    full = ATTEMPTS_WITHOUT_LOCK > 2
    found = explored(Rules(locked=False), ATTEMPTS_WITHOUT_LOCK, crashes=int(full))
    with capsys.disabled():
        print(f"\n[guards alone, {ATTEMPTS_WITHOUT_LOCK} attempts] {found.told()}")
    assert not found.rule, found.told()
    assert found.states > 10_000


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_found_with_the_shortest_way_to_it(mistake):
    found = explored(mistake.rules, 2, crashes=0)
    print(f"[{mistake.name}] {found.told()}")  # pytest -rP shows the ways
    assert found.rule == mistake.rule
    assert found.trace


def test_the_explorer_sees_a_state_without_an_end():
    def steps(state):
        if state < 3:
            yield Step("on", state + 1)
        if state == 2:
            yield Step("astray", 9, fair=False)

    found = explore(0, steps, lambda _: "", lambda state: state == 3)
    assert (found.trace, found.states) == (["on", "on", "astray"], 5)


# --- the store makes the same moves ---------------------------------------------------------------------------------

NOBODY = Worker()
ENDS = ("ok", "retry", "permanent")


def alone(job, worker=NOBODY):
    """The model's world with this job and nobody else."""
    return World(job, (worker, Worker()), crashes=0)


def expected(world, *labels):
    """The model's job and evidence after the steps whose labels begin so; unchanged where no such step exists."""
    for label in labels:
        found = [step.after for step in lease_steps(world) if step.label.startswith(label)]
        if not found:
            return world
        world = found[0]
    return world


def moves_of(job):
    """Every move of the services on a job that stands so: name, call(lead) -> anything, the model's world after it."""
    yield "claim", lambda _: queue.claim("w2", now_ms=T), expected(alone(job), "a worker looks", "who saw")
    for token in (job.token, job.token - 1):
        if token < 0:
            continue
        held = alone(job, Worker("holds", token))
        holder = f"the holder of token {token}"
        for outcome in ENDS:
            after = expected(held, f"{holder} comes to finish with {outcome}", f"{holder} finishes")
            yield f"finish {outcome} {token}", partial(_finish, token, outcome), after
        yield (
            f"renew {token}",
            lambda _, token=token: queue.renew("x", token, now_ms=T),
            expected(held, f"{holder} renews"),
        )
        yield (
            f"release {token}",
            lambda _, token=token: queue.release("x", token, now_ms=T),
            expected(held, f"{holder} gives"),
        )
        yield f"unknown {token}", partial(_unknown, token), expected(held, f"{holder} notes")
    if job.state == "dead":
        yield "redrive", _redrive, expected(alone(job), "the redriver looks", "the redriver restarts")


def _finish(token, outcome, _):
    return queue.finish("x", token, outcome, now_ms=T)


def _unknown(token, _):
    return real.record_unknown("x", token, "bad_ack", now_ms=T)


def _redrive(lead):
    return queue.redrive("x", "INC-1", approved_by=lead, now_ms=T)


def put(job):
    """The model's job as a stored row."""
    leased = job.state == "leased"
    Job.objects.create(
        id="x", seq=1, queue="snacks", quantity=1, payload="{}", state=job.state, reason=job.reason, attempts=job.attempts,
        max_attempts=job.most, token=job.token, owner="w1" if leased else None,
        lease_until=T + (job.lease or 0) * UNIT if leased else None, available_at=T + job.available * UNIT,
        deadline=T + job.deadline * UNIT, created_at_ms=T, changed_at_ms=T,
    )  # fmt: skip


def stored(job):
    """The stored row as the model's job; instants of an ended one mean nothing."""
    row = Job.objects.get(pk="x")

    def relative(at):
        assert (at - T) % UNIT == 0
        return max(PAST, (at - T) // UNIT)

    ended_ = row.state in ("done", "dead")
    return job._replace(
        state=row.state, reason=row.reason, attempts=row.attempts, token=row.token,
        lease=None if row.lease_until is None else relative(row.lease_until),
        available=PAST if ended_ else relative(row.available_at),
        deadline=PAST if ended_ else relative(row.deadline),
    )  # fmt: skip


@pytest.mark.django_db
def test_the_store_makes_the_moves_of_the_model(team_lead):
    declare(budget_ms=BUDGET * UNIT, lease_ms=LEASE * UNIT, wait_base_ms=UNIT, wait_cap_ms=UNIT, max_attempts=MOST)
    jobs = sorted({world.job._replace(given=0) for world in explored(RULES, 2).reached}, key=repr)
    cases = [(job, *move) for job in jobs for move in moves_of(job)]
    chosen = cases if not REPLAYS else cases[:: max(1, len(cases) // REPLAYS)]
    names = set()
    for job, name, call, after in chosen:
        with transaction.atomic():
            put(job)
            call(team_lead)
            assert stored(job) == after.job._replace(given=0), (name, job)
            rows = set(Failure.objects.filter(job_id="x").values_list("token", flat=True))
            assert rows == {token for token in range(99) if after.evidence & 1 << token}, (name, job)
            names.add(name.split()[0])
            transaction.set_rollback(True)
    assert names == {"claim", "finish", "renew", "release", "unknown", "redrive"}
    print(f"{len(chosen)} of {len(cases)} moves")
