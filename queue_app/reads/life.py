"""One order's whole life, as a list of steps in the order of time (DESIGN sections 3 and 4)."""

from dataclasses import dataclass, field

from django.db.models import Q

from queue_app.models import (
    Failure,
    Hold,
    Investigation,
    Job,
    LateFinish,
    Redrive,
    RedriveOutcome,
    Unblock,
)
from queue_app.policy.plans import OPEN

MAX_STEPS = 400  # a life longer than this is shown from its end


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `kind`: accepted, retry, permanent, lease_expired, unknown, deadline_passed, delivered, leased, late_finish,
    redriven, investigated, unblocked, quarantined. `who` and `why` are a person's name and note."""

    at_ms: int
    kind: str
    token: int | None = None
    attempt: int | None = None
    worker: str = ""
    reason: str = ""
    code: str = ""
    who: str = ""
    approver: str = ""
    why: str = ""
    comment: str = ""
    finding: str = ""
    plan: int | None = None
    outcome: str = ""
    solo: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """What comes by itself: claim (not before `at_ms`), lease_end (at `at_ms`), nothing (a redrive), or finished."""

    kind: str
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """A job as it stands, never with its payload, and its steps."""

    id: str
    queue: str
    order_key: str
    quantity: int
    state: str
    reason: str
    code: str
    attempts: int
    max_attempts: int
    token: int
    owner: str | None
    lease_until: int | None
    available_at: int
    deadline: int
    created_at_ms: int
    changed_at_ms: int
    redriven: int
    batch: int | None
    held_by: int | None
    cut: bool
    next: Next
    steps: list[Step] = field(default_factory=list)


_FACTS = (
    "id",
    "queue",
    "order_key",
    "quantity",
    "state",
    "reason",
    "code",
    "attempts",
    "max_attempts",
    "token",
    "owner",
    "lease_until",
    "available_at",
    "deadline",
    "created_at_ms",
    "changed_at_ms",
    "redriven",
    "batch",
)


def life(job_id: str) -> Life | None:
    """The life of one job, or None when no job has this id. Seven queries, whatever its length."""
    job = Job.objects.filter(pk=job_id).values(*_FACTS).first()
    if job is None:
        return None
    steps = [
        Step(job["created_at_ms"], "accepted", token=0),
        *_failures(job_id),
        *_refused(job_id),
        *_redrives(job_id),
        *_investigations(job),
        *_unblocks(job_id),
        *_now(job),
    ]
    steps.sort(key=lambda step: step.at_ms)
    held = Hold.objects.filter(job_id=job_id, plan__state__in=OPEN).values_list("plan_id", flat=True).first()
    return Life(
        **job, held_by=held, cut=len(steps) > MAX_STEPS, next=_next(job), steps=steps[:1] + steps[1:][-MAX_STEPS:]
    )


def _next(job: dict) -> Next:
    if job["state"] == "pending":
        return Next("claim", job["available_at"])
    if job["state"] == "leased":
        return Next("lease_end", job["lease_until"])
    return Next("nothing" if job["state"] == "dead" else "finished")


def _now(job: dict) -> list[Step]:
    at, token = job["changed_at_ms"], job["token"]
    if job["state"] == "done":
        return [Step(at, "delivered", token=token, attempt=job["attempts"])]
    if job["state"] == "leased":
        return [Step(at, "leased", token=token, attempt=job["attempts"], worker=job["owner"] or "")]
    if job["state"] == "dead":
        return [Step(at, "quarantined", token=token, reason=job["reason"], code=job["code"])]
    return []


def _failures(job_id: str) -> list[Step]:
    rows = Failure.objects.filter(job_id=job_id).order_by("-token")[:MAX_STEPS]
    return [
        Step(row.at_ms, row.outcome, token=row.token, attempt=row.attempt, worker=row.worker, code=row.code)
        for row in reversed(rows)
    ]


def _refused(job_id: str) -> list[Step]:
    rows = LateFinish.objects.filter(job_id=job_id).order_by("-token")[:MAX_STEPS]
    return [Step(row.at_ms, "late_finish", token=row.token, outcome=row.outcome) for row in rows]


def _redrives(job_id: str) -> list[Step]:
    ends = dict(RedriveOutcome.objects.filter(job_id=job_id).values_list("token", "outcome"))
    rows = Redrive.objects.filter(job_id=job_id).select_related("requested_by", "approved_by").order_by("-token")
    return [
        Step(
            row.at_ms,
            "redriven",
            token=row.token,
            reason=row.reason,
            code=row.code,
            who=row.requested_by.username if row.requested_by else "",
            approver=row.approved_by.username,
            why=row.note,
            plan=row.batch,
            outcome=ends.get(row.token, "waiting"),
            solo=row.solo,
        )
        for row in rows[:MAX_STEPS]
    ]


def _investigations(job: dict) -> list[Step]:
    about = Q(job_id=job["id"])
    if job["state"] == "dead":
        about |= Q(
            groups__queue=job["queue"],
            groups__reason=job["reason"],
            groups__code=job["code"],
            at_ms__gte=job["changed_at_ms"],
        )
    rows = Investigation.objects.filter(about).distinct().order_by("-id")[:MAX_STEPS]
    return [
        Step(row.at_ms, "investigated", who=row.by_name, why=row.note, finding=row.finding, comment=row.comment)
        for row in rows
    ]


def _unblocks(job_id: str) -> list[Step]:
    rows = Unblock.objects.filter(job_id=job_id).select_related("by")
    return [Step(row.at_ms, "unblocked", token=row.token, who=row.by.username, why=row.note) for row in rows]
