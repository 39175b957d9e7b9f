"""Who decides, on what exactly, and that one decision stands however often it is sent."""

import pytest
from django.contrib.auth.models import Group

from queue_app.models import Approval, AuditEvent, Plan
from queue_app.policy.approvals import Tightening
from queue_app.policy.errors import InvalidNote, NotAllowed
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, PlanMoved, UnknownPlan
from queue_app.policy.terms import Terms
from queue_app.services import approvals, batches, plans
from queue_app.services.approvals import Proof
from tests.conftest import PASSWORD
from tests.redrive.conftest import person
from tests.redrive.story import FAST, SNACKS, approve, approved, ask, die, prove, run, work

pytestmark = pytest.mark.django_db
KEY = "k" * 20


def refusals() -> list[str]:
    return list(AuditEvent.objects.filter(action="refused").order_by("seq").values_list("target", flat=True))


def reject(user, plan, **more):
    given = {"round": 1, "digest": plan.digest, "note": "NO-1", "proof": prove(user)} | more
    return approvals.reject(user, plan.pk, **given)


def test_a_second_person_approves_and_the_record_says_all(clock, operator, team_lead):
    die(3)
    plan = ask(operator)
    receipt = approve(team_lead, plan, comment="Receiver repaired. 直りました")
    assert (receipt.state, receipt.first, receipt.by) == ("approved", True, "tom")
    made = Approval.objects.get()
    assert (made.round, made.decision, made.by_id, made.digest) == (1, "approve", team_lead.pk, plan.digest)
    event = AuditEvent.objects.get(action="plan.approve")
    assert (event.actor_id, event.proof, event.roles) == (team_lead.pk, "password", "team_lead")
    assert plan.digest in event.detail
    assert "直" not in event.detail
    assert "repaired" not in event.detail


@pytest.mark.parametrize("asker", ["operator", "both_roles"])
def test_nobody_decides_on_the_own_plan_whatever_roles_they_have_by_then(request, clock, asker):
    user = request.getfixturevalue(asker)
    die(3)
    plan = ask(user)
    user.groups.add(Group.objects.get(name="team_lead"))
    user.username = "renamed"
    user.save()
    for decide in (approve, reject):
        with pytest.raises(NotAllowed, match="themselves"):
            decide(user, plan)
    plan.refresh_from_db()
    assert plan.state == "proposed"
    assert refusals() == [f"plan:{plan.pk}"] * 2


def test_a_superuser_is_no_exception(clock, operator):
    boss = person("boss")
    boss.is_superuser = True
    boss.save()
    die(1)
    with pytest.raises(NotAllowed, match="team leads"):
        approve(boss, ask(operator))


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_only_team_leads_decide(clock, operator, role):
    die(1)
    plan = ask(operator)
    user = person("x", role)
    for decide in (approve, reject):
        with pytest.raises(NotAllowed):
            decide(user, plan)
    assert not Approval.objects.exists()


def test_solo_approval_is_possible_only_under_the_setting_and_marked(clock, settings, both_roles):
    settings.SOLO_APPROVAL = True
    die(2)
    plan = approved(both_roles, both_roles)
    assert plan.solo
    assert Approval.objects.get().solo
    run(plan, clock)
    assert plan.redriven == 2


@pytest.mark.parametrize("second", ["approve", "reject"])
def test_a_later_decision_gets_the_receipt_of_the_first(clock, operator, team_lead, other_lead, second):
    die(2)
    plan = ask(operator)
    digest = plan.digest
    first = approve(team_lead, plan)
    late = {"approve": approve, "reject": reject}[second](other_lead, plan, round=1, digest=digest)
    assert (late.first, late.by, late.move, late.at_ms) == (False, "tom", "approve", first.at_ms)
    assert Approval.objects.count() == 1
    assert AuditEvent.objects.filter(action__in=["plan.approve", "plan.reject"]).count() == 1


def test_a_rejected_plan_is_closed_and_frees_its_orders(clock, operator, team_lead):
    die(2)
    plan = ask(operator)
    assert reject(team_lead, plan).state == "rejected"
    assert ask(operator).planned == 2
    late = approve(team_lead, plan, round=1)
    assert (late.first, late.move, late.state) == (False, "reject", "rejected")


@pytest.mark.parametrize("digest", ["", "0" * 64, None, 5, "upper"])
def test_a_digest_that_is_not_the_list_is_refused(clock, operator, team_lead, digest):
    die(2)
    plan = ask(operator)
    shown = plan.digest.upper() if digest == "upper" else digest
    with pytest.raises(PlanMoved, match="look again"):
        approve(team_lead, plan, digest=shown)
    plan.refresh_from_db()
    assert plan.state == "proposed"


@pytest.mark.parametrize("round_", [0, 2, -1, True, "1", None, 2**40])
def test_another_round_is_refused(clock, operator, team_lead, round_):
    die(2)
    plan = ask(operator)
    with pytest.raises(PlanMoved):
        approve(team_lead, plan, round=round_)


@pytest.mark.parametrize("number", [0, -1, 999, 2**70, "1 OR 1=1", None, True])
def test_a_plan_that_there_is_not_is_unknown(clock, team_lead, number):
    with pytest.raises(UnknownPlan):
        approvals.approve(team_lead, number, round=1, digest="", note="OK-1", proof=prove(team_lead))
    for act in (batches.pause, batches.resume, batches.stop, plans.withdraw, plans.cancel):
        with pytest.raises(UnknownPlan):
            act(team_lead, number)


@pytest.mark.parametrize("note", ["", "a b", "x\n", "ａ", "-x", "a" * 65])
def test_a_bad_note_is_refused_before_anything(clock, operator, team_lead, note):
    die(1)
    plan = ask(operator)
    with pytest.raises(InvalidNote):
        approve(team_lead, plan, note=note)
    with pytest.raises(InvalidNote):
        plans.ask(operator, SNACKS, FAST, note=note)


# --- identity -------------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_refused_recorded_and_throttled(clock, team_lead):
    for _ in range(5):
        with pytest.raises(NotAllowed, match="not right"):
            approvals.confirm_identity(team_lead, "wrong")
    with pytest.raises(NotAllowed, match="Too many"):
        approvals.confirm_identity(team_lead, PASSWORD)
    assert len(refusals()) == 6
    clock.advance(approvals.THROTTLE_MS + 1)
    assert approvals.confirm_identity(team_lead, PASSWORD).kind == "password"


def test_an_endless_password_costs_no_hashing(clock, team_lead, monkeypatch):
    monkeypatch.setattr("django.contrib.auth.models.User.check_password", lambda *_: pytest.fail("hashed"))
    with pytest.raises(NotAllowed):
        approvals.confirm_identity(team_lead, "x" * 10_000_000)


@pytest.mark.parametrize("proof", [None, "password", Proof("password", 10**6, "")])
def test_without_an_own_proof_nothing_is_decided(clock, operator, team_lead, proof):
    die(1)
    plan = ask(operator)
    with pytest.raises(NotAllowed, match="Prove"):
        approve(team_lead, plan, proof=proof)


def test_a_proof_of_before_the_password_changed_is_worth_nothing(clock, operator, team_lead):
    die(1)
    plan = ask(operator)
    proof = prove(team_lead)
    team_lead.set_password("another one")
    team_lead.save()
    with pytest.raises(NotAllowed, match="changed"):
        approve(team_lead, plan, proof=proof)


@pytest.mark.parametrize("loss", ["demoted", "deactivated"])
def test_who_lost_the_right_between_page_and_submit_is_refused_and_recorded(clock, operator, team_lead, loss):
    die(1)
    plan = ask(operator)
    proof = prove(team_lead)
    if loss == "demoted":
        team_lead.groups.clear()
    else:
        type(team_lead).objects.filter(pk=team_lead.pk).update(is_active=False)
    with pytest.raises(NotAllowed):
        approve(team_lead, plan, proof=proof)
    plan.refresh_from_db()
    assert plan.state == "proposed"
    assert refusals() == [f"plan:{plan.pk}"]


def test_an_approval_stands_though_its_approver_later_loses_the_right(clock, operator, team_lead):
    die(3)
    plan = approved(operator, team_lead)
    team_lead.groups.clear()
    run(plan, clock)
    assert (plan.state, plan.redriven) == ("ended", 3)


# --- time -----------------------------------------------------------------------------------------------------------


def test_an_undecided_plan_runs_out(clock, operator, team_lead):
    die(1)
    plan = ask(operator)
    clock.advance(EXPIRY_MS - 1)
    plan.refresh_from_db()
    clock.advance(1)
    with pytest.raises(PlanMoved, match="expired"):
        approve(team_lead, plan)
    plan.refresh_from_db()
    assert plan.state == "expired"
    assert AuditEvent.objects.filter(action="plan.expire").count() == 1
    assert ask(operator).planned == 1


def test_at_its_last_moment_a_plan_can_be_approved(clock, operator, team_lead):
    die(1)
    plan = ask(operator)
    clock.advance(EXPIRY_MS - 1)
    assert approve(team_lead, plan).state == "approved"


def test_an_approval_that_did_not_begin_runs_out(clock, operator, team_lead):
    die(1)
    plan = approved(operator, team_lead)
    clock.advance(EXPIRY_MS)
    run(plan, clock)
    assert plan.redriven == 0
    with pytest.raises(PlanMoved):
        batches.stop(operator, plan.pk)
    plan.refresh_from_db()
    assert plan.state == "expired"


# --- stricter, never wider ------------------------------------------------------------------------------------------


def test_an_approver_makes_it_slower_its_trial_larger_and_its_list_shorter(clock, operator, team_lead):
    die(5)
    die(2, first=50, code="http_422")
    plan = ask(operator, terms=Terms(100_000, canary=1))
    wish = Tightening(50_000, 3, (("permanent", "http_422"),))
    approve(team_lead, plan, tightening=wish)
    run(plan, clock)
    work()
    run(plan, clock)
    assert (plan.rate_mj, plan.approved_rate_mj, plan.canary) == (50_000, 50_000, 3)
    assert (plan.state, plan.redriven, plan.skipped, plan.skips) == ("ended", 5, 2, '{"left_out": 2}')


@pytest.mark.parametrize(
    "wish",
    [
        Tightening(rate_mj=100_001),
        Tightening(rate_mj=0),
        Tightening(rate_mj=True),
        Tightening(canary=4),
        Tightening(canary=1_001),
        Tightening(left_out=(("permanent", "http_500"),)),
        Tightening(left_out=(("permanent", "http_503"),)),
    ],
)
def test_a_wish_that_widens_or_empties_is_refused(clock, operator, team_lead, wish):
    die(5)
    plan = ask(operator, terms=Terms(100_000, canary=5))
    with pytest.raises(InvalidPlan):
        approve(team_lead, plan, tightening=wish)
    plan.refresh_from_db()
    assert plan.state == "proposed"


@pytest.mark.parametrize(("typed", "good"), [("7", True), (" 7", True), ("8", False), ("", False), (None, False)])
def test_the_number_is_typed_when_causes_are_mixed(clock, operator, team_lead, typed, good):
    die(5)
    die(2, first=50, code="http_422")
    plan = ask(operator)
    if good:
        assert approve(team_lead, plan, typed=typed).first
    else:
        with pytest.raises(InvalidPlan, match="Type the number of orders, 7"):
            approve(team_lead, plan, typed=typed)


def test_full_width_digits_are_offered_in_half_width(clock, operator, team_lead):
    die(7)
    with pytest.raises(InvalidPlan) as refused:
        approve(team_lead, ask(operator), typed="７")
    assert refused.value.offered == "7"


# --- the form -------------------------------------------------------------------------------------------------------


def test_the_same_form_twice_makes_one_plan(clock, operator):
    die(3)
    first = plans.ask(operator, SNACKS, FAST, note="INC-1", form_key=KEY)
    again = plans.ask(operator, SNACKS, FAST, note="INC-2", form_key=KEY)
    assert (first.first, again.first) == (True, False)
    assert (again.plan, again.note) == (first.plan, "INC-1")
    assert Plan.objects.count() == 1


def test_another_persons_form_is_refused(clock, operator, team_lead):
    die(3)
    plans.ask(operator, SNACKS, FAST, note="INC-1", form_key=KEY)
    with pytest.raises(InvalidPlan, match="damaged"):
        plans.ask(team_lead, SNACKS, FAST, note="INC-1", form_key=KEY)


@pytest.mark.parametrize("key", ["", "short", "k" * 65, "k" * 19 + "\n", 5])
def test_a_damaged_form_key_is_refused(clock, operator, key):
    die(1)
    with pytest.raises(InvalidPlan):
        plans.ask(operator, SNACKS, FAST, note="INC-1", form_key=key)


def test_only_the_asker_withdraws_and_only_before_a_decision(clock, operator, team_lead):
    die(2)
    plan = ask(operator)
    with pytest.raises(NotAllowed, match="asked for it"):
        plans.withdraw(team_lead, plan.pk)
    assert plans.withdraw(operator, plan.pk).first
    assert not plans.withdraw(operator, plan.pk).first
    with pytest.raises(PlanMoved, match="withdrawn"):
        approve(team_lead, plan)
    second = approved(operator, team_lead)
    with pytest.raises(PlanMoved, match="approved"):
        plans.withdraw(operator, second.pk)


def test_an_auditor_asks_for_nothing(clock, auditor):
    die(1)
    with pytest.raises(NotAllowed):
        ask(auditor)
    assert refusals() == ["plan:new"]
    assert not Plan.objects.exists()
