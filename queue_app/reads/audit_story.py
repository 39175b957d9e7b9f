"""Around one event: what stands before and after it in the chain, and the whole story of its redrive."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Sum

from queue_app.models import Approval, AuditEvent, Plan, Redrive, Result
from queue_app.reads import audit
from queue_app.reads.audit import EventRow

# what a redrive's story is told by; its single steps are left out
KEY_ACTIONS = (
    *("plan.ask", "plan.frozen", "plan.empty", "plan.approve", "plan.reject", "plan.withdraw", "plan.cancel"),
    *("plan.expire", "plan.lapse", "batch.begin", "batch.halt", "batch.pause", "batch.resume", "batch.pace"),
    *("batch.stop", "batch.end", "batch.outcomes"),
)
MOST = 100


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The row beside an event in the chain: an event (`seq`), or a redrives row (`job_id`, `token`)."""

    link: int
    hash: str
    seq: int | None = None
    action: str = ""
    job_id: str = ""
    token: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decided on a round of a redrive, when, and why."""

    decision: str
    round: int
    by: str
    at_ms: int
    note: str
    proof: str
    solo: bool


@dataclass(frozen=True, slots=True)
class RedriveStory:
    """Who asked, who decided, what was frozen, what came of it. `outcomes`: waiting, done, dead_same, dead_other."""

    plan: int
    queue: str
    state: str
    why: str
    asked_by: str
    asked_at_ms: int
    note: str
    as_of_ms: int
    planned: int
    digest: str
    redriven: int
    skipped: int
    outcomes: dict[str, int]
    outcome_digest: str
    sealed_at_ms: int | None
    decisions: Sequence[Decision]
    events: Sequence[EventRow]

    @property
    def died_again(self) -> int:
        """Redriven orders that are back in quarantine, for the same cause or another."""
        return self.outcomes.get("dead_same", 0) + self.outcomes.get("dead_other", 0)

    @property
    def waiting(self) -> int:
        """Orders whose turn has not come."""
        return self.planned - self.redriven - self.skipped


def neighbours(link: int) -> tuple[Neighbour | None, Neighbour | None]:
    """The rows before and after this place of the chain. Four queries."""
    before = [
        _event(AuditEvent.objects.filter(link__lt=link).order_by("-link").first()),
        _redrive(Redrive.objects.filter(link__lt=link).order_by("-link").first()),
    ]
    after = [
        _event(AuditEvent.objects.filter(link__gt=link).order_by("link").first()),
        _redrive(Redrive.objects.filter(link__gt=link).order_by("link").first()),
    ]
    return (
        max((row for row in before if row), key=lambda row: row.link, default=None),
        min((row for row in after if row), key=lambda row: row.link, default=None),
    )


def _event(row: AuditEvent | None) -> Neighbour | None:
    return Neighbour(row.link, row.hash, seq=row.seq, action=row.action) if row else None


def _redrive(row: Redrive | None) -> Neighbour | None:
    return Neighbour(row.link, row.hash, job_id=row.job_id, token=row.token) if row else None


def redrive(plan_id: int) -> RedriveStory | None:
    """The story of one redrive, or None when there is none of this number."""
    plan = Plan.objects.filter(pk=plan_id).first()
    if plan is None:
        return None
    outcomes = Result.objects.filter(batch=plan_id).values_list("outcome").annotate(total=Sum("n")).order_by("outcome")
    decisions = Approval.objects.filter(plan=plan_id).order_by("round", "id")
    return RedriveStory(
        plan=plan.pk,
        queue=plan.queue,
        state=plan.state,
        why=plan.why,
        asked_by=plan.requested_name,
        asked_at_ms=plan.created_at_ms,
        note=plan.note,
        as_of_ms=plan.as_of_ms,
        planned=plan.planned,
        digest=plan.digest,
        redriven=plan.redriven,
        skipped=plan.skipped,
        outcomes=dict(outcomes),
        outcome_digest=plan.outcome_digest,
        sealed_at_ms=plan.sealed_at_ms,
        decisions=[
            Decision(row.decision, row.round, row.by_name, row.at_ms, row.note, row.proof, row.solo)
            for row in decisions[:MOST]
        ],
        events=audit.of_target(f"plan:{plan_id}", KEY_ACTIONS, MOST),
    )
