"""Counters against rows: nothing differs after real work, what is planted is found and put right, also under load."""

import json
import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from queue_app.models import AuditEvent, Count, Flow, Result, Tally
from queue_app.policy.recounting import Difference, Numbers, differences
from queue_app.reads.figures import figures
from queue_app.services import counting, housekeeping, queue
from queue_app.services.leases import record_unknown
from queue_app.store import database, places, recounts
from tests.conftest import BASE_DIR
from tests.growth.stories import age, deliver, keep
from tests.redrive.story import approved, die, run, work

GROUP = ("snacks", "permanent", "http_503")
HOUR = 3_600_000
ROUNDS = int(os.environ.get("GROWTH_ROUNDS", "1"))  # of mending beside busy workers


def no_wait(_seconds):
    return None


def check():
    return counting.check(wait=no_wait).differences


def rebuild():
    return counting.rebuild(wait=no_wait)


def add(model, n=7, column="n", **place):
    """Plant a mistake in one counter, whoever counted there."""
    row = model.objects.filter(**place).first()
    if row is None:
        model.objects.create(**place, **{column: n})
    else:
        model.objects.filter(pk=row.pk).update(**{column: getattr(row, column) + n})


@pytest.fixture
def history(clock, operator, team_lead):
    """Orders in every state; a batch with all outcomes; a redrive without a batch; an answer that nobody knows."""
    keep(1)
    deliver(["d1", "d2", "d3"])
    age(clock, 2)
    housekeeping.remove_round(wait=no_wait)
    deliver(["d4", "d5"])
    die(9)
    plan = approved(operator, team_lead)
    run(plan, clock)
    for n, (outcome, code) in enumerate([("ok", ""), ("permanent", "http_503"), ("permanent", "http_410")] * 2):
        for lease in queue.claim("w", limit=1):
            queue.finish(lease.id, lease.token, outcome, code=code)
        clock.advance(n)
    die(2, prefix="late")
    clock.advance(40_000)
    queue.enqueue("strange", 1, max_attempts=1)
    (lease,) = [one for one in queue.claim("w", limit=50) if one.id == "strange"]
    record_unknown("strange", lease.token, "bad_json")
    clock.advance(2 * HOUR)
    queue.claim("w", limit=50)  # buries it: no failure tells when
    queue.redrive("strange", "INC-1", approved_by=team_lead)
    queue.finish("strange", lease.token - 1, "ok")
    queue.enqueue("waits", 1)
    return plan


# --- the comparison -------------------------------------------------------------------------------------------------
def test_equal_numbers_differ_in_nothing_and_a_zero_is_as_good_as_none():
    stored, counted = Numbers(), Numbers()
    stored.n["counts"][("q", "done", "", "", "")] = 0
    assert differences(stored, counted) == []


def test_deaths_without_an_instant_are_compared_by_their_sum_only():
    stored, counted = Numbers(), Numbers()
    stored.flows["died"][(HOUR, 0, *GROUP)] = 2
    counted.flows["died"][(HOUR, HOUR, *GROUP)] = 2
    assert len(differences(stored, counted)) == 2
    counted.uncertain.add(GROUP)
    assert differences(stored, counted) == []
    stored.flows["died"][(HOUR, 0, *GROUP)] = 3
    assert [one.delta for one in differences(stored, counted)] == [-3, 2]


def test_a_tally_and_a_last_change_are_only_ever_lifted():
    stored, counted = Numbers(), Numbers()
    place = ("q", "done", "", "", "")
    stored.n["tallies"][("late_finish",)], counted.n["tallies"][("late_finish",)] = 5, 3
    stored.saw(place, 10)
    counted.saw(place, 9)
    assert differences(stored, counted) == []
    counted.saw(place, 11)
    counted.n["tallies"][("late_finish",)] = 6
    assert differences(stored, counted) == [
        Difference("tallies", ("late_finish",), "n", 5, 6),
        Difference("counts", place, "last_at_ms", 10, 11),
    ]


# --- on the database ------------------------------------------------------------------------------------------------
def test_nothing_differs_after_real_work(history):
    assert check() == ()
    assert not rebuild().mended
    assert not AuditEvent.objects.filter(action="recount").exists()


PLANTED = [
    (Count, "n", {"queue": "snacks", "state": "done", "stage": "", "reason": "", "code": ""}),
    (Count, "n", {"queue": "snacks", "state": "dead", "stage": "", "reason": "permanent", "code": "http_503"}),
    (Count, "n", {"queue": "snacks", "state": "pending", "stage": "new", "reason": "", "code": ""}),
    (Count, "n", {"queue": "snacks", "state": "leased", "stage": "", "reason": "", "code": ""}),
    (Count, "n", {"queue": "nowhere", "state": "dead", "stage": "", "reason": "permanent", "code": "x"}),
    (Flow, "died", {"span_ms": HOUR, "queue": "snacks", "reason": "permanent", "code": "http_503"}),
    (Flow, "left_n", {"span_ms": 60_000, "queue": "snacks", "reason": "permanent", "code": "http_503"}),
    (Flow, "still", {"span_ms": HOUR, "queue": "snacks", "reason": "permanent", "code": "http_410"}),
    (Result, "n", {"queue": "snacks", "reason": "permanent", "code": "http_503", "outcome": "done"}),
    (Result, "n", {"queue": "snacks", "reason": "permanent", "code": "http_503", "outcome": "waiting"}),
]


@pytest.mark.parametrize(("model", "column", "place"), PLANTED)
def test_a_planted_mistake_is_found_and_put_right(history, clock, model, column, place):
    before = figures(clock.now)
    add(model, 7, column, **place)
    (found,) = check()
    assert (found.column, found.delta) == (column, -7)
    assert rebuild().differences == (found,)
    assert check() == ()
    assert figures(clock.now) == before
    event = AuditEvent.objects.get(action="recount")
    assert (event.target, json.loads(event.detail)) == ("counters", {"corrected": 1})


def test_counters_that_were_lost_altogether_come_back(history, clock):
    before = figures(clock.now)
    for model in (Count, Flow, Result, Tally):
        model.objects.all().delete()
    assert len(check()) > 10
    rebuild()
    assert check() == ()
    after = figures(clock.now)
    assert (after.states, after.results, after.groups) == (before.states, before.results, before.groups)
    assert after.late_finishes == before.late_finishes == 1


def test_minutes_that_housekeeping_forgot_are_no_difference(history, clock):
    age(clock, 9)
    housekeeping.tidy()
    assert not Flow.objects.filter(span_ms=60_000).exists()
    assert check() == ()


def test_a_correction_by_somebody_else_is_not_made_twice(history, monkeypatch):
    add(Count, 7, **PLANTED[0][2])
    measured = recounts.measure

    def and_somebody_else(*arguments):
        numbers = measured(*arguments)
        monkeypatch.setattr(recounts, "measure", measured)
        counting.rebuild(wait=no_wait)
        return numbers

    monkeypatch.setattr(recounts, "measure", and_somebody_else)
    assert not rebuild().mended
    assert check() == ()


def test_removals_are_let_in_again_afterwards(history, clock):
    check()
    assert not places.kept_off(places.RECOUNT, clock.now)


def test_the_command_says_every_difference_and_its_exit_status(history, capsys):
    call_command("counters", "check")
    assert capsys.readouterr().out == "Every counter agrees with its rows.\n"
    add(Count, 7, **PLANTED[0][2])
    with pytest.raises(SystemExit) as ended:
        call_command("counters", "check")
    assert ended.value.code == 1
    assert capsys.readouterr().out.splitlines() == [
        "counts queue=snacks state=done: n said 11, the rows say 4",
        "1 counters disagree. `manage.py counters rebuild` puts them right.",
    ]
    call_command("counters", "rebuild", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["mended"], [one["stored"] for one in told["differences"]]) == (True, [11])
    with pytest.raises(CommandError):
        call_command("counters", "guess")


# --- while everything works -----------------------------------------------------------------------------------------
@pytest.fixture
def children(real_database):
    """Two workers that never rest; told to end by `communicate`, and killed when the test did not come so far."""
    made = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.growth.busy", f"w{n}"],
            env=real_database.environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(2)
    ]  # fmt: skip
    yield made
    for child in made:
        if child.poll() is None:
            child.kill()
            child.communicate()


def test_counting_and_mending_are_exact_while_workers_go_on(children, monkeypatch):
    monkeypatch.setattr(recounts, "BITE", (150, 150))
    die(3)
    assert [child.stdout.readline() for child in children] == ["working\n"] * 2
    assert check() == ()
    for _ in range(ROUNDS):
        add(Count, 1_000, **PLANTED[1][2])
        with database.write():  # or a worker would make the row anew in between
            Count.objects.filter(state="done", slot=0).delete()
            add(Count, -3, queue="snacks", state="done", stage="", reason="", code="")
        mended = rebuild()
        assert mended.mended
    moves = [int(child.communicate("", timeout=60)[0]) for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert min(moves) > 0, "they did not work meanwhile"
    assert check() == ()
    with connection.cursor() as cursor:
        cursor.execute("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state")
        rows = dict(cursor.fetchall())
    assert work() >= 0
    assert rows["done"] > 3
