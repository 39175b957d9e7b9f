"""Many drawn lives of the product in one process: nothing lost, nothing unexpected, nothing done twice (FAULTS B0).

SNACKOPS_SIM_SEEDS says how many lives, SNACKOPS_SIM_FIRST which is the first; thousands by night. A failure prints the one
command that lives it again.
"""

import os
from collections import Counter

import pytest
from django.db import OperationalError

from queue_app.models import Job
from queue_app.services import queue
from tests.redrive.story import prove
from tests.simulation.actors import Worker, everybody
from tests.simulation.judge import judged
from tests.simulation.world import lived

SEEDS = int(os.environ.get("SNACKOPS_SIM_SEEDS", "24"))
FIRST = int(os.environ.get("SNACKOPS_SIM_FIRST", "1"))
TURNS = 220
AGAIN = "SNACKOPS_SIM_SEEDS=1 SNACKOPS_SIM_FIRST={} uv run pytest tests/simulation -k holds -rA"

pytestmark = pytest.mark.django_db


@pytest.fixture
def life(clock, operator, team_lead):
    """`life(seed)` -> the world after its life and its verdict."""
    proof = prove(team_lead)

    def live(seed, *, worker=Worker, forgets=False, **more):
        with lived(seed, clock, (operator, team_lead), proof, **more) as world:
            world.receiver.forgets = forgets
            actors = everybody(world, worker)
            try:
                world.live(actors, TURNS)
                world.drain(actors[-5]._redriver)
                verdict = judged(world)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{world.history.told()}\n{AGAIN.format(seed)}") from error
            return world, verdict

    return live


@pytest.mark.timeout(60 + 5 * SEEDS)
def test_every_life_holds(life, capsys):
    seen, thrown, recovered = Counter(), Counter(), 0
    for seed in range(FIRST, FIRST + SEEDS):
        world, verdict = life(seed)
        wrong = verdict.wrong()
        assert not wrong, "\n".join([*wrong, world.history.told(), AGAIN.format(seed)])
        seen.update(event.phase for event in world.history.events)
        seen.update(event.op for event in world.history.events if event.phase == "ok" and event.answer is not False)
        thrown.update(world.faults.thrown)
        recovered += verdict.recovered
    with capsys.disabled():
        print(
            f"\n[simulation] {SEEDS} lives from seed {FIRST}: {dict(seen)}, thrown {dict(thrown)}, recovered {recovered}"
        )
    if SEEDS >= 10:
        assert all(thrown[kind] for kind in ("before", "after", "refused", "lost_undone", "lost_done"))
        assert recovered
        assert all(seen[op] for op in ("enqueue", "claim", "finish", "renew", "release", "ask", "approve", "stop"))


def test_the_same_seed_is_the_same_life(life):
    first, second = (life(FIRST)[0] for _ in range(2))
    lives = [[(one.at_ms, one.actor, one.op, one.phase) for one in world.history.events] for world in (first, second)]
    assert lives[0] == lives[1]


# --- the judge notices ----------------------------------------------------------------------------------------------


def noticed(life, kind, *, seeds=30, **more):
    """Some life under a planted mistake must be found wrong in this way."""
    for seed in range(1, seeds + 1):
        try:
            _, verdict = life(seed, **more)
        except AssertionError:
            continue  # noticed by the tables' own rules, which is not what is asked here
        if getattr(verdict, kind):
            return
    raise AssertionError(f"{seeds} lives with the planted mistake and nothing {kind}")


def test_an_acceptance_that_swallows_an_error_is_noticed_as_lost(life, monkeypatch):
    plain = queue.enqueue_many

    def careless(orders):
        try:
            return plain(orders)
        except OperationalError:
            return ["accepted"] * len(orders)

    monkeypatch.setattr(queue, "enqueue_many", careless)
    noticed(life, "lost", one_in=3)


def test_a_finish_without_a_look_at_the_token_is_noticed(life, monkeypatch):
    plain = queue.finish

    def careless(job_id, token, outcome, **more):
        owned = Job.objects.filter(pk=job_id, state="leased").values_list("token", flat=True).first()
        return plain(job_id, token if owned is None else owned, outcome, **more)

    monkeypatch.setattr(queue, "finish", careless)
    noticed(life, "unexpected")


def test_a_receiver_that_keeps_no_ids_is_noticed_as_doubled(life):
    noticed(life, "duplicated", forgets=True)


def test_a_worker_that_takes_a_lost_answer_for_success_is_noticed_as_lost(life):
    class Hopeful(Worker):
        def understood(self, answer):
            return "ok" if answer in ("", "timeout", "http_503") else answer

    noticed(life, "lost", worker=Hopeful)


def test_a_quarantine_that_nobody_told_is_noticed(life, monkeypatch):
    plain = queue.renew

    def careless(job_id, token, **more):
        return plain(job_id, token, **more) and queue.finish(job_id, token, "permanent")

    monkeypatch.setattr(queue, "renew", careless)
    noticed(life, "unexpected")
