"""Deciding on a redrive: a second person, whose identity is proved for this one decision (DESIGN section 8, "Approve")."""

import hashlib
import json
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from queue_app import conf
from queue_app.models import AuditEvent, Plan
from queue_app.policy.approvals import (
    Grant,
    Tightening,
    check_seen,
    check_tightening,
    check_two_people,
    check_typed,
    granted,
    least_trial,
    must_type_count,
    recorded_sentences,
)
from queue_app.policy.errors import NotAllowed, gettext_noop
from queue_app.policy.notes import check_comment, check_note
from queue_app.policy.plans import EXPIRY_MS, deciding_move, not_now
from queue_app.reads import plan_story, warnings
from queue_app.reads.plan_causes import at_stake
from queue_app.services.asking import digest_of, let_run_out, locked, receipt, recorded
from queue_app.services.people import Actor, actor_of, record_refusal, require
from queue_app.services.receipts import Receipt
from queue_app.store import chain, database, plans

WRONG_PASSWORDS = 5
THROTTLE_MS = 900_000
MAX_PASSWORD = 4_096


@dataclass(frozen=True, slots=True)
class Proof:
    """That this person proved to be who they are just now; worth nothing once the password has changed."""

    kind: str
    user_id: int
    mark: str


def confirm_identity(user: User, password: str, *, channel: str = "console") -> Proof:
    """Prove identity again by the password, for one decision. NotAllowed when it is wrong, or after 5 wrong ones within
    15 minutes; each refusal is recorded. The time that hashing takes is spent outside any transaction."""
    with recorded(user, "confirm_identity", f"identity:{user.pk}", channel=channel, proof=""):
        actor = actor_of(user, channel=channel)
    target = f"identity:{actor.id}"
    refused = list(
        AuditEvent.objects.filter(target=target, action="refused")
        .order_by("-seq")
        .values_list("at_ms", flat=True)[:WRONG_PASSWORDS]
    )
    if len(refused) == WRONG_PASSWORDS and refused[-1] > database.now_ms() - THROTTLE_MS:
        # Recorded under another target, or trying again would make the wait longer.
        record_refusal(actor, "confirm_identity", f"throttled:{actor.id}", "too many wrong passwords")
        raise NotAllowed(gettext_noop("Too many wrong passwords: try again in a quarter of an hour."))
    person = User.objects.get(pk=actor.id)
    if type(password) is not str or len(password) > MAX_PASSWORD or not person.check_password(password):
        record_refusal(actor, "confirm_identity", target, "wrong password")
        raise NotAllowed(gettext_noop("The password is not right."))
    return Proof("password", person.pk, _mark(person.pk))


def approve(
    user: User,
    plan_id: int,
    *,
    round: int,  # noqa: A002 - the word of the pages
    digest: str,
    note: str,
    proof: Proof,
    comment: str = "",
    typed: str | None = None,
    tightening: Tightening = Tightening(),  # noqa: B008 - frozen
    channel: str = "console",
) -> Receipt:
    """Approve a frozen list, or a new round after a halt or pause. One decision a round: later ones get its receipt.

    `round` and `digest` are what the person saw. Raises InvalidNote, UnknownPlan, NotAllowed and PlanMoved (both
    recorded), InvalidPlan for a wrong typed number or a wish that widens.
    """
    return _decide(user, plan_id, "approve", round, digest, note, comment, proof, channel, typed, tightening)


def reject(
    user: User,
    plan_id: int,
    *,
    round: int,  # noqa: A002
    digest: str,
    note: str,
    proof: Proof,
    comment: str = "",
    channel: str = "console",
) -> Receipt:
    """Reject a proposed plan for good; its orders are free again. Raises as `approve`."""
    return _decide(user, plan_id, "reject", round, digest, note, comment, proof, channel, None, Tightening())


def _mark(user_id: int) -> str:
    stored = User.objects.values_list("password", flat=True).get(pk=user_id)
    return hashlib.sha256(stored.encode()).hexdigest()


@database.retried
def _decide(
    user: User,
    plan_id: int,
    decision: str,
    round_: int,
    digest: str,
    note: str,
    comment: str,
    proof: Proof,
    channel: str,
    typed: str | None,
    tightening: Tightening,
) -> Receipt:
    check_note(note)
    comment = check_comment(comment)
    kind = proof.kind if isinstance(proof, Proof) else ""
    let_run_out(plan_id)
    with recorded(user, decision, f"plan:{plan_id}", channel=channel, proof=kind), database.write():
        actor = actor_of(user, channel=channel, proof=kind)
        require(actor, decision)
        _check_proof(proof, actor)
        plan = locked(plan_id)
        solo = check_two_people(plan.requested_by_id, actor.id, solo=conf.solo_approval())
        earlier = _earlier(plan, round_)
        if earlier is not None:
            return earlier
        move = deciding_move(plan.state)
        if move is None or (decision == "reject" and plan.state != "proposed"):
            raise not_now(decision, plan.pk, plan.state)
        check_seen(digest, round_, now_digest=plan.digest, now_round=plan.round + 1)
        now = database.now_ms()
        if decision == "reject":
            plans.move(plan, "reject", now)
            grant = Grant(plan.pk, decision, plan.planned, plan.asked_rate_mj, plan.canary)
        else:
            grant = _checked(plan, typed, tightening, now)
            _let_go_on(plan, move, grant, solo, now)
        _record(plan, actor, grant, round_, note, comment, solo, now)
        return replace(
            receipt(plan, decision, first=True, by=actor.name, at_ms=now, note=note, round_=round_), grant=grant
        )


def _check_proof(proof: object, actor: Actor) -> None:
    if not isinstance(proof, Proof) or proof.user_id != actor.id:
        raise NotAllowed(gettext_noop("Prove who you are again before you decide."))
    if proof.mark != _mark(actor.id):
        raise NotAllowed(gettext_noop("The password was changed meanwhile: prove who you are again."))


def _earlier(plan: Plan, round_: object) -> Receipt | None:
    made = plans.decision_of(plan.pk, round_) if type(round_) is int and 0 < round_ < 2**31 else None
    if made is None:
        return None
    first = receipt(
        plan, made.decision, first=False, by=made.by_name, at_ms=made.at_ms, note=made.note, round_=made.round
    )
    return replace(first, grant=plan_story.grant_of(plan.pk, made.round))


def _checked(plan: Plan, typed: str | None, wish: Tightening, now: int) -> Grant:
    left_out = frozenset((reason, code) for reason, code in json.loads(plan.left_out))
    waiting = at_stake(plan.pk, left_out)
    canary = least_trial(plan.canary, plan.round)
    check_tightening(wish, asked_rate_mj=plan.asked_rate_mj, asked_canary=canary, groups=waiting)
    n = sum(waiting.values())
    if must_type_count(n, warnings.of_plan(plan, now)):
        check_typed(typed, n)
    return granted(wish, plan=plan.pk, rate_mj=plan.rate_mj, canary=canary, at_stake=waiting, left_out=left_out)


def _let_go_on(plan: Plan, move: str, terms: Grant, solo: bool, now: int) -> None:
    plans.move(
        plan,
        move,
        now,
        why="",
        round=plan.round + 1,
        round_at_ms=now,
        round_outcome=plans.last_outcome(plan.pk),
        expires_at_ms=now + EXPIRY_MS,
        rate_mj=terms.rate_mj,
        approved_rate_mj=terms.rate_mj,
        canary=terms.canary,
        canary_passed=terms.canary == 0,
        canary_drawn=False,
        canary_sent_at_ms=None,
        left_out=json.dumps(terms.left_out),
        ran_ms=0,
        solo=plan.solo or solo,
    )


def _record(plan: Plan, actor: Actor, grant: Grant, round_: int, note: str, comment: str, solo: bool, now: int) -> None:
    plans.add_decision(
        plan_id=plan.pk,
        round=round_,
        decision=grant.decision,
        by_id=actor.id,
        by_name=actor.name,
        at_ms=now,
        note=note,
        comment=comment,
        digest=plan.digest,
        rate_mj=grant.rate_mj,
        canary=grant.canary,
        left_out=json.dumps(grant.left_out),
        proof=actor.proof,
        solo=solo,
    )
    chain.append(
        [
            actor.event(
                f"plan.{grant.decision}",
                f"plan:{plan.pk}",
                now,
                note=note,
                round=round_,
                digest=plan.digest,
                requested_by=plan.requested_by_id,
                planned=plan.planned,
                waiting=grant.n,
                rate_mj=grant.rate_mj,
                canary=grant.canary,
                left_out=json.dumps(grant.left_out),
                sentence=" ".join(recorded_sentences(grant, actor.name)),
                comment=digest_of(comment),
                solo=solo,
            )
        ]
    )
