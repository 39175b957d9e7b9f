"""What a person should know before orders are redriven: warnings with their numbers, the same on preview and approval."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queue_app.models import Plan, PlanGroup, Process, Queue
from queue_app.policy.answers import effect_possible
from queue_app.policy.approvals import STALE_MS, Warned, least_trial
from queue_app.policy.plans import deciding_move
from queue_app.reads.conditions import last_looks

SILENT_MS = 15_000  # three beats of a process


@dataclass(frozen=True, slots=True)
class Cause:
    """Orders of one cause that would be, or still are to be, redriven. `again`: of these, redriven before."""

    reason: str
    code: str
    n: int
    again: int
    oldest_ms: int


def of_plan(plan: Plan, now_ms: int) -> tuple[Warned, ...]:
    """The warnings about what of a plan still waits for its turn."""
    gone = {(reason, code) for reason, code in json.loads(plan.left_out)}
    causes = [
        Cause(row.reason, row.code, waiting, min(row.again, waiting), row.oldest_ms)
        for row in PlanGroup.objects.filter(plan_id=plan.pk).order_by("reason", "code")
        if (waiting := row.planned - row.redriven - row.skipped) > 0 and (row.reason, row.code) not in gone
    ]
    canary = least_trial(plan.canary, plan.round) if deciding_move(plan.state) else plan.canary
    return about(plan.queue, causes, canary=canary, now_ms=now_ms)


def about(queue: str, causes: Sequence[Cause], *, canary: int, now_ms: int) -> tuple[Warned, ...]:
    """The warnings about orders of these causes, in a fixed order."""
    found: list[Warned] = []
    if len(causes) > 1:
        found.append(Warned("mixed", len(causes)))
    oldest = min((cause.oldest_ms for cause in causes), default=now_ms)
    if now_ms - oldest > STALE_MS:
        found.append(Warned("stale", now_ms - oldest))
    policy: Mapping[str, object] = Queue.objects.filter(pk=queue).values("ordering", "paused").first() or {}
    n = sum(cause.n for cause in causes)
    if policy.get("ordering") == Queue.Ordering.ORDERED:
        found.append(Warned("ordered_queue", n))
    for code, orders in (
        ("effect_possible", sum(cause.n for cause in causes if effect_possible(cause.code))),
        ("redriven_before", sum(cause.again for cause in causes)),
        ("nobody_looked", _unseen(queue, causes)),
        ("no_trial", 0 if canary else n),
    ):
        if orders:
            found.append(Warned(code, orders))
    if policy.get("paused"):
        found.append(Warned("queue_paused"))
    found += [
        Warned(code)
        for code, kind in (("no_worker", "worker"), ("no_redriver", "redriver"))
        if not _alive(kind, queue, now_ms)
    ]
    return tuple(found)


def _unseen(queue: str, causes: Sequence[Cause]) -> int:
    """Orders of causes at which nobody has looked since the oldest of them died."""
    looks = last_looks()
    return sum(cause.n for cause in causes if looks.get((queue, cause.reason, cause.code), -1) <= cause.oldest_ms)


def _alive(kind: str, queue: str, now_ms: int) -> bool:
    living = Process.objects.filter(kind=kind, stopped_at_ms=None, seen_at_ms__gt=now_ms - SILENT_MS)
    return living.filter(queue=queue).exists() if kind == "worker" else living.exists()


def redriver_alive(now_ms: int) -> bool:
    """Whether a redriver was seen within three beats."""
    return _alive("redriver", "", now_ms)
