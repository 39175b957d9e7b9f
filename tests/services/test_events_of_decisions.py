"""Deciding: the whole receipt, every column that is written, the whole event, and each refusal."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from queue_app.models import Approval, AuditEvent, Plan, RedriveOutcome
from queue_app.policy.approvals import Grant, Tightening
from queue_app.policy.errors import InvalidNote, NotAllowed
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, PlanMoved, UnknownPlan
from queue_app.services import approvals
from queue_app.services.approvals import Proof
from queue_app.services.receipts import Receipt
from queue_app.store import chain
from queue_app.store.chain import Event
from tests.conftest import PASSWORD
from tests.redrive import story
from tests.services.plans_of_people import halfway, mixed, paused, proposed, running, stood
from tests.services.told import DEACTIVATED, LEADS, Case, Refused, World, check

pytestmark = pytest.mark.django_db

CHANNELS = pytest.mark.parametrize("channel", ["", "cli"], ids=["console", "cli"])


def by_channel(world: World, channel: str, proof: str = "password") -> World:
    world.how = {"channel": channel} if channel else {}
    world.channel, world.proof = channel or "console", proof
    return world


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- proving identity ---------------------------------------------------------------------------------------------------
WRONG = Refused(NotAllowed, "The password is not right.")
THROTTLED = Refused(NotAllowed, "Too many wrong passwords: try again in a quarter of an hour.")


def proves(password: Any, who: str = "tom") -> Callable[[World], object]:
    return lambda w: approvals.confirm_identity(getattr(w, who), password, **w.how)


def proof_of(w: World) -> Proof:
    return Proof("password", w.tom.pk, digest(User.objects.get(pk=w.tom.pk).password))


def wrong(w: World) -> list[Event]:
    return w.refused(w.tom, "confirm_identity", f"identity:{w.tom.pk}", "wrong password")


def throttled(w: World) -> list[Event]:
    return w.refused(w.tom, "confirm_identity", f"throttled:{w.tom.pk}", "too many wrong passwords")


@CHANNELS
def test_proving_identity_by_the_password(world: World, channel: str) -> None:
    by_channel(world, channel, "")
    for bad in ("", "no", None, 5, PASSWORD + "\n"):  # five are taken, each a second after the one before
        check(Case(proves(bad), lambda _w: WRONG, wrong), world)
        world.clock.advance(1_000)
    check(Case(proves(PASSWORD), lambda _w: THROTTLED, throttled), world)
    check(Case(proves("no", "oda"), lambda _w: WRONG, lambda w: w.refused(
        w.oda, "confirm_identity", f"identity:{w.oda.pk}", "wrong password")), world)  # fmt: skip
    world.clock.advance(900_000 - 5_000 - 1)
    check(Case(proves(PASSWORD), lambda _w: THROTTLED, throttled), world)
    world.clock.advance(1)
    check(Case(proves(PASSWORD), proof_of), world)
    check(Case(lambda w: approvals.confirm_identity(w.gone(), PASSWORD, **w.how),
               lambda _w: Refused(NotAllowed, DEACTIVATED),
               lambda w: w.refused(w.tom, "confirm_identity", f"identity:{w.tom.pk}", DEACTIVATED)), world)  # fmt: skip


def test_only_wrong_passwords_keep_somebody_waiting(world: World) -> None:
    by_channel(world, "", "")
    target = f"identity:{world.tom.pk}"
    chain.append([world.event(world.tom, "seen", target) for _ in range(5)])
    check(Case(proves(PASSWORD), proof_of), world)


def test_a_password_is_as_long_as_a_form_carries(world: World) -> None:
    by_channel(world, "", "")
    for length, case in ((4_096, Case(proves("x" * 4_096), proof_of)),
                         (4_097, Case(proves("x" * 4_097), lambda _w: WRONG, wrong))):  # fmt: skip
        world.tom.set_password("x" * length)
        world.tom.save()
        check(case, world)


# --- deciding -----------------------------------------------------------------------------------------------------------


def decides(how: str = "approve", who: str = "tom", **more: Any) -> Callable[[World], object]:
    def act(w: World) -> object:
        user = getattr(w, who)
        given = {
            "round": w.plan.round + 1,
            "digest": w.plan.digest,
            "note": "OK-1",
            "proof": w.more.get("proof"),
        } | more
        if given["proof"] is None:
            given["proof"] = story.prove(user)
        w.clock.advance(5)
        return stood(w, getattr(approvals, how)(user, w.plan.pk, **given, **w.how))

    return act


def decided(state: str, grant: tuple[Any, ...], **columns: Any) -> Any:
    """`grant`: decision, n, rate, trial, causes left out."""
    return lambda w: (
        Receipt(w.plan.pk, state, grant[0], True, "tom", w.clock.now, "OK-1", w.plan.round + 1, Grant(w.plan.pk, *grant)),
        {"state": state, "changed_at_ms": w.clock.now, **{k: v(w) if callable(v) else v for k, v in columns.items()}},
    )  # fmt: skip


def told(grant: tuple[Any, ...], sentence: str, *, comment: str = "", solo: bool = False) -> Any:
    return lambda w: [
        w.event(
            w.tom, f"plan.{grant[0]}", f"plan:{w.plan.pk}", note="OK-1", round=w.plan.round + 1, digest=w.plan.digest,
            requested_by=w.plan.requested_by_id, planned=3, waiting=grant[1], rate_mj=grant[2], canary=grant[3],
            left_out=json.dumps(grant[4]), sentence=sentence.format(w.plan.pk), comment=comment and digest(comment),
            solo=solo,
        )
    ]  # fmt: skip


def now(w: World) -> int:
    return w.clock.now


def refused(sentence: str, how: str = "approve", who: str = "tom", kind: Any = NotAllowed) -> tuple[Any, Any]:
    return (
        lambda w: Refused(kind, sentence.format(w.plan.pk)),
        lambda w: w.refused(getattr(w, who), how, f"plan:{w.plan.pk}", sentence.format(w.plan.pk)),
    )


def asked_by_tom(w: World) -> None:
    proposed(w)
    Plan.objects.filter(pk=w.plan.pk).update(requested_by=w.tom, requested_name="tom")
    w.plan.refresh_from_db()


def proved_before(w: World) -> None:
    proposed(w)
    w.more["proof"] = story.prove(w.tom)
    w.tom.set_password("another one")
    w.tom.save()


def proved_by_oda(w: World) -> None:
    proposed(w)
    w.more["proof"] = story.prove(w.oda)


def ran_out(w: World) -> None:
    proposed(w)
    w.clock.now = w.plan.expires_at_ms


END = "Identity proved by password."
REFUSED_CAUSE = ("permanent", "http_422")
PLAIN = ("approve", 3, 10_000, 0, ())
TRIAL = ("approve", 3, 10_000, 2, ())
STRICT = ("approve", 2, 2_500, 3, (REFUSED_CAUSE,))
REJECT = ("reject", 3, 10_000, 0, ())
SLOWER = ("approve", 2, 5_000, 10, ())
AGAIN = ("approve", 3, 10_000, 10, ())
ROUND: dict[str, Any] = {"round": 1, "round_at_ms": now, "expires_at_ms": lambda w: w.clock.now + EXPIRY_MS}
LOOK_AGAIN = "The list or the round changed since this page was loaded: look again."
OWN = "Nobody decides on what they asked for themselves."
ANEW = "Prove who you are again before you decide."
DECISIONS = {
    "approve": Case(decides(comment="it works"), decided("approved", PLAIN, **ROUND, approved_rate_mj=10_000,
                                                         canary_passed=True),
                    told(PLAIN, "tom approves R-{}: 3 orders at up to 10/s, without a trial. " + END,
                         comment="it works"), proposed),
    "a trial": Case(decides(typed="3"), decided("approved", TRIAL, **ROUND, approved_rate_mj=10_000),
                    told(TRIAL, "tom approves R-{}: 3 orders at up to 10/s, with a trial of 2 first. " + END), mixed),
    "stricter": Case(decides(typed="3", tightening=Tightening(2_500, 3, (REFUSED_CAUSE,))),
                     decided("approved", STRICT, **ROUND, approved_rate_mj=2_500, rate_mj=2_500, canary=3,
                             left_out='[["permanent", "http_422"]]'),
                     told((*STRICT[:4], (REFUSED_CAUSE,)),
                          "tom approves R-{}: 2 orders at up to 2.5/s, with a trial of 3 first. " + END
                          + " Left out: permanent/http_422."), mixed),
    "go on": Case(decides(), decided("approved", AGAIN, **ROUND | {"round": 2}, why="", canary=10, canary_passed=False),
                  told(AGAIN, "tom approves R-{}: 3 orders at up to 10/s, with a trial of 10 first. " + END), paused),
    "go on halfway": Case(decides(), decided("approved", SLOWER, **ROUND | {"round": 2}, why="", canary=10, ran_ms=0,
                                             canary_passed=False, canary_drawn=False, canary_sent_at_ms=None,
                                             approved_rate_mj=5_000,
                                             round_outcome=lambda _w: RedriveOutcome.objects.latest("pk").pk),
                          told(SLOWER, "tom approves R-{}: 2 orders at up to 5/s, with a trial of 10 first. " + END),
                          halfway),
    "reject": Case(decides("reject", comment="never"), decided("rejected", REJECT, ended_at_ms=now),
                   told(REJECT, "tom rejects R-{}: 3 orders stay in quarantine. " + END, comment="never"), proposed),
    "reject without a comment": Case(decides("reject"), decided("rejected", REJECT, ended_at_ms=now),
                                     told(REJECT, "tom rejects R-{}: 3 orders stay in quarantine. " + END), proposed),
    "a round that is no number": Case(decides(round=True), *refused("R-{} cannot be approved: it is running.",
                                                                    kind=PlanMoved), running),
    "an operator": Case(decides(who="oda"), *refused(LEADS, who="oda"), proposed),
    "an operator rejects": Case(decides("reject", "ada"), *refused(LEADS, "reject", "ada"), proposed),
    "the own": Case(decides(), *refused(OWN), asked_by_tom),
    "the own, rejected": Case(decides("reject"), *refused(OWN, "reject"), asked_by_tom),
    "an old password": Case(decides(), *refused("The password was changed meanwhile: prove who you are again."),
                            proved_before),
    "another's password": Case(decides(), *refused(ANEW), proved_by_oda),
    "another list": Case(decides(digest="0" * 64), *refused(LOOK_AGAIN, kind=PlanMoved), proposed),
    "another round": Case(decides(round=2), *refused(LOOK_AGAIN, kind=PlanMoved), proposed),
    "no round": Case(decides(round=True), *refused(LOOK_AGAIN, kind=PlanMoved), proposed),
    "round 0": Case(decides(round=0), *refused(LOOK_AGAIN, kind=PlanMoved), proposed),
    "a round beyond numbers": Case(decides(round=2**31), *refused(LOOK_AGAIN, kind=PlanMoved), proposed),
    "approve what runs": Case(decides(), *refused("R-{} cannot be approved: it is running.", kind=PlanMoved), running),
    "reject what is paused": Case(decides("reject"), *refused("R-{} cannot be rejected: it is paused.", "reject",
                                                              kind=PlanMoved), paused),
    "what ran out": Case(decides(), refused("R-{} cannot be approved: it is expired.", kind=PlanMoved)[0],
                         lambda w: [w.program("plan.expire", round=0),
                                    *refused("R-{} cannot be approved: it is expired.")[1](w)], ran_out),
    "nothing typed": Case(decides(), lambda _w: Refused(
        InvalidPlan, "Type the number of orders, 3, to approve.", "typed"), before=mixed),
    "faster": Case(decides(tightening=Tightening(10_001)), lambda _w: Refused(
        InvalidPlan, "An approver may only make it slower than the 10 orders/s asked for.", "rate"), before=proposed),
    "a smaller trial": Case(decides(tightening=Tightening(canary=1)), lambda _w: Refused(
        InvalidPlan, "The trial may only become larger: from 2 to 1000 orders.", "canary"), before=mixed),
    "nothing left": Case(decides(tightening=Tightening(left_out=(REFUSED_CAUSE,))), lambda _w: Refused(
        InvalidPlan, "With every cause left out nothing remains to redrive: reject it instead.", "left_out"),
        before=proposed),
}  # fmt: skip


@CHANNELS
@pytest.mark.parametrize("case", DECISIONS.values(), ids=list(DECISIONS))
def test_a_decision(world: World, channel: str, case: Case) -> None:
    check(case, by_channel(world, channel))


@CHANNELS
@pytest.mark.parametrize("how", ["approve", "reject"])
def test_what_proves_nothing_is_refused_without_a_proof(world: World, channel: str, how: str) -> None:
    proposed(world)
    by_channel(world, channel, "")
    check(Case(decides(how, proof="password"), *refused(ANEW, how)), world)
    world.more["proof"] = approvals.confirm_identity(world.tom, PASSWORD)
    by_channel(world, channel)
    check(Case(lambda w: decides(how)(w) if w.gone() else None, *refused(DEACTIVATED, how)), world)


@pytest.mark.parametrize("solo", [True, False])
@pytest.mark.parametrize("how", ["approve", "reject"])
def test_what_is_kept_of_a_decision(world: World, settings: Any, how: str, solo: bool) -> None:
    settings.SOLO_APPROVAL = True
    (asked_by_tom if solo else proposed)(world)
    by_channel(world, "")
    grant = PLAIN if how == "approve" else REJECT
    sentence = ("tom approves R-{}: 3 orders at up to 10/s, without a trial. " if how == "approve"
                else "tom rejects R-{}: 3 orders stay in quarantine. ") + END  # fmt: skip
    columns = {**ROUND, "approved_rate_mj": 10_000, "canary_passed": True} | ({"solo": True} if solo else {})
    gives = (decided("approved", grant, **columns) if how == "approve"
             else decided("rejected", grant, ended_at_ms=now))  # fmt: skip
    check(Case(decides(how, comment="it works"), gives, told(grant, sentence, comment="it works", solo=solo)), world)
    kept = Approval.objects.values().get()
    at_ms = world.clock.now
    assert kept == {
        "id": kept["id"], "plan_id": world.plan.pk, "round": 1, "decision": how, "by_id": world.tom.pk, "by_name": "tom",
        "at_ms": at_ms, "note": "OK-1", "comment": "it works", "digest": world.plan.digest, "rate_mj": 10_000,
        "canary": 0, "left_out": "[]", "proof": "password", "solo": solo,
    }  # fmt: skip
    world.oda.groups.set(Group.objects.filter(name="team_lead"))
    late = Receipt(world.plan.pk, "approved" if how == "approve" else "rejected", how, False, "tom", at_ms, "OK-1", 1,
                   Grant(world.plan.pk, *grant))  # fmt: skip
    if not solo:
        world.oda, world.ada = world.ada, world.oda
        world.oda.groups.set(Group.objects.filter(name="team_lead"))
    world.plan.refresh_from_db()
    world.plan.round = 0
    for again in ("approve", "reject"):
        seq = AuditEvent.objects.count()
        assert decides(again, "oda", note="OK-2")(world)[0] == late  # type: ignore[index]
        assert AuditEvent.objects.count() == seq


def test_a_round_of_the_largest_number_has_its_decision_too(world: World) -> None:
    proposed(world)
    largest = 2**31 - 1
    given = {
        "decision": "approve",
        "by": world.tom,
        "by_name": "tom",
        "at_ms": 5,
        "note": "OK-0",
        "rate_mj": 1,
        "canary": 0,
    }
    Approval.objects.create(plan=world.plan, round=largest, digest="", proof="password", **given)
    receipt = approvals.approve(
        world.tom, world.plan.pk, round=largest, digest="", note="OK-1", proof=story.prove(world.tom)
    )
    assert (receipt.first, receipt.at_ms, receipt.note, receipt.round) == (False, 5, "OK-0", largest)


def test_what_a_stricter_decision_leaves_out_is_kept(world: World) -> None:
    mixed(world)
    decides(typed="3", tightening=Tightening(2_500, 3, (REFUSED_CAUSE,)))(world)
    kept = Approval.objects.values_list("round", "rate_mj", "canary", "left_out").get()
    assert kept == (1, 2_500, 3, '[["permanent", "http_422"]]')


@pytest.mark.parametrize("how", ["approve", "reject"])
def test_a_redrive_that_is_none_is_refused_and_a_bad_note_before_it(world: World, how: str) -> None:
    given = {"round": 1, "digest": "", "proof": story.prove(world.tom)}
    act = getattr(approvals, how)
    for number in (0, 999_999, 2**63, True, "1"):
        check(Case(lambda w, n=number: act(w.tom, n, note="OK-1", **given),
                   lambda _w: Refused(UnknownPlan, "There is no such redrive.")), world)  # fmt: skip
    with pytest.raises(InvalidNote):
        act(world.ada, 1, note="", **given)
