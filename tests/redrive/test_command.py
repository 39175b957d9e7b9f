"""`manage.py redrive`: the same services, checks and record from a terminal."""

import io
import json
import os
import pty
import subprocess
import sys

import pytest
from django.core.management import call_command

from queue_app.models import Approval, AuditEvent, Plan
from queue_app.policy.terms import Terms
from queue_app.services import ticks
from tests.conftest import BASE_DIR, PASSWORD
from tests.redrive.story import approved, ask, die, run, work

pytestmark = pytest.mark.django_db


def redrive(*arguments: str) -> None:
    call_command("redrive", *arguments)


def told(capsys, *arguments):
    redrive(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def refused(capsys, status, *arguments):
    with pytest.raises(SystemExit) as ended:
        redrive(*arguments)
    assert ended.value.code == status
    out = capsys.readouterr()
    assert out.out == ""
    return out.err


def test_planning_freezes_and_records_who_from_where(capsys, clock, operator):
    die(5)
    receipt = told(
        capsys, "plan", "--as", "oda", "--note", "INC-1", "--comment", "直った", "--queue", "snacks", "--rate", "0.5",
        "--step", "0.1:60", "--cap", "4", "--canary", "2", "--stop", "25", "--canary-wait", "5m", "--max-dead", "7d",
        "--max-attempts", "5", "--budget", "2h",
    )  # fmt: skip
    plan = Plan.objects.get()
    assert (receipt["plan"], receipt["state"], plan.planned) == (plan.pk, "proposed", 4)
    assert (plan.rate_mj, plan.steps, plan.canary, plan.stop_permille) == (500, "[[100, 60]]", 2, 250)
    assert (plan.canary_wait_ms, plan.max_dead_ms, plan.max_attempts, plan.budget_ms) == (
        300_000,
        7 * 86_400_000,
        5,
        7_200_000,
    )
    event = AuditEvent.objects.get(action="plan.ask")
    assert (event.actor_id, event.source, event.proof) == (operator.pk, "cli", "shell")


def test_a_dry_run_shows_what_would_be_frozen_and_writes_nothing(capsys, clock, operator):
    die(3)
    die(2, first=10, code="http_422")
    redrive("plan", "--as", "oda", "--note", "INC-1", "--queue", "snacks", "--dry-run")
    shown = capsys.readouterr().out
    assert "5 orders of snacks" in shown
    assert "permanent http_422" in shown
    assert "2 different causes are mixed" in shown
    assert "5 orders take 1 s at this pace" in shown
    assert not Plan.objects.exists()


def test_single_orders_are_selected_by_id(capsys, clock, operator):
    ids = die(3)
    told(capsys, "plan", "--as", "oda", "--note", "INC-1", "--id", ids[0], "--id", ids[2])
    assert Plan.objects.get().planned == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--note", "a b"], "note"),
        (["--note", "x", "--rate", "0"], "0.01"),
        (["--note", "x", "--rate", "ｎａｎ"], "0.01"),
        (["--note", "x", "--cap", "5", "--canary", "6"], "trial"),
        (["--note", "x", "--canary-wait", "1y"], "10m"),
        (["--note", "x", "--step", "1"], "steps"),
        (["--note", "x", "--reason", "bad"], "reason"),
        (["--note", "x", "--id", "o1"], "either"),
        (["--note", "x", "--as", "nobody"], "nobody"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_sentence(capsys, clock, operator, arguments, says):
    die(1)
    start = [] if "--as" in arguments else ["--as", "oda"]
    assert says in refused(capsys, 2, "plan", *start, *arguments, "--queue", "snacks")
    assert not Plan.objects.exists()


def test_what_is_refused_ends_with_1_and_is_recorded(capsys, clock, operator, auditor):
    die(1)
    plan = ask(operator)
    assert "Only operators and team leads" in refused(capsys, 1, "stop", str(plan.pk), "--as", "ada")
    assert AuditEvent.objects.get(action="refused").source == "cli"
    assert "no such redrive" in refused(capsys, 1, "show", "999")
    assert "cannot be paused" in refused(capsys, 1, "pause", f"R-{plan.pk}", "--as", "oda")


@pytest.mark.parametrize("number", ["0", "-1", "R-", "x", "9" * 40, "1 OR 1=1"])
def test_what_is_no_number_is_wrong_usage(capsys, clock, operator, number):
    assert "whole number" in refused(capsys, 2, "stop", "--as=oda", "--", number)


def test_steering_from_the_terminal(capsys, clock, operator, team_lead):
    die(20)
    plan = approved(operator, team_lead, Terms(2_000, canary=0))
    ticks.begin(plan.pk)
    number = str(plan.pk)
    assert told(capsys, "slow", number, "--as", "oda", "--rate", "1")["state"] == "running"
    assert told(capsys, "pause", number, "--as", "oda", "--note", "WAIT-1")["state"] == "paused"
    assert told(capsys, "pause", number, "--as", "oda")["first"] is False
    assert told(capsys, "resume", number, "--as", "oda")["state"] == "running"
    redrive("stop", number, "--as", "oda")
    assert capsys.readouterr().out == f"R-{number} is stopped.\n"
    sources = AuditEvent.objects.filter(action__startswith="batch.", actor=operator).values_list("source", flat=True)
    assert list(sources) == ["cli"] * 4


def test_withdrawing_and_cancelling(capsys, clock, operator, monkeypatch):
    die(3)
    plan = ask(operator)
    assert told(capsys, "withdraw", str(plan.pk), "--as", "oda")["state"] == "withdrawn"
    monkeypatch.setattr("queue_app.services.plans.IN_REQUEST", -1)
    assert told(capsys, "cancel", str(ask(operator).pk), "--as", "oda")["state"] == "cancelled"


def test_show_and_list_tell_the_story(capsys, clock, operator, team_lead):
    die(30)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=5))
    run(plan, clock)
    work("permanent", code="http_503")
    run(plan, clock)
    redrive("show", f"R-{plan.pk}")
    shown = capsys.readouterr().out
    assert "halted (canary_deaths)" in shown
    assert "planned 30 = waiting 25 + redriven 5 + skipped 0" in shown
    assert "dead again for the same reason 5" in shown
    assert "round 1: approve by tom" in shown
    assert "5 redriven, 0 skipped: 0 delivered, 5 dead again for the same reason, 0 for another, 0 open" in shown
    assert "earlier redrives" not in shown
    redrive("list")
    assert f"R-{plan.pk}  halted" in capsys.readouterr().out
    (line,) = told(capsys, "list", "--state", "halted")
    assert (line["planned"], line["redriven"], line["results"]["dead_same"]) == (30, 5, 5)
    assert told(capsys, "show", str(plan.pk))["trial"]["died"] == 5


@pytest.mark.parametrize("part", ["approve", "reject", "continue"])
def test_without_a_terminal_nothing_is_decided(capsys, clock, operator, team_lead, monkeypatch, part):
    die(1)
    plan = ask(operator)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert "No terminal" in refused(capsys, 2, part, str(plan.pk), "--as", "tom", "--note", "OK-1")
    assert not Approval.objects.exists()


# --- on a real terminal ---------------------------------------------------------------------------------------------


class Terminal:
    """A child on a pseudo terminal, which types what is asked for."""

    def __init__(self, environ, *arguments):
        self._fd, child = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "redrive", *arguments],
            stdin=child, stdout=child, stderr=child, env=environ, cwd=BASE_DIR, start_new_session=True, close_fds=True,
        )  # fmt: skip
        os.close(child)
        self.seen = ""

    def answer(self, prompt, text):
        while prompt not in self.seen:
            self.seen += self._read()
        os.write(self._fd, f"{text}\n".encode())

    def _read(self):
        try:
            return os.read(self._fd, 4_096).decode()
        except OSError:  # the child has closed its side
            raise AssertionError(self.seen) from None

    def end(self):
        try:
            while True:
                self.seen += self._read()
        except AssertionError:
            pass
        os.close(self._fd)
        return self._process.wait(timeout=60)


@pytest.fixture
def strong_lead(settings, team_lead):
    """The lead with a password that the product's own hashers know, for child processes."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    team_lead.set_password(PASSWORD)
    team_lead.save()
    return team_lead


def test_approving_asks_for_the_number_and_the_password(real_database, operator, strong_lead):
    die(3)
    die(2, first=10, code="http_422")
    plan = ask(operator)
    arguments = ("approve", str(plan.pk), "--as", "tom", "--note", "OK-1", "--leave-out", "permanent/http_422")
    wrong = Terminal(real_database.environ, *arguments)
    wrong.answer("number of orders (5)", "5")
    wrong.answer("Password of tom:", "not it")
    assert wrong.end() == 1
    assert "password is not right" in wrong.seen
    right = Terminal(real_database.environ, *arguments)
    right.answer("number of orders (5)", "5")
    right.answer("Password of tom:", PASSWORD)
    assert right.end() == 0, right.seen
    assert PASSWORD not in right.seen
    assert f"tom approves R-{plan.pk}: 3 orders at up to 1000/s, without a trial." in right.seen
    assert "Left out: permanent/http_422." in right.seen
    made = Approval.objects.get()
    assert (made.by_name, made.proof, made.left_out) == ("tom", "password", '[["permanent", "http_422"]]')
    assert AuditEvent.objects.get(action="plan.approve").source == "cli"


def test_the_list_that_was_seen_may_be_named(real_database, operator, strong_lead):
    die(1)
    plan = ask(operator)
    other = Terminal(
        real_database.environ, "approve", str(plan.pk), "--as", "tom", "--note", "OK-1", "--list", "0" * 64
    )
    other.answer("Password of tom:", PASSWORD)
    assert other.end() == 1
    assert "look again" in other.seen
