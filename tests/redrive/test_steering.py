"""Pause, resume, slow down, stop; one batch a queue; the rate holds whatever happens."""

import pytest

from queue_app.models import AuditEvent, Job, Plan, Redrive
from queue_app.policy.approvals import Tightening
from queue_app.policy.buckets import BURST_MS, JOB_UJ, TICK_MS
from queue_app.policy.errors import NotAllowed
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, PlanMoved
from queue_app.policy.selections import by_ids
from queue_app.policy.terms import Terms
from queue_app.services import batches, ticks
from queue_app.services.asking import let_run_out
from tests.redrive.story import FAST, approve, approved, ask, die, run, work

pytestmark = pytest.mark.django_db


def running(operator, team_lead, rate_mj: int = 10_000, n: int = 400) -> Plan:
    die(n)
    plan = approved(operator, team_lead, Terms(rate_mj, canary=0))
    assert ticks.begin(plan.pk)
    plan.refresh_from_db()
    return plan


def ticking(plan: Plan, clock, ms: int, step: int = 25) -> int:
    """Ticks for so long; how many were redriven."""
    n = 0
    for _ in range(ms // step):
        clock.advance(step)
        n += ticks.tick(plan.pk).redriven
    plan.refresh_from_db()
    return n


def test_a_paused_batch_stands_still_and_the_pause_grants_no_burst(clock, operator, team_lead):
    plan = running(operator, team_lead)
    ticking(plan, clock, 1_000)
    assert batches.pause(operator, plan.pk).state == "paused"
    assert ticking(plan, clock, 1_000) == 0
    clock.advance(3_600_000)
    assert batches.resume(operator, plan.pk).state == "running"
    assert ticks.tick(plan.pk).redriven <= 1
    assert ticking(plan, clock, 1_000) <= 10 + 1


def test_pausing_and_resuming_without_end_is_no_way_around_the_rate(clock, operator, team_lead):
    plan = running(operator, team_lead)
    start, n = clock.now, 0
    for _ in range(40):
        n += ticking(plan, clock, 100)
        batches.pause(operator, plan.pk)
        batches.resume(operator, plan.pk)
    assert n <= 10 * (clock.now - start) // 1_000 + 3


def test_slower_works_at_once_and_faster_only_up_to_what_was_approved(clock, operator, team_lead):
    plan = running(operator, team_lead, 100_000)
    ticking(plan, clock, 500)
    batches.set_pace(operator, plan.pk, 10_000)
    ticking(plan, clock, 500)
    assert 8 <= ticking(plan, clock, 1_000) <= 12
    batches.set_pace(operator, plan.pk, 100_000)
    with pytest.raises(InvalidPlan, match="approved 100 "):
        batches.set_pace(operator, plan.pk, 100_001)
    assert list(AuditEvent.objects.filter(action="batch.pace").values_list("actor_id", flat=True)) == [operator.pk] * 2


def test_above_the_approved_rate_leads_only_a_new_approval(clock, operator, team_lead):
    die(50)
    plan = ask(operator, terms=Terms(100_000, canary=0))
    approve(team_lead, plan, tightening=Tightening(rate_mj=10_000))
    run(plan, clock, ticks_at_most=2)
    with pytest.raises(InvalidPlan):
        batches.set_pace(team_lead, plan.pk, 20_000)
    batches.pause(team_lead, plan.pk)
    approve(team_lead, plan, tightening=Tightening(rate_mj=100_000))
    assert (plan.rate_mj, Plan.objects.get().approved_rate_mj) == (10_000, 100_000)


def test_stop_is_final_and_frees_the_rest(clock, operator, team_lead):
    plan = running(operator, team_lead)
    done = ticking(plan, clock, 1_000)
    receipt = batches.stop(operator, plan.pk, note="WRONG-1")
    assert (receipt.state, receipt.first) == ("stopped", True)
    assert not batches.stop(team_lead, plan.pk).first
    assert ticking(plan, clock, 1_000) == 0
    assert plan.planned == 400
    assert plan.redriven == done
    for act in (batches.pause, batches.resume):
        with pytest.raises(PlanMoved):
            act(operator, plan.pk)
    with pytest.raises(PlanMoved):
        approve(team_lead, plan)
    assert ask(operator).planned == 400 - done


@pytest.mark.parametrize("act", [batches.pause, batches.resume, batches.stop, "pace"])
def test_an_auditor_steers_nothing(clock, operator, team_lead, auditor, act):
    plan = running(operator, team_lead)
    with pytest.raises(NotAllowed):
        batches.set_pace(auditor, plan.pk, 10) if act == "pace" else act(auditor, plan.pk)
    plan.refresh_from_db()
    assert (plan.state, plan.rate_mj) == ("running", 10_000)


def test_one_batch_of_a_queue_runs_at_a_time_and_a_paused_one_lets_the_next_go(clock, operator, team_lead):
    ids = die(60)
    first, second, third = (
        approved(operator, team_lead, Terms(1_000, canary=0), by_ids(ids[k : k + 20])) for k in (0, 20, 40)
    )
    assert not ticks.begin(second.pk)
    assert ticks.begin(first.pk)
    assert not ticks.begin(second.pk)
    batches.pause(operator, first.pk)
    assert not ticks.begin(third.pk)
    assert ticks.begin(second.pk)
    clock.advance(1)
    assert batches.resume(operator, first.pk).state == "approved"
    batches.stop(operator, second.pk)
    assert ticks.begin(third.pk)
    batches.stop(operator, third.pk)
    assert ticks.begin(first.pk)


def test_batches_of_two_queues_run_side_by_side(clock, operator, team_lead):
    from queue_app.policy.queues import QueuePolicy
    from queue_app.services import queue
    from queue_app.store import queues

    queues.declare(QueuePolicy("drinks"))
    ids = die(2)
    queue.enqueue("d1", 1, queue="drinks", max_attempts=1)
    lease = queue.claim("w", queue="drinks")[0]
    queue.finish("d1", lease.token, "permanent")
    plans = [approved(operator, team_lead, FAST, by_ids(some)) for some in (ids, ["d1"])]
    assert [ticks.begin(plan.pk) for plan in plans] == [True, True]


def test_a_new_round_that_is_not_begun_in_time_is_halted_and_keeps_what_it_did(clock, operator, team_lead):
    plan = running(operator, team_lead)
    ticking(plan, clock, 1_000)
    batches.pause(operator, plan.pk)
    approve(team_lead, plan)
    clock.advance(EXPIRY_MS)
    assert not ticks.begin(plan.pk)
    let_run_out(plan.pk)
    plan.refresh_from_db()
    assert (plan.state, plan.why) == ("halted", "approval_ran_out")
    assert plan.redriven > 0
    approve(team_lead, plan)
    assert ticks.begin(plan.pk)


# --- the rate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "seconds"), [(1, 30), (50, 10), (500, 3)])
def test_a_steady_rate_is_met_within_two_percent(clock, operator, team_lead, rate, seconds):
    plan = running(operator, team_lead, rate * 1_000, rate * (seconds + 2))
    ticking(plan, clock, 1_000)
    done = ticking(plan, clock, seconds * 1_000, 50)
    assert abs(done - rate * seconds) <= max(1, rate * seconds * 0.02)


def test_in_no_second_more_than_the_rate_and_one_ticks_burst(clock, operator, team_lead):
    plan = running(operator, team_lead, 40_000, 1_000)
    made: list[tuple[int, int]] = []
    for step in [10, 700, 3, 40, 5_000, 1, 1, 20, -4_000, 30, 2_000, 60, 60, 60, 900, 10, 10, 10, 250, 250] * 3:
        clock.advance(step)
        made.append((clock.now, ticks.tick(plan.pk).redriven))
    burst = max(1, 40 * BURST_MS // 1_000)
    real = 0
    walked = []
    for (at, n), (before, _) in zip(made[1:], made, strict=False):
        real += max(0, at - before)
        walked.append((real, n))
    for start, _ in walked:
        assert sum(n for at, n in walked if start <= at < start + 1_000) <= 40 + 2 * burst


def test_a_clock_set_back_an_hour_neither_blocks_nor_bursts(clock, operator, team_lead):
    plan = running(operator, team_lead)
    ticking(plan, clock, 1_000)
    clock.advance(-3_600_000)
    assert ticks.tick(plan.pk).redriven == 0
    assert 8 <= ticking(plan, clock, 1_000) <= 12
    clock.advance(3_600_000)
    assert ticks.tick(plan.pk).redriven <= 1 + 10 * BURST_MS // 1_000


def test_several_redrivers_share_one_bucket(clock, operator, team_lead):
    plan = running(operator, team_lead, 100_000)
    n = 0
    for _ in range(40):
        clock.advance(TICK_MS)
        n += sum(ticks.tick(plan.pk).redriven for _ in range(5))
    assert abs(n - 200) <= 6


def test_a_restart_grants_no_burst(clock, operator, team_lead):
    plan = running(operator, team_lead)
    ticking(plan, clock, 1_000)
    clock.advance(600_000)  # nobody ticked
    assert ticks.tick(plan.pk).redriven <= 10 * BURST_MS // 1_000 + 1


def test_steps_lead_up_to_the_rate(clock, operator, team_lead):
    die(400)
    plan = approved(operator, team_lead, Terms(100_000, steps=((5_000, 2), (20_000, 2)), canary=0))
    ticks.begin(plan.pk)
    assert [ticking(plan, clock, 2_000) // 2 for _ in range(2)] in ([5, 20], [5, 19], [5, 21])
    assert 95 <= ticking(plan, clock, 1_000) <= 105


def test_the_slowest_rate_makes_its_first_order_at_once_and_the_next_after_100_seconds(clock, operator, team_lead):
    plan = running(operator, team_lead, 10, 3)
    assert ticks.tick(plan.pk).redriven == 1
    assert ticks.tick(plan.pk).due_ms == 100_000
    clock.advance(99_999)
    assert ticks.tick(plan.pk).redriven == 0
    clock.advance(1)
    assert ticks.tick(plan.pk).redriven == 1


def test_the_bucket_is_charged_for_what_was_redriven_only(clock, operator, team_lead):
    plan = running(operator, team_lead, 20_000, 10)
    Job.objects.filter(pk="o1").update(state="pending", reason="", code="", attempts=0, redriven=1)
    clock.advance(100)
    ticks.tick(plan.pk)
    plan.refresh_from_db()
    assert plan.level_uj == JOB_UJ * (2 + 1 - plan.redriven)
    assert Redrive.objects.count() == plan.redriven
    assert plan.skipped == 1
    work()
