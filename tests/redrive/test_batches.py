"""A batch from its first tick to its end: numbers, reasons, nothing forced, nothing looped."""

import json

import pytest
from django.db import connection

from queue_app.models import AuditEvent, Hold, Job, Plan, PlanGroup, PlanItem, Redrive, RedriveOutcome, Result
from queue_app.policy.selections import EMPTY_DIGEST, by_ids, outcome_on
from queue_app.policy.terms import Terms
from queue_app.reads import plans as reads
from queue_app.reads import previews
from queue_app.services import freezing, queue, sealing, ticks
from queue_app.store import jobs
from tests.redrive.story import FAST, approve, approved, ask, die, run, work

pytestmark = pytest.mark.django_db
BITE = 8


def states(plan: Plan) -> dict[str, int]:
    return {
        state: PlanItem.objects.filter(plan=plan, state=state).count() for state in ("waiting", "redriven", "skipped")
    }


def restart_elsewhere(job_id: str, now: int) -> None:
    """The raw move that no door of the product allows for a held order."""
    job = Job.objects.get(pk=job_id)
    assert jobs.restart(job_id, job.token, max_attempts=1, deadline=now + 10**6, batch=None, now_ms=now)


@pytest.mark.parametrize("n", [1, BITE - 1, BITE, BITE + 1, 2 * BITE, 3 * BITE + 1, ticks.LOOK, ticks.LOOK + 1])
def test_a_batch_is_carried_out_whole_at_every_size_around_a_bite(clock, operator, team_lead, n):
    ids = die(n)
    plan = approved(operator, team_lead)
    run(plan, clock, bite=BITE)
    assert (plan.state, plan.planned, plan.redriven, plan.skipped) == ("ended", n, n, 0)
    assert sorted(Redrive.objects.values_list("job_id", flat=True)) == sorted(ids)
    assert Job.objects.filter(state="pending", batch=plan.pk, attempts=0, redriven=1).count() == n
    assert states(plan) == {"waiting": 0, "redriven": n, "skipped": 0}


def test_each_redrive_names_who_asked_who_approved_and_both_budgets(clock, operator, team_lead):
    die(1)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=0, max_attempts=5, budget_ms=60_000))
    run(plan, clock)
    row = Redrive.objects.get()
    assert (row.requested_by_id, row.approved_by_id, row.batch, row.note) == (
        operator.pk,
        team_lead.pk,
        plan.pk,
        "INC-1",
    )
    assert (row.old_max_attempts, row.new_max_attempts, row.new_deadline) == (1, 5, row.at_ms + 60_000)
    assert Job.objects.get().deadline == row.new_deadline


def test_200_planned_of_which_30_left_before_are_170_redriven_and_30_skipped_for_ever(clock, operator, team_lead):
    ids = die(200)
    plan = approved(operator, team_lead)
    gone = 30
    for job_id in ids[::6][:gone]:
        restart_elsewhere(job_id, clock.now)
    run(plan, clock)
    clock.advance(366 * 86_400_000)
    line = reads.detail(plan.pk, clock.now).line
    assert (line.planned, line.redriven, line.skipped, line.waiting) == (200, 200 - gone, gone, 0)
    assert reads.detail(plan.pk, clock.now).skips == {"not_dead": gone}


def test_50_that_die_at_once_are_redriven_50_times_and_not_looped(clock, operator, team_lead):
    die(50)
    plan = approved(operator, team_lead, Terms(20_000, canary=0))
    while run(plan, clock, ticks_at_most=1).due_ms is not None:
        work("permanent", code="http_503")
        clock.advance(50)
    work("permanent", code="http_503")
    assert (plan.state, Redrive.objects.count()) == ("ended", 50)
    assert Job.objects.filter(state="dead").count() == 50
    assert reads.detail(plan.pk, clock.now).results.dead_same == 50


def test_what_dies_after_the_freeze_and_after_the_approval_is_untouched_and_shown(clock, operator, team_lead):
    die(100)
    plan = ask(operator)
    clock.advance(10)
    die(40, first=200)
    approve(team_lead, plan)
    clock.advance(10)
    die(10, first=300)
    assert previews.changes_since(plan.pk, clock.now).died.n == 50
    run(plan, clock)
    assert (plan.redriven, Redrive.objects.count()) == (100, 100)
    assert Job.objects.filter(state="dead").count() == 50


def raising_for(job_id: str) -> None:
    """From now on the database refuses any change of this order."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                f"CREATE TRIGGER tests_refuse BEFORE UPDATE ON jobs WHEN OLD.id = '{job_id}' "
                "BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
        else:
            cursor.execute(
                "CREATE FUNCTION tests_refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no'; END$$"
            )
            cursor.execute(
                f"CREATE TRIGGER tests_refuse BEFORE UPDATE ON jobs FOR EACH ROW WHEN (OLD.id = '{job_id}') "
                "EXECUTE FUNCTION tests_refuse()"
            )


@pytest.mark.parametrize("canary", [0, 5])
def test_an_order_that_fails_in_itself_is_skipped_and_the_next_batch_begins(clock, operator, team_lead, canary):
    ids = die(10)
    plan = approved(operator, team_lead, Terms(1_000_000, canary=canary), by_ids(ids[:8]))
    second = approved(operator, team_lead, FAST, by_ids(ids[8:]))
    raising_for(ids[2])
    for _ in range(3):
        run(plan, clock)
        work()
    assert (plan.state, plan.redriven, plan.skips) == ("ended", 7, '{"error": 1}')
    item = PlanItem.objects.get(plan=plan, job_id=ids[2])
    assert (item.state, item.why, item.tries) == ("skipped", "error", 2)
    assert not Redrive.objects.filter(job_id=ids[2]).exists()
    run(second, clock)
    assert second.state == "ended"


def test_the_tries_of_a_failing_order_wait_longer_each_time(clock, operator, team_lead):
    ids = die(1)
    plan = approved(operator, team_lead)
    raising_for(ids[0])
    start = clock.now
    run(plan, clock)
    assert plan.state == "ended"
    assert 3_000 <= clock.now - start <= 4_000


def skip_gone(ids, clock, plan):
    restart_elsewhere(ids[0], clock.now)
    for lease in queue.claim("w", limit=1):
        queue.finish(lease.id, lease.token, "ok")
    Job.objects.filter(pk=ids[0]).delete()


def skip_done(ids, clock, plan):
    restart_elsewhere(ids[0], clock.now)
    work()


def skip_leased(ids, clock, plan):
    restart_elsewhere(ids[0], clock.now)
    queue.claim("w")


def skip_newer(ids, clock, plan):
    restart_elsewhere(ids[0], clock.now)
    work("permanent", code="http_503")


def skip_held(ids, clock, plan):
    other = Plan.objects.create(
        queue="drinks",
        state="proposed",
        selection="{}",
        as_of_ms=0,
        note="x",
        created_at_ms=0,
        changed_at_ms=0,
        expires_at_ms=0,
        asked_rate_mj=10,
        rate_mj=10,
    )
    Hold.objects.filter(pk=ids[0]).update(plan=other)


@pytest.mark.parametrize(
    ("meddle", "why"),
    [
        (skip_gone, "gone"),
        (skip_done, "not_dead"),
        (skip_leased, "not_dead"),
        (skip_newer, "newer_token"),
        (skip_held, "held"),
    ],
)
def test_an_order_that_changed_since_the_freeze_is_skipped_with_its_reason(clock, operator, team_lead, meddle, why):
    ids = die(3)
    plan = approved(operator, team_lead)
    meddle(ids, clock, plan)
    run(plan, clock)
    assert (plan.state, plan.redriven, json.loads(plan.skips)) == ("ended", 2, {why: 1})
    assert PlanItem.objects.get(plan=plan, job_id=ids[0]).why == why
    assert not Redrive.objects.filter(job_id=ids[0]).exists()


@pytest.mark.parametrize(
    ("terms", "wait_ms", "why"),
    [
        (Terms(1_000_000, canary=0, max_dead_ms=3_600_000), 3_600_001, "too_old"),
        (FAST, 30 * 86_400_000 + 1, "beyond_horizon"),
    ],
)
def test_an_order_that_grew_too_old_while_it_waited_is_skipped(clock, operator, team_lead, terms, wait_ms, why):
    clock.advance(-wait_ms + 1_000)
    die(2)
    clock.advance(wait_ms - 1_000)
    plan = approved(operator, team_lead, terms)
    clock.advance(5_000)
    run(plan, clock)
    assert (plan.state, plan.redriven, json.loads(plan.skips)) == ("ended", 0, {why: 2})


def test_many_skipped_orders_do_not_use_up_the_rate(clock, operator, team_lead):
    ids = die(100)
    plan = approved(operator, team_lead, Terms(1_000, canary=0))
    for job_id in ids[:99]:
        restart_elsewhere(job_id, clock.now)
    start = clock.now
    run(plan, clock)
    assert (plan.redriven, plan.skipped) == (1, 99)
    assert clock.now - start < 1_000


def test_an_order_of_an_open_plan_is_redriven_once_whatever_else_is_tried(clock, operator, team_lead):
    (job_id,) = die(1)
    plan = approved(operator, team_lead)
    with pytest.raises(queue.Held, match=f"R-{plan.pk}"):
        queue.redrive(job_id, "INC-2", approved_by=team_lead, requested_by=operator)
    assert ask(operator).held_elsewhere == 1
    run(plan, clock)
    with pytest.raises(queue.NotDead):
        queue.redrive(job_id, "INC-2", approved_by=team_lead, requested_by=operator)
    assert Redrive.objects.count() == 1


def test_planned_is_waiting_and_redriven_and_skipped_at_every_moment_by_item_and_by_cause(clock, operator, team_lead):
    ids = die(30) + die(10, first=100, code="http_422")
    plan = approved(operator, team_lead, Terms(100_000, canary=0))
    for job_id in ids[::5]:
        restart_elsewhere(job_id, clock.now)
    ticks.begin(plan.pk)
    while ticks.tick(plan.pk, bite=3).due_ms is not None:
        clock.advance(20)
        plan.refresh_from_db()
        waiting = plan.planned - plan.redriven - plan.skipped
        assert states(plan) == {"waiting": waiting, "redriven": plan.redriven, "skipped": plan.skipped}
        for column in ("planned", "redriven", "skipped"):
            assert sum(PlanGroup.objects.filter(plan=plan).values_list(column, flat=True)) == getattr(plan, column)
        assert sum(json.loads(plan.skips).values()) == plan.skipped
        assert Redrive.objects.filter(batch=plan.pk).count() == plan.redriven
    plan.refresh_from_db()
    assert plan.state == "ended"


# --- the seal -------------------------------------------------------------------------------------------------------


def test_the_seal_follows_the_last_outcome_and_covers_every_order(clock, operator, team_lead, monkeypatch):
    monkeypatch.setattr(sealing, "BITE", 3)
    ids = die(7)
    plan = approved(operator, team_lead)
    restart_elsewhere(ids[1], clock.now)
    run(plan, clock)
    assert sealing.seal(plan.pk) is False
    work()
    while sealing.seal(plan.pk):
        pass
    plan.refresh_from_db()
    whole = [(k, i, 1, "skipped:not_dead" if k == 2 else "done") for k, i in enumerate(ids, start=1)]
    assert plan.outcome_digest == outcome_on(EMPTY_DIGEST, whole)
    event = AuditEvent.objects.get(action="batch.outcomes")
    assert plan.outcome_digest in event.detail
    assert sealing.seal(plan.pk) is False


def test_the_first_end_after_a_redrive_counts(clock, operator, team_lead):
    die(2)
    plan = approved(operator, team_lead)
    run(plan, clock)
    work("permanent", code="http_503")
    again = approved(operator, team_lead)
    run(again, clock)
    work()
    assert reads.detail(plan.pk, clock.now).results.dead_same == 2
    assert reads.detail(again.pk, clock.now).results.done == 2
    assert RedriveOutcome.objects.count() == 4
    assert sum(Result.objects.filter(batch=plan.pk, outcome="waiting").values_list("n", flat=True)) == 0


def test_a_plan_that_is_still_being_made_is_not_carried_out(clock, operator, monkeypatch):
    monkeypatch.setattr("queue_app.services.plans.IN_REQUEST", -1)
    die(3)
    plan = ask(operator)
    assert not ticks.begin(plan.pk)
    assert ticks.tick(plan.pk).due_ms is None
    freezing.step(plan.pk)
    assert not ticks.begin(plan.pk)
    assert ticks.tick(plan.pk).redriven == 0
