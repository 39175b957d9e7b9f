"""Pausing, resuming, slowing down and stopping a batch: operators' moves, effective with the next tick (DESIGN 8)."""

from django.contrib.auth.models import User

from queue_app.models import Plan
from queue_app.policy.errors import gettext_noop
from queue_app.policy.notes import check_note
from queue_app.policy.plans import BY_PERSON, EXPIRY_MS, PACED, InvalidPlan, not_now, resumable, target
from queue_app.policy.terms import MIN_RATE_MJ, rate_text
from queue_app.services import ticks
from queue_app.services.asking import let_run_out, locked, receipt, recorded
from queue_app.services.people import Actor, actor_of, require
from queue_app.services.receipts import Receipt
from queue_app.store import chain, database, plans


def pause(user: User, plan_id: int, *, note: str = "", channel: str = "console", proof: str = "session") -> Receipt:
    """Pause until somebody resumes. Raises UnknownPlan; NotAllowed and PlanMoved (recorded)."""
    return _move(user, plan_id, "pause", note, channel, proof)


def resume(user: User, plan_id: int, *, note: str = "", channel: str = "console", proof: str = "session") -> Receipt:
    """Resume what a person paused: at once when the queue is free, else in its turn. The pause grants no burst."""
    return _move(user, plan_id, "resume", note, channel, proof)


def stop(user: User, plan_id: int, *, note: str = "", channel: str = "console", proof: str = "session") -> Receipt:
    """Stop for good: what was not redriven stays in quarantine and is free for other plans."""
    return _move(user, plan_id, "stop", note, channel, proof)


@database.retried
def set_pace(
    user: User, plan_id: int, rate_mj: int, *, note: str = "", channel: str = "console", proof: str = "session"
) -> Receipt:
    """Slow down, or go faster up to the approved rate (thousandths of a job/s). Above it only a new approval leads.

    Raises InvalidPlan besides those of `pause`.
    """
    if note:
        check_note(note)
    with recorded(user, "slow", f"plan:{plan_id}", channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, "slow")
        plan = locked(plan_id)
        if plan.state not in PACED:
            raise not_now("slow", plan.pk, plan.state)
        if type(rate_mj) is not int or not MIN_RATE_MJ <= rate_mj <= plan.approved_rate_mj:
            raise InvalidPlan(
                gettext_noop("The pace may be from 0.01 to the approved %(approved)s orders/s."),
                field="rate",
                approved=rate_text(plan.approved_rate_mj),
            )
        now = database.now_ms()
        first = rate_mj != plan.rate_mj
        if first:
            before = plan.rate_mj
            plans.change(plan, rate_mj=rate_mj)
            _write_down(actor, plan, "pace", note, now, rate_mj=rate_mj, before_mj=before)
        return receipt(plan, "slow", first=first, by=actor.name, at_ms=now, note=note, round_=plan.round)


@database.retried
def _move(user: User, plan_id: int, move: str, note: str, channel: str, proof: str) -> Receipt:
    if note:
        check_note(note)
    let_run_out(plan_id)
    with recorded(user, move, f"plan:{plan_id}", channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, move)
        plan = locked(plan_id)
        if _stands(plan, move):  # the second click, or two people with the same thought
            return receipt(plan, move, first=False, by="", at_ms=plan.changed_at_ms, round_=plan.round)
        if target(plan.state, move) is None or (move == "resume" and not resumable(plan.state, plan.why)):
            raise not_now(move, plan.pk, plan.state)
        now = database.now_ms()
        left = plan.planned - plan.redriven - plan.skipped
        plans.move(plan, move, now, **_changes(move, now))
        _write_down(
            actor, plan, move, note, now, redriven=plan.redriven, skipped=plan.skipped, left=left, round=plan.round
        )
        if move == "resume":
            ticks.begin_now(plan, now)
        return receipt(plan, move, first=True, by=actor.name, at_ms=now, note=note, round_=plan.round)


def _stands(plan: Plan, move: str) -> bool:
    if move == "pause":
        return plan.state == "paused" and plan.why == BY_PERSON
    return plan.state == {"stop": "stopped", "resume": "running"}[move]


def _changes(move: str, now: int) -> dict[str, object]:
    if move == "resume":
        return {"why": "", "expires_at_ms": now + EXPIRY_MS}
    return {"why": BY_PERSON}


def _write_down(actor: Actor, plan: Plan, what: str, note: str, now: int, **detail: object) -> None:
    chain.append([actor.event(f"batch.{what}", f"plan:{plan.pk}", now, note=note, **detail)])
