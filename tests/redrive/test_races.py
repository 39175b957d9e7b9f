"""Two moves released at the same moment on connections of their own: one winner, and the loser is told."""

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from queue_app.models import Approval, AuditEvent, Job, Plan, Process, Redrive, RedriveOutcome
from queue_app.policy.errors import Held, NotDead
from queue_app.policy.plans import PlanMoved
from queue_app.policy.terms import Terms
from queue_app.services import approvals, batches, plans, queue, ticks
from tests.conftest import BASE_DIR
from tests.pairs import Pair
from tests.redrive.conftest import person
from tests.redrive.invariants import check_plan, check_plans
from tests.redrive.story import FAST, SNACKS, approve, ask, die, frozen, prove
from tests.waiting import came_true, until

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 6


@pytest.fixture
def pair():
    made = Pair(PlanMoved, Held, NotDead, seed=11, longest_spin=4_000)
    yield made
    made.close()


@pytest.fixture
def lea(transactional_db):
    return person("lea", "team_lead")


def deciding(user, plan, decide=approvals.approve):
    given = {"round": 1, "digest": plan.digest, "note": "OK-1", "proof": prove(user)}
    if decide is approvals.approve:
        given["typed"] = str(plan.planned)
    return lambda: decide(user, plan.pk, **given)


def proposed(operator, number):
    die(1, first=number * 10)
    return ask(operator)


def test_two_approvers_make_one_approval_and_see_its_receipt(pair, operator, team_lead, lea):
    for number in range(ROUNDS):
        plan = proposed(operator, number)
        one, other = pair.race(deciding(team_lead, plan), deciding(lea, plan))
        assert one.first != other.first
        assert one.by == other.by
        assert Approval.objects.filter(plan=plan).count() == 1
        batches.stop(operator, plan.pk)
    check_plans()


def test_approving_and_rejecting_make_one_decision(pair, operator, team_lead, lea):
    for number in range(ROUNDS):
        plan = proposed(operator, number)
        one, other = pair.race(deciding(team_lead, plan), deciding(lea, plan, approvals.reject))
        assert one.first != other.first
        assert one.move == other.move
        plan.refresh_from_db()
        if plan.state == "approved":
            batches.stop(operator, plan.pk)
    check_plans()


def test_approving_or_withdrawing_wins_whole(pair, operator, team_lead):
    for number in range(ROUNDS):
        plan = proposed(operator, number)
        decided, withdrawn = pair.race(deciding(team_lead, plan), lambda plan=plan: plans.withdraw(operator, plan.pk))
        plan.refresh_from_db()
        assert (decided is PlanMoved) != (withdrawn is PlanMoved)
        assert plan.state == ("withdrawn" if decided is PlanMoved else "approved")
        if plan.state == "approved":
            batches.stop(operator, plan.pk)
    check_plans()


def test_F31_approving_and_stopping_at_once_leave_one_story(pair, operator, team_lead):  # noqa: N802
    for number in range(ROUNDS):
        plan = proposed(operator, number)
        decided, stopped = pair.race(deciding(team_lead, plan), lambda plan=plan: batches.stop(operator, plan.pk))
        plan.refresh_from_db()
        assert decided is not PlanMoved, "nothing that is only asked for can be stopped"
        assert plan.state == ("approved" if stopped is PlanMoved else "stopped")
        assert Approval.objects.filter(plan=plan).count() == 1
        told = Counter(AuditEvent.objects.filter(target=f"plan:{plan.pk}").values_list("action", flat=True))
        refused = stopped is PlanMoved
        assert (told["plan.approve"], told["batch.stop"], told["refused"]) == (1, not refused, refused)
        if plan.state == "approved":
            batches.stop(operator, plan.pk)
    check_plans()


def test_one_form_submitted_twice_at_once_makes_one_plan(pair, operator):
    die(3)
    for number in range(ROUNDS):
        key = f"the-form-number-{number:04}"

        def submit(key=key):
            return plans.ask(operator, SNACKS, FAST, note="INC-1", form_key=key)

        one, other = pair.race(submit, submit)
        assert one.plan == other.plan
        assert {one.first, other.first} == {True, False}
        assert Plan.objects.filter(form_key=key).count() == 1
        plans.withdraw(operator, one.plan)
    check_plans()


def test_two_plans_made_at_once_share_no_order(pair, operator, team_lead):
    die(40)
    pair.race(
        lambda: plans.ask(operator, SNACKS, FAST, note="INC-1"),
        lambda: plans.ask(team_lead, SNACKS, FAST, note="INC-2"),
    )
    assert sum(Plan.objects.values_list("planned", flat=True)) == 40
    check_plans()


def running(operator, team_lead, n=60):
    die(n)
    plan = ask(operator, terms=Terms(20_000_000, canary=0))
    approve(team_lead, plan)
    assert ticks.begin(plan.pk)
    return plan


@pytest.mark.parametrize("act", [batches.stop, batches.pause])
def test_after_the_answer_to_stop_or_pause_no_order_moves(pair, operator, team_lead, act):
    plan = running(operator, team_lead)
    for _ in range(ROUNDS):
        pair.race(lambda: ticks.tick(plan.pk, bite=5), lambda: act(team_lead, plan.pk))
        n = Redrive.objects.count()
        assert ticks.tick(plan.pk).redriven == 0
        assert Redrive.objects.count() == n
        check_plan(Plan.objects.get())
        if act is batches.pause:
            batches.resume(team_lead, plan.pk)
    check_plans()


def test_two_ticks_at_once_redrive_each_order_once(pair, operator, team_lead):
    plan = running(operator, team_lead)
    while Plan.objects.get().state == "running":
        pair.race(lambda: ticks.tick(plan.pk, bite=7), lambda: ticks.tick(plan.pk, bite=7))
    assert (Plan.objects.get().state, Redrive.objects.count()) == ("ended", 60)
    check_plans()


def test_a_redrive_elsewhere_and_a_tick_restart_an_order_once(pair, operator, team_lead):
    plan = running(operator, team_lead, n=8)
    answers = []
    for number in range(1, 9):
        answers += pair.race(
            lambda: ticks.tick(plan.pk, bite=1),
            lambda number=number: queue.redrive(f"o{number}", "INC-2", approved_by=team_lead, requested_by=operator),
        )
    assert {answer for answer in answers if isinstance(answer, type)} <= {Held, NotDead}
    assert Redrive.objects.count() == len(set(Redrive.objects.values_list("job_id", flat=True)))
    check_plans()


def test_a_tick_and_the_ends_of_its_orders_keep_the_numbers(pair, operator, team_lead):
    plan = running(operator, team_lead)
    ended = 0

    def finish():
        leases = queue.claim("w", limit=20)
        return sum(queue.finish_many([queue.Result(lease.id, lease.token, "ok") for lease in leases]))

    for _ in range(200):
        _, n = pair.race(lambda: ticks.tick(plan.pk, bite=10), finish)
        ended += n
        if ended == 60:
            break
    assert RedriveOutcome.objects.filter(outcome="done").count() == 60
    check_plans()


def test_two_redrivers_begin_one_batch_of_a_queue(pair, operator, team_lead):
    made = []
    for number in range(2):
        plan = proposed(operator, number)
        approve(team_lead, plan)
        made.append(plan)
    pair.race(*(lambda plan=plan: ticks.begin(plan.pk) for plan in made))
    assert Plan.objects.filter(state="running").count() == 1
    assert AuditEvent.objects.filter(action="batch.begin").count() == 1


@pytest.mark.timeout(3_600)
def test_F30_two_redrivers_one_frozen_now_and_then_and_four_workers_on_one_batch(real_database, operator, team_lead):  # noqa: N802
    """Real processes, the real clock: no order twice, none forgotten, the rate held, the numbers add up. One redriver is
    stopped wherever it is, for half a second at most, for it may hold a lock.

    `SNACKOPS_LONG=20000` takes so many orders instead of the usual ones.
    """
    n, rate = int(os.environ.get("SNACKOPS_LONG", "2000")), 400
    die(n)
    plan = frozen(ask(operator, terms=Terms(rate * 1_000, canary=20)))
    approve(team_lead, plan)
    redrivers = [
        subprocess.Popen(
            [sys.executable, "manage.py", "redriver", "--owner", f"r{k}"],
            env=real_database.environ, cwd=BASE_DIR, stderr=subprocess.DEVNULL,
        )
        for k in range(2)
    ]  # fmt: skip
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.redrive.eager", f"w{k}", str(n)], env=real_database.environ, cwd=BASE_DIR
        )
        for k in range(4)
    ]
    until(lambda: Process.objects.filter(kind="redriver").count() == 2, "both are at work")
    for enough in (n // 20, n // 4, n // 2):
        until(lambda: Redrive.objects.count() >= enough, "it moves", look_s=0.01)  # noqa: B023
        redrivers[0].send_signal(signal.SIGSTOP)
        came_true(lambda: Redrive.objects.count() >= enough + rate // 2, limit_s=0.5)  # noqa: B023
        redrivers[0].send_signal(signal.SIGCONT)
    until(lambda: RedriveOutcome.objects.count() >= n, "the end of every order", limit_s=300 + n / 20, look_s=0.2)
    for child in workers:
        assert child.wait(timeout=60) == 0
    for child in redrivers:
        child.terminate()
        assert child.wait(timeout=30) == 0
    plan.refresh_from_db()
    assert (plan.state, plan.redriven, Redrive.objects.count()) == ("ended", n, n)
    assert Job.objects.filter(state="done").count() == n
    stamps = list(Redrive.objects.order_by("at_ms").values_list("at_ms", flat=True))
    for start in stamps[::50]:
        assert sum(start <= at < start + 1_000 for at in stamps) <= rate + rate // 4 + 1
    check_plans()
