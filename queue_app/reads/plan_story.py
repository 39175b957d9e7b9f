"""What happened to a redrive and who did it, step by step, from the record."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queue_app.models import Approval, AuditEvent
from queue_app.policy.approvals import Grant
from queue_app.reads.audit_search import Span, by_action
from queue_app.reads.audit_story import KEY_ACTIONS

MOST = 100
DECISIONS = ("plan.approve", "plan.reject")


@dataclass(frozen=True, slots=True)
class Decision:
    """Approve or reject, by whom (name of that moment), and on what terms."""

    round: int
    decision: str
    by_id: int
    by_name: str
    at_ms: int
    note: str
    comment: str
    digest: str
    rate_mj: int
    canary: int
    left_out: tuple[tuple[str, str], ...]
    proof: str
    solo: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a redrive's story. `made` and `grant`: of a decision; `rate_mj`, `before_mj`: of a change of pace;
    `state` and `why`: of a pause or halt."""

    event: AuditEvent
    made: Decision | None = None
    grant: Grant | None = None
    rate_mj: int = 0
    before_mj: int = 0
    state: str = ""
    why: str = ""


def decisions_of(plan_id: int) -> tuple[Decision, ...]:
    """Every decision on a redrive, the first round first. One query."""
    return tuple(
        Decision(
            row.round,
            row.decision,
            row.by_id,
            row.by_name,
            row.at_ms,
            row.note,
            row.comment,
            row.digest,
            row.rate_mj,
            row.canary,
            tuple((reason, code) for reason, code in json.loads(row.left_out)),
            row.proof,
            row.solo,
        )
        for row in Approval.objects.filter(plan_id=plan_id).order_by("round")
    )


def story(plan_id: int, decisions: Sequence[Decision]) -> tuple[tuple[Step, ...], bool]:
    """The last MOST events but its single ticks, oldest first, and whether there are older ones. Four queries."""
    events = _events(plan_id, KEY_ACTIONS, MOST + 1)
    by_round = {made.round: made for made in decisions}
    return tuple(_step(event, by_round) for event in events[-MOST:]), len(events) > MOST


def last_step(plan_id: int, actions: Sequence[str]) -> Step | None:
    """The last event of one of these actions, or None. Four queries."""
    found = _events(plan_id, actions, 1)
    return _step(found[-1], {}) if found else None


def grant_of(plan_id: int, round_: int) -> Grant | None:
    """What the decision on a round says, from the record; None when the record does not tell."""
    for event in _events(plan_id, DECISIONS, MOST):
        more = _detail(event)
        if more.get("round") == round_:
            return _grant(event, more)
    return None


def _events(plan_id: int, actions: Sequence[str], limit: int) -> list[AuditEvent]:
    """The newest `limit` events of these actions, oldest first; other events of the redrive cost nothing."""
    target = f"plan:{plan_id}"
    about = AuditEvent.objects.filter(target=target).values_list("seq", flat=True)
    first, last = about.order_by("seq").first(), about.order_by("-seq").first()
    if first is None or last is None:
        return []
    # A sum of texts has no index, so each action is read from its own, within the ends.
    seqs = by_action(actions, Span(first, last + 1, ["target || '' = %s"], [target]), limit, up=False)
    return list(AuditEvent.objects.filter(pk__in=seqs).order_by("seq"))


def _detail(event: AuditEvent) -> dict[str, Any]:
    try:
        found = json.loads(event.detail)
    except (ValueError, RecursionError):  # only after tampering, and then the page must still stand
        return {}
    return found if isinstance(found, dict) else {}


def _step(event: AuditEvent, by_round: dict[int, Decision]) -> Step:
    more = _detail(event)
    if event.action in DECISIONS:
        return Step(event, made=by_round.get(more.get("round", 0)), grant=_grant(event, more))
    if event.action == "batch.pace":
        return Step(event, rate_mj=_whole(more, "rate_mj"), before_mj=_whole(more, "before_mj"))
    state = {"batch.pause": "paused", "batch.halt": "halted"}.get(event.action, "")
    return Step(event, state=state, why=str(more.get("why", "")))


def _grant(event: AuditEvent, more: dict[str, Any]) -> Grant | None:
    try:
        left_out = tuple((str(reason), str(code)) for reason, code in json.loads(more.get("left_out", "[]")))
    except (ValueError, TypeError):
        return None
    return Grant(
        int(event.target.partition(":")[2]),
        event.action.removeprefix("plan."),
        _whole(more, "waiting"),
        _whole(more, "rate_mj"),
        _whole(more, "canary"),
        left_out,
    )


def _whole(more: dict[str, Any], name: str) -> int:
    value = more.get(name, 0)
    return value if type(value) is int else 0
