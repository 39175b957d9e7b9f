"""kill -9 at every statement of asking, freezing, approving, beginning, ticking and sealing (faults F05 to F07).

Each life makes the move with a death at point 1, 2, ... until one lives. After every death the tables are whole, and at the
end a fresh redriver finishes the batch: every order redriven once or skipped with its reason.
"""

import subprocess
import sys

import pytest

from queue_app.models import Approval, Job, Plan, Redrive
from queue_app.policy.filters import Filter
from queue_app.policy.selections import by_filter
from queue_app.policy.terms import Terms
from queue_app.services import plans, ticks
from tests.conftest import BASE_DIR
from tests.engine.mortals import mortals
from tests.redrive.invariants import check_plan, check_plans
from tests.redrive.story import approve, ask, die, frozen, prove, run, work
from tests.waiting import until

MOST_POINTS = 600
QUICK = Terms(1_000_000, canary=0)


class Mortal:
    """A process of its own for each life of a move."""

    deaths = 0

    def __init__(self, environ):
        self._mortals = mortals(environ)

    def every_point(self, move, arguments, *, after=lambda: None):
        """Make the move until it lives; `arguments()` for each life, `after()` looks at the tables after each death."""
        for point in range(1, MOST_POINTS):
            status, answer = self._mortals.die("tests.redrive.mortal", move, point, arguments(point))
            after()
            if status == 0:
                self.deaths += point - 1
                return answer
        raise AssertionError("the move has no end")


@pytest.fixture
def mortal(real_database):
    made = Mortal(real_database.environ)
    yield made
    assert made.deaths >= 8, "no death inside a move"


@pytest.fixture
def people(mortal, operator, team_lead):
    return operator, team_lead


def each_plan():
    for plan in Plan.objects.all():
        check_plan(plan)


def to_the_end(plan, clock):
    """Faults off: a fresh redriver and a worker end what was begun."""
    for _ in range(20):
        if run(plan, clock).due_ms is None:
            break
        work()
    plan.refresh_from_db()
    assert plan.state == "ended"
    check_plans()


def test_asking_leaves_no_plan_or_one_and_the_same_form_again_gives_it(mortal, people, clock):
    operator, _ = people
    ids = die(3)

    def arguments(point):
        return {"user": operator.pk, "form_key": f"form-key-{point:012}", "now_ms": clock.now + 10}

    def after():
        each_plan()
        for plan in Plan.objects.filter(state__in=("freezing", "proposed")):
            again = plans.ask(operator, by_filter(Filter(queue="snacks")), QUICK, note="INC-1", form_key=plan.form_key)
            assert (again.plan, again.first) == (plan.pk, False)
            assert frozen(plan).planned == len(ids)
            plans.withdraw(operator, plan.pk)

    mortal.every_point("ask", arguments, after=after)
    assert Plan.objects.exclude(state="withdrawn").count() == 0
    check_plans()


def test_freezing_goes_on_where_it_was(mortal, people, clock, monkeypatch):
    monkeypatch.setattr(plans, "IN_REQUEST", -1)
    ids = die(11)
    plan = ask(people[0])
    while Plan.objects.get().state == "freezing":  # a death after the commit made a step, too
        mortal.every_point("freeze", lambda _: {"plan": plan.pk, "size": 3}, after=each_plan)
    plan.refresh_from_db()
    assert (plan.state, plan.planned) == ("proposed", len(ids))
    check_plans()


def test_approving_leaves_the_plan_proposed_or_wholly_approved(mortal, people, clock):
    operator, lead = people
    die(2)
    die(1, first=10, code="http_422")
    plan = ask(operator)
    proof = prove(lead)

    def after():
        plan.refresh_from_db()
        assert (plan.state, plan.round, Approval.objects.count()) in (("proposed", 0, 0), ("approved", 1, 1))

    given = {"user": lead.pk, "plan": plan.pk, "digest": plan.digest, "typed": "3"}
    told = mortal.every_point(
        "approve", lambda _: given | {"proof": [proof.kind, proof.user_id, proof.mark]}, after=after
    )
    assert told == [plan.pk, "approved"]
    assert mortal.every_point("begin", lambda _: {"plan": plan.pk}, after=each_plan) in (True, False)
    to_the_end(plan, clock)


def ticking(mortal, plan, clock, bite, times):
    def arguments(_):
        return {"plan": plan.pk, "bite": bite, "now_ms": clock.advance(1_000)}

    return [mortal.every_point("tick", arguments, after=each_plan) for _ in range(times)]


def test_a_tick_is_whole_or_never_was(mortal, people, clock):
    operator, lead = people
    ids = die(8)
    plan = ask(operator, terms=QUICK)
    approve(lead, plan)
    Job.objects.filter(pk=ids[1]).update(state="pending", reason="", code="", attempts=0, redriven=1)
    ticks.begin(plan.pk)
    ticking(mortal, plan, clock, 4, 2)
    plan.refresh_from_db()
    assert plan.redriven + plan.skipped == 8
    to_the_end(plan, clock)
    assert Redrive.objects.count() == 7


def test_a_trial_is_drawn_sent_judged_and_halted_at_every_death(mortal, people, clock):
    operator, lead = people
    die(6)
    die(2, first=20, code="http_422")
    plan = ask(operator, terms=Terms(1_000_000, canary=3))
    approve(lead, plan)
    ticks.begin(plan.pk)
    ticking(mortal, plan, clock, 50, 1)
    plan.refresh_from_db()
    assert (plan.state, plan.redriven) == ("running", 3)
    work("permanent", code="http_503")
    assert ticking(mortal, plan, clock, 50, 1) == [["halted", 0, 0]]
    assert Job.objects.filter(state="dead", redriven=0).count() == 5
    approve(lead, plan)
    to_the_end(plan, clock)
    assert Redrive.objects.count() == 8


def test_the_seal_is_whole_or_never_was(mortal, people, clock):
    operator, lead = people
    die(3)
    plan = ask(operator, terms=QUICK)
    approve(lead, plan)
    run(plan, clock)
    work()
    mortal.every_point("seal", lambda _: {"plan": plan.pk}, after=each_plan)
    plan.refresh_from_db()
    assert plan.sealed_at_ms
    check_plans()


def test_a_redriver_killed_at_any_moment_is_followed_by_the_next(real_database, operator, team_lead):
    """Real redrivers, killed while they work, one after the other: by the real clock."""
    ids = die(300)
    plan = ask(operator, terms=Terms(400_000, canary=0))
    approve(team_lead, plan)
    for number in range(200):
        child = subprocess.Popen(
            [sys.executable, "manage.py", "redriver", "--owner", f"r{number}"],
            env=real_database.environ, cwd=BASE_DIR, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        seen = Redrive.objects.count()
        enough = min(seen + 60, len(ids))
        until(lambda: child.poll() is not None or Redrive.objects.count() >= enough, look_s=0.005)  # noqa: B023
        child.kill()
        child.wait()
        check_plan(Plan.objects.get())
        if Plan.objects.get().state == "ended":
            break
    assert Redrive.objects.count() == len(ids)
    assert number >= 3
    check_plans()
