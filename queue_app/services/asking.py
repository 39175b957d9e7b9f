"""What every act of a person has in common: who, whether they may, and the record of a refusal."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser

from queue_app.models import Plan
from queue_app.policy.errors import NotAllowed, gettext_noop
from queue_app.policy.plans import PlanMoved, UnknownPlan
from queue_app.reads import refusals
from queue_app.services import programs
from queue_app.services.people import Actor, actor_of, record_refusal, require
from queue_app.services.receipts import Receipt
from queue_app.store import chain, database, plans

MAX_ID = 2**63 - 1
RUNS_OUT = ("freezing", "proposed", "approved")


Somebody = AbstractBaseUser | AnonymousUser  # as a request knows its person


@contextmanager
def recorded(
    user: Somebody, action: str, target: str, *, channel: str, proof: str, once_in_ms: int = 0
) -> Iterator[None]:
    """Keep what was refused to this person, or was not any more what the person saw, in the audit; then let it through.

    `once_in_ms`: of the same refusal so often only. For what an open page asks again by itself, which is no act of anybody.
    """
    try:
        yield
    except (NotAllowed, PlanMoved) as refused:
        actor = _whoever(user, channel, proof)
        since_ms = database.now_ms() - once_in_ms
        if not once_in_ms or not refusals.refused_since(actor.id, action, target, since_ms):
            record_refusal(actor, action, target, str(refused))
        raise


def allowed(user: Somebody, right: str, target: str, *, channel: str, proof: str, once_in_ms: int = 0) -> Actor:
    """The person, who has this right. Raises NotAllowed, recorded as in `recorded`."""
    with recorded(user, right, target, channel=channel, proof=proof, once_in_ms=once_in_ms):
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, right)
        return actor


def _whoever(user: Somebody, channel: str, proof: str) -> Actor:
    """The person, also when the account is deactivated: that is what the record should tell."""
    try:
        return actor_of(user, channel=channel, proof=proof)
    except NotAllowed:
        return Actor(cast("int", user.pk), user.get_username(), (), channel, proof)


def locked(plan_id: object) -> Plan:
    """The plan, held until the transaction ends. Raises UnknownPlan, also for what is no number at all."""
    plan = plans.read(plan_id, lock=True) if type(plan_id) is int and 0 < plan_id <= MAX_ID else None
    if plan is None:
        raise UnknownPlan(gettext_noop("There is no such redrive."))
    return plan


def run_out(plan: Plan, now: int) -> bool:
    """Let a plan run out that was not decided, or not begun, in time; whether it did. The caller commits."""
    if plan.state not in RUNS_OUT or now < plan.expires_at_ms:
        return False
    began = plan.state == "approved" and plan.started_at_ms is not None
    if not plans.move(plan, "lapse" if began else "expire", now, why="approval_ran_out" if began else ""):
        return False
    chain.append([programs.event("plan.lapse" if began else "plan.expire", plan.pk, now, round=plan.round)])
    return True


@database.retried
def let_run_out(plan_id: object) -> None:
    """In a transaction of its own, so that it stays when the person's own move is refused afterwards."""
    if type(plan_id) is not int or not 0 < plan_id <= MAX_ID:
        return
    plan = plans.read(plan_id)
    if plan is None or plan.state not in RUNS_OUT or database.now_ms() < plan.expires_at_ms:
        return
    with database.write():
        fresh = plans.read(plan_id, lock=True)
        if fresh is not None:
            run_out(fresh, database.now_ms())


def digest_of(comment: str) -> str:
    """What the record keeps of a comment: '' for none, else its SHA-256."""
    return hashlib.sha256(comment.encode()).hexdigest() if comment else ""


def receipt(plan: Plan, move: str, *, first: bool, by: str, at_ms: int, note: str = "", round_: int = 0) -> Receipt:
    """The receipt of a move that stands."""
    return Receipt(plan.pk, plan.state, move, first, by, at_ms, note, round_)
