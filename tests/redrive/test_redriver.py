"""The redriver's loop: what is due, how it rests, how it ends, and that trouble never ends it."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager

import psycopg
import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from queue_app.delivery import redriver as loop
from queue_app.delivery.redriver import Redriver
from queue_app.models import Plan, Process, Redrive
from queue_app.policy.plans import EXPIRY_MS
from queue_app.policy.terms import Terms
from queue_app.services import ticks
from tests.conftest import BASE_DIR
from tests.redrive.story import approve, ask, die, work
from tests.waiting import until

LIMIT_S = 60


class Hours:
    """Both clocks of a redriver that is driven by hand: it rests, and so much time has passed."""

    def __init__(self, clock, monkeypatch) -> None:
        self._clock = clock
        self.mono = 10_000
        monkeypatch.setattr(loop.clock, "monotonic_ms", lambda: self.mono)

    def drive(self, redriver: Redriver, ms: int) -> list[int]:
        rests, end = [], self.mono + ms
        while self.mono < end:
            rest = redriver.once()
            rests.append(rest)
            self.mono += rest
            self._clock.advance(rest)
        return rests


@pytest.fixture
def hours(db, clock, monkeypatch):
    return Hours(clock, monkeypatch)


def approved(operator, team_lead, terms):
    plan = ask(operator, terms=terms)
    approve(team_lead, plan)
    return plan


@pytest.mark.django_db
def test_it_makes_lists_begins_ticks_seals_and_is_seen(hours, operator, team_lead, monkeypatch):
    monkeypatch.setattr("queue_app.services.plans.IN_REQUEST", -1)
    die(120)
    plan = ask(operator, terms=Terms(100_000, canary=5))
    redriver = Redriver("r1")
    hours.drive(redriver, 1_000)
    plan.refresh_from_db()
    assert (plan.state, plan.planned) == ("proposed", 120)
    approve(team_lead, plan)
    hours.drive(redriver, 1_000)
    work()
    hours.drive(redriver, 3_000)
    work()
    hours.drive(redriver, 2_000)
    plan.refresh_from_db()
    assert (plan.state, plan.redriven) == ("ended", 120)
    assert plan.sealed_at_ms
    seen = Process.objects.get()
    assert (seen.name, seen.kind, seen.stopped_at_ms) == ("r1", "redriver", None)


@pytest.mark.django_db
def test_it_rests_when_nothing_is_due_and_never_spins(hours, operator, team_lead):
    redriver = Redriver("r1")
    assert set(hours.drive(redriver, 2_000)) == {loop.IDLE_MS}
    die(5)
    plan = approved(operator, team_lead, Terms(1_000, canary=0))
    rests = hours.drive(redriver, 3_000)
    assert len(rests) < 30
    plan.refresh_from_db()
    assert 3 <= plan.redriven <= 4


@pytest.mark.django_db
def test_a_stop_works_within_a_second(hours, operator, team_lead):
    from queue_app.services import batches

    die(200)
    plan = approved(operator, team_lead, Terms(50_000, canary=0))
    redriver = Redriver("r1")
    hours.drive(redriver, 1_000)
    batches.stop(operator, plan.pk)
    n = Redrive.objects.count()
    assert n
    hours.drive(redriver, 1_000)
    assert Redrive.objects.count() == n


@pytest.mark.django_db
def test_it_lets_undecided_plans_run_out(hours, clock, operator):
    die(1)
    ask(operator)
    clock.advance(EXPIRY_MS)
    hours.drive(Redriver("r1"), 500)
    assert Plan.objects.get().state == "expired"


@pytest.mark.django_db
def test_one_plan_that_cannot_go_on_does_not_hold_up_the_others(hours, operator, team_lead, monkeypatch):
    from queue_app.policy.selections import by_ids

    ids = die(4)
    broken = ask(operator, by_ids(ids[:2]))
    approve(team_lead, broken)
    assert ticks.begin(broken.pk)
    Plan.objects.filter(pk=broken.pk).update(queue="elsewhere")
    good = ask(operator, by_ids(ids[2:]), Terms(1_000_000, canary=0))
    approve(team_lead, good)
    real = ticks.tick

    def tick(plan_id, **more):
        if plan_id == broken.pk:
            raise RuntimeError("it does not fit")
        return real(plan_id, **more)

    monkeypatch.setattr(ticks, "tick", tick)
    rests = hours.drive(Redriver("r1"), 3_000)
    good.refresh_from_db()
    assert good.state == "ended"
    assert len(rests) < 60


@pytest.mark.django_db
def test_trouble_with_the_database_makes_it_wait_longer_and_never_ends_it(monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 9:
            redriver.stop()
        return False

    def refuse(self):
        raise OperationalError("database is locked")

    redriver = Redriver("r1", wait=wait)
    monkeypatch.setattr(Redriver, "once", refuse)
    monkeypatch.setattr(connection, "close", lambda: None)
    redriver.run()
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.django_db
def test_the_bite_follows_the_time_that_ticks_take(operator, team_lead, monkeypatch):
    die(3)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=0))
    seen = []

    def tick(plan_id, *, bite):
        seen.append(bite)
        return ticks.Tick("running", redriven=bite, due_ms=1, held_ms=80 if len(seen) < 4 else 5)

    monkeypatch.setattr(loop.ticks, "tick", tick)
    redriver = Redriver("r1")
    pace = loop._Pace()
    for _ in range(8):
        redriver._tick(plan, pace)
    assert seen[0] == 50
    assert seen[1:4] == [25, 25, 25]
    assert seen[4:] == [50, 100, 200, 200]


@pytest.mark.django_db
def test_it_rests_as_long_as_it_held_the_lock(operator, team_lead, monkeypatch):
    die(3)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=0))
    assert ticks.begin(plan.pk)
    monkeypatch.setattr(loop.ticks, "tick", lambda *_, **__: ticks.Tick("running", redriven=9, due_ms=1, held_ms=90))
    assert Redriver("r1").once() >= 90


@pytest.mark.django_db
def test_once_ends_by_itself(operator, team_lead):
    die(3)
    approved(operator, team_lead, Terms(1_000_000, canary=0))
    call_command("redriver", "--owner", "r1", "--once")
    call_command("redriver", "--owner", "r1", "--once")
    assert Plan.objects.get().state in ("running", "ended")
    assert Process.objects.get().stopped_at_ms


@pytest.mark.parametrize("owner", ["-x", "a b", "ｒ", "x" * 129])
def test_a_bad_name_is_refused(capsys, owner):
    with pytest.raises(SystemExit) as ended:
        call_command("redriver", f"--owner={owner}")
    assert ended.value.code == 2
    assert "name" in capsys.readouterr().err


# --- real processes -------------------------------------------------------------------------------------------------


@pytest.fixture
def child(real_database):
    made = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "manage.py", "redriver", "--owner", "r1", *arguments],
            env=real_database.environ, cwd=BASE_DIR, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        made.append(process)
        return process

    yield start
    for process in made:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_in_mid_batch(child, operator, team_lead, number):
    die(200)
    approved(operator, team_lead, Terms(20_000, canary=0))
    process = child()
    until(Redrive.objects.exists, "a first redrive")
    process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert Process.objects.get().stopped_at_ms
    plan = Plan.objects.get()
    assert (plan.state, plan.redriven) == ("running", Redrive.objects.count())


@contextmanager
def locked_elsewhere():
    """Another connection holds what a tick needs."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        other = sqlite3.connect(str(settings["NAME"]), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    else:
        other = psycopg.connect(
            host=settings["HOST"], port=settings["PORT"], user=settings["USER"], dbname=settings["NAME"]
        )
        other.execute("LOCK TABLE plans IN EXCLUSIVE MODE")
    yield
    other.rollback()
    other.close()


def test_a_database_locked_by_somebody_else_is_waited_for(child, operator, team_lead):
    die(20)
    approved(operator, team_lead, Terms(100_000, canary=0))
    with locked_elsewhere():
        process = child()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        assert not Redrive.objects.exists()
    until(lambda: Redrive.objects.count() == 20, "the last redrive")
