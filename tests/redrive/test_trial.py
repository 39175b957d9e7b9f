"""The trial comes first, and what goes wrong stops by itself: the rest is never touched."""

import pytest
from django.contrib.auth.models import Group

from queue_app.models import AuditEvent, Job, Plan, PlanItem, Redrive
from queue_app.policy.approvals import Tightening
from queue_app.policy.errors import NotAllowed
from queue_app.policy.plans import PlanMoved
from queue_app.policy.selections import by_ids
from queue_app.policy.terms import Terms
from queue_app.reads import plans as reads
from queue_app.services import batches, queue, ticks
from tests.dead_rows import bury
from tests.redrive.story import approve, approved, ask, die, run, work

pytestmark = pytest.mark.django_db
QUICK = Terms(1_000_000, canary=10)


def trial(plan: Plan) -> str:
    return reads.detail(plan.pk, 0).trial.state


# Committed step by step: PostgreSQL cannot tidy up behind ten thousand changes of one counter in one transaction.
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
def test_the_receiver_still_rejects_10_of_10000_are_tried_and_9990_never_touched(
    clock, operator, team_lead, other_lead
):
    for first in range(0, 10_000, 500):
        bury(500, now_ms=clock.now, over_ms=3_600_000, groups=[("snacks", "permanent", "http_503")], first=first)
    plan = approved(operator, team_lead, QUICK)
    assert run(plan, clock).due_ms == ticks.POLL_MS
    assert (plan.redriven, trial(plan)) == (10, "waiting")
    assert work("permanent", code="http_503") == 10
    assert run(plan, clock).state == "halted"
    assert (plan.why, trial(plan), Redrive.objects.count()) == ("canary_deaths", "failed", 10)
    assert Job.objects.filter(state="dead", batch=None).count() == 9_990
    clock.advance(3_600_000)
    assert ticks.tick(plan.pk).redriven == 0

    with pytest.raises(NotAllowed, match="themselves"):
        approve(operator_as_lead(operator), plan)
    approve(other_lead, plan, note="FIX-1")
    assert run(plan, clock, ticks_at_most=5).due_ms is not None
    while run(plan, clock).due_ms is not None:
        work()
    work()
    detail = reads.detail(plan.pk, clock.now)
    assert (plan.state, plan.redriven, plan.round) == ("ended", 10_000, 2)
    assert (detail.results.done, detail.results.dead_same) == (9_990, 10)
    assert [made.by_name for made in detail.decisions] == ["tom", "lea"]
    assert Redrive.objects.filter(approved_by=team_lead).count() == 10
    assert Redrive.objects.filter(approved_by=other_lead).count() == 9_990
    actions = AuditEvent.objects.filter(target=f"plan:{plan.pk}").exclude(action="batch.tick").order_by("seq")
    assert list(actions.values_list("action", flat=True)) == [
        "plan.ask",
        "plan.frozen",
        "plan.approve",
        "batch.begin",
        "batch.halt",
        "refused",
        "plan.approve",
        "batch.begin",
        "batch.end",
    ]


def operator_as_lead(operator):
    operator.groups.add(Group.objects.get(name="team_lead"))
    return operator


def test_the_trial_draws_from_every_cause(clock, operator, team_lead):
    die(80, code="http_503")
    die(15, first=200, code="http_422")
    die(3, first=300, code="http_500")
    die(1, first=400, code="http_410")
    plan = approved(operator, team_lead, QUICK)
    run(plan, clock)
    tried = PlanItem.objects.filter(plan=plan, state="redriven").values_list("code", flat=True)
    assert len(tried) == 10
    assert {code: list(tried).count(code) for code in tried} == {
        "http_503": 6,
        "http_422": 2,
        "http_500": 1,
        "http_410": 1,
    }


def test_results_that_do_not_come_pause_it_with_a_reason_and_the_next_batch_begins(clock, operator, team_lead):
    ids = die(30)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=5, canary_wait_ms=60_000), by_ids(ids[:20]))
    second = approved(operator, team_lead, QUICK, by_ids(ids[20:]))
    run(plan, clock)
    assert not ticks.begin(second.pk)
    clock.advance(59_000)
    assert run(plan, clock, ticks_at_most=1).state == "running"
    clock.advance(1_001)
    assert run(plan, clock).state == "paused"
    assert (plan.why, plan.redriven) == ("canary_silent", 5)
    with pytest.raises(PlanMoved, match="only what a person paused"):
        batches.resume(operator, plan.pk)
    assert ticks.begin(second.pk)


def test_a_good_trial_lets_the_rest_go(clock, operator, team_lead):
    die(30)
    plan = approved(operator, team_lead, QUICK)
    run(plan, clock)
    work()
    run(plan, clock)
    assert (plan.state, plan.redriven) == ("ended", 30)


@pytest.mark.parametrize(("deaths", "state"), [(4, "running"), (5, "halted"), (10, "halted")])
def test_the_share_of_deaths_decides(clock, operator, team_lead, deaths, state):
    die(30)
    plan = approved(operator, team_lead, Terms(1_000, canary=10))
    run(plan, clock)
    work_some(deaths)
    run(plan, clock, ticks_at_most=1)
    assert plan.state == state


def work_some(deaths: int) -> None:
    """Of what is due, so many die and the others are delivered."""
    leases = queue.claim("w", limit=100)
    queue.finish_many(
        [
            queue.Result(lease.id, lease.token, "permanent" if k < deaths else "ok", "http_503" if k < deaths else "")
            for k, lease in enumerate(leases)
        ]
    )


def test_a_trial_skips_what_left_and_draws_others(clock, operator, team_lead):
    ids = die(30)
    plan = approved(operator, team_lead, QUICK)
    Job.objects.filter(pk__in=ids[:6]).update(
        state="pending", reason="", code="", attempts=0, redriven=1, available_at=clock.now + 10**9
    )
    run(plan, clock)
    assert (plan.redriven, plan.skipped) == (10, 6)
    assert trial(plan) == "waiting"


def test_a_list_no_longer_than_its_trial_simply_ends(clock, operator, team_lead):
    die(7)
    plan = approved(operator, team_lead, QUICK)
    run(plan, clock)
    assert (plan.state, plan.redriven) == ("ended", 7)


def test_the_breaker_watches_the_last_hundred_results(clock, operator, team_lead):
    die(400)
    plan = approved(operator, team_lead, Terms(100_000, canary=10, stop_permille=300))
    run(plan, clock)
    work()
    sent = 10
    while run(plan, clock, ticks_at_most=1).state == "running":
        sent += work("permanent", code="http_503")
        clock.advance(50)
    assert (plan.state, plan.why) == ("halted", "breaker")
    assert 30 <= plan.redriven - 10 <= 36
    assert Job.objects.filter(redriven=0, state="dead").count() == 400 - plan.redriven


def test_deaths_of_an_earlier_round_do_not_stop_the_next(clock, operator, team_lead):
    die(100)
    plan = approved(operator, team_lead, Terms(20_000, canary=0))
    ticks.begin(plan.pk)
    ticks.tick(plan.pk, bite=60, unlimited=True)
    batches.pause(operator, plan.pk)
    clock.advance(1)
    approve(team_lead, plan)
    work("permanent", code="http_503")  # restarted in the first round, dead in the second
    run(plan, clock)
    work()
    assert run(plan, clock).state == "ended"
    assert plan.canary == 10


def test_a_new_round_may_go_up_to_the_rate_asked_for_and_has_a_new_trial(clock, operator, team_lead, other_lead):
    die(100)
    plan = approved(operator, team_lead, Terms(50_000, canary=5))
    run(plan, clock)
    work("permanent", code="http_503")
    run(plan, clock)
    batches_rate_before = plan.rate_mj
    approve(other_lead, plan, tightening=Tightening(rate_mj=20_000, canary=8))
    run(plan, clock)
    assert (batches_rate_before, plan.rate_mj) == (50_000, 20_000)
    assert PlanItem.objects.filter(plan=plan, canary=2).count() == 8


def test_left_out_causes_are_not_tried(clock, operator, team_lead):
    die(10)
    die(10, first=100, code="http_422")
    plan = approved_without(operator, team_lead, ("permanent", "http_422"))
    run(plan, clock)
    assert set(PlanItem.objects.filter(plan=plan, state="redriven").values_list("code", flat=True)) == {"http_503"}


def approved_without(operator, team_lead, cause):
    plan = ask(operator, terms=Terms(1_000_000, canary=4))
    approve(team_lead, plan, tightening=Tightening(left_out=(cause,)))
    plan.refresh_from_db()
    return plan
