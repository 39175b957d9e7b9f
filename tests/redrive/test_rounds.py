"""What a new round grants, and that page, receipt, row and record say the same of it."""

import json

import pytest

from queue_app.models import Approval, AuditEvent, Plan
from queue_app.policy.approvals import Grant, Tightening, recorded_sentences
from queue_app.policy.filters import Filter
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.selections import by_filter
from queue_app.policy.terms import Terms
from queue_app.reads import plan_story, previews
from queue_app.reads import plans as reads
from queue_app.services import batches, looks, ticks
from tests.redrive.story import approve, approved, ask, die, halted_by_its_trial, run, work

pytestmark = pytest.mark.django_db
OLD, NEW = ("permanent", "http_503"), ("permanent", "http_422")


def slowed_and_paused(operator, team_lead) -> Plan:
    """Asked and approved at 5/s, slowed to 1/s, paused."""
    die(40)
    plan = approved(operator, team_lead, Terms(5_000, canary=0))
    ticks.begin(plan.pk)
    batches.set_pace(operator, plan.pk, 1_000)
    batches.pause(operator, plan.pk)
    return plan


@pytest.mark.parametrize(
    ("wish", "rate_mj", "said"),
    [
        (Tightening(), 1_000, "up to 1/s, with a trial of 10 first"),
        (Tightening(rate_mj=5_000), 5_000, "up to 5/s, with a trial of 10 first"),
        (Tightening(rate_mj=2_500, canary=20), 2_500, "up to 2.5/s, with a trial of 20 first"),
    ],
)
def test_after_a_slow_down_the_row_is_what_was_shown_and_a_round_may_go_back_up(
    clock, operator, team_lead, wish, rate_mj, said
):
    plan = slowed_and_paused(operator, team_lead)
    shown = reads.detail(plan.pk, clock.now).granted(wish)
    receipt = approve(team_lead, plan, tightening=wish)
    made = Approval.objects.get(round=2)
    assert (made.rate_mj, made.canary) == (shown.rate_mj, shown.canary)
    assert (Plan.objects.get().rate_mj, Plan.objects.get().approved_rate_mj) == (rate_mj, rate_mj)
    assert receipt.grant == shown
    (sentence,) = recorded_sentences(shown, "tom")
    assert said in sentence
    event = AuditEvent.objects.filter(action="plan.approve").latest("seq")
    assert json.loads(event.detail)["sentence"] == sentence
    assert plan_story.grant_of(plan.pk, 2) == shown


def test_above_what_was_asked_for_no_round_leads(clock, operator, team_lead):
    plan = slowed_and_paused(operator, team_lead)
    with pytest.raises(InvalidPlan, match="slower than the 5 "):
        approve(team_lead, plan, tightening=Tightening(rate_mj=5_001))


def test_the_second_decision_gets_the_sentence_of_the_first(clock, operator, team_lead, other_lead):
    die(3)
    plan = ask(operator)
    digest = plan.digest
    first = approve(team_lead, plan)
    late = approve(other_lead, plan, round=1, digest=digest, tightening=Tightening(rate_mj=10))
    assert late.grant == first.grant == Grant(plan.pk, "approve", 3, 1_000_000, 0)


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        (Grant(7, "approve", 1, 250, 0), ["tom approves R-7: 1 order at up to 0.25/s, without a trial."]),
        (
            Grant(7, "approve", 1_200, 5_000, 10, (NEW, ("exhausted", ""))),
            [
                "tom approves R-7: 1,200 orders at up to 5/s, with a trial of 10 first.",
                "Left out: permanent/http_422, exhausted/-.",
            ],
        ),
        (Grant(7, "reject", 1, 5_000, 10), ["tom rejects R-7: 1 order stays in quarantine."]),
        (Grant(7, "reject", 12, 5_000, 10, (NEW,)), ["tom rejects R-7: 12 orders stay in quarantine."]),
    ],
)
def test_one_function_says_what_is_recorded(grant, said):
    found = [part.replace(" Identity proved by password.", "") for part in recorded_sentences(grant, "tom")]
    assert found == said


# --- causes that were left out --------------------------------------------------------------------------------------


def halted_with_one_left_out(clock, operator, team_lead) -> Plan:
    """30 of one cause and 4 of another that the approver left out; the trial of the rest died."""
    die(30)
    die(4, first=50, code="http_422")
    plan = ask(operator, terms=Terms(1_000_000, canary=5))
    approve(team_lead, plan, tightening=Tightening(left_out=(NEW,)))
    run(plan, clock)
    work("permanent", code="http_503")
    run(plan, clock)
    assert plan.state == "halted"
    return plan


def test_a_new_round_is_about_what_is_not_left_out(clock, operator, team_lead):
    plan = halted_with_one_left_out(clock, operator, team_lead)
    detail = reads.detail(plan.pk, clock.now)
    assert (detail.line.waiting, detail.at_stake) == (29, 25)
    assert detail.left_ms == 25
    assert [(cause.reason, cause.code) for cause in detail.choices] == [OLD]
    assert "mixed" not in {warned.code for warned in detail.warnings}
    receipt = approve(team_lead, plan, typed="25")
    assert receipt.grant.n == 25
    assert receipt.grant.left_out == (NEW,)
    event = AuditEvent.objects.filter(action="plan.approve").latest("seq")
    assert json.loads(event.detail)["waiting"] == 25


def test_the_first_round_records_what_it_restarts_and_what_it_leaves_out(clock, operator, team_lead):
    halted_with_one_left_out(clock, operator, team_lead)
    detail = json.loads(AuditEvent.objects.get(action="plan.approve").detail)
    assert (detail["planned"], detail["waiting"]) == (34, 30)
    assert detail["sentence"].endswith("Left out: permanent/http_422.")


def test_the_number_that_is_typed_is_the_one_at_stake(clock, operator, team_lead):
    die(3)
    die(3, first=20, code="")
    die(3, first=30, code="http_422")
    plan = ask(operator)
    approve(team_lead, plan, tightening=Tightening(left_out=(NEW,)))
    batches.pause(operator, plan.pk)
    with pytest.raises(InvalidPlan, match="Type the number of orders, 6"):
        approve(team_lead, plan, typed="9")
    assert approve(team_lead, plan, typed="6").first


# --- results of a cause -----------------------------------------------------------------------------------------------


def test_earlier_redrives_are_those_of_other_batches(clock, operator, team_lead):
    die(12)
    first = approved(operator, team_lead, Terms(1_000_000, canary=0), by_filter(Filter(queue="snacks", id_prefix="o1")))
    run(first, clock)
    work("permanent", code="http_503")
    second = approved(operator, team_lead, Terms(1_000_000, canary=10))
    run(second, clock)
    work("permanent", code="http_503")
    run(second, clock)
    (cause,) = reads.detail(second.pk, clock.now).causes
    assert second.state == "halted"
    assert (cause.redriven, cause.results.dead_same, cause.results.done) == (10, 10, 0)
    assert (cause.before.redriven, cause.before.dead_same) == (4, 4)
    (before,) = reads.detail(first.pk, clock.now).causes
    assert (before.results.redriven, before.before.redriven) == (4, 10)


def test_redrives_of_a_cause_count_its_own_orders_alone(clock, operator, team_lead):
    die(3)
    die(5, first=20, code="http_422")
    plan = approved(operator, team_lead)
    run(plan, clock)
    work()
    (line,) = reads.of_group("snacks", *NEW)
    assert (line.id, line.planned, line.redriven, line.results.done) == (plan.pk, 5, 5, 5)


def test_the_last_look_at_each_cause_of_the_list_is_told(clock, operator, team_lead):
    die(3)
    die(2, first=20, code="http_422")
    clock.advance(1_000)
    group = ("snacks", *OLD)
    looks.record(operator, "group", "INC-1", "looking", group=group)
    looks.record(team_lead, "group", "INC-2", "fixed", group=group, comment="The receiver has room again.")
    causes = {cause.code: cause for cause in reads.detail(ask(operator).pk, clock.now).causes}
    assert causes["http_422"].look is None
    seen = causes["http_503"]
    assert (seen.look.note, seen.look.finding, seen.look.by_name) == ("INC-2", "fixed", "tom")
    assert seen.finding_comment == "The receiver has room again."


# --- died since -------------------------------------------------------------------------------------------------------


def test_what_comes_back_from_the_redrive_itself_did_not_die_since(clock, operator, team_lead):
    plan = halted_by_its_trial(clock, operator, team_lead)
    assert previews.changes_since(plan.pk, clock.now).died.n == 4


# --- who did what -----------------------------------------------------------------------------------------------------


def test_the_story_names_everybody_and_every_step(clock, operator, team_lead):
    plan = slowed_and_paused(operator, team_lead)
    batches.resume(team_lead, plan.pk, note="GO-1")
    batches.stop(operator, plan.pk)
    steps, more = plan_story.story(plan.pk, reads.detail(plan.pk, clock.now).decisions)
    told = [(step.event.action, step.event.name) for step in steps if step.event.actor_id]
    assert told == [
        ("plan.ask", "oda"),
        ("plan.approve", "tom"),
        ("batch.pace", "oda"),
        ("batch.pause", "oda"),
        ("batch.resume", "tom"),
        ("batch.stop", "oda"),
    ]
    pace = next(step for step in steps if step.event.action == "batch.pace")
    assert (pace.before_mj, pace.rate_mj) == (5_000, 1_000)
    assert not more


def test_of_very_many_steps_the_last_are_told(clock, operator, team_lead, monkeypatch):
    plan = slowed_and_paused(operator, team_lead)
    monkeypatch.setattr(plan_story, "MOST", 3)
    steps, more = plan_story.story(plan.pk, ())
    assert [step.event.action for step in steps] == ["batch.begin", "batch.pace", "batch.pause"]
    assert more


def test_a_new_round_begins_its_slow_start_anew(clock, operator, team_lead):
    die(60)
    plan = approved(operator, team_lead, Terms(10_000, steps=((1_000, 10),), canary=0))
    ticks.begin(plan.pk)
    for _second in range(8):
        clock.advance(1_000)
        ticks.tick(plan.pk)
    batches.pause(operator, plan.pk)
    detail = reads.detail(plan.pk, clock.now)
    left = detail.at_stake
    assert detail.next_left_ms == 10_000 + (left - 10) * 100
    assert detail.left_ms < detail.next_left_ms
