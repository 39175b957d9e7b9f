"""The engine's move out of quarantine for one job (DESIGN sections 4 and 5).

No page, command or API reaches it except through an approved batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from queue_app import conf
from queue_app.policy.errors import Held, NotAllowed, NotDead, UnknownJob, gettext_noop
from queue_app.policy.notes import check_note
from queue_app.policy.orders import MAX_ATTEMPTS, MAX_INSTANT_MS, check_id
from queue_app.services.people import Actor, actor_of, require
from queue_app.store import chain, database, holds, jobs, queues, restarts
from queue_app.store.chain import RedriveRow
from queue_app.store.jobs import JobRow
from queue_app.store.restarts import Candidate


@dataclass(frozen=True, slots=True)
class NewBudget:
    """What a redriven job gets: attempts, and the instant (ms) after which it is too late."""

    max_attempts: int
    deadline: int


@dataclass(frozen=True, slots=True)
class Names:
    """Who asked (None: a program) and who approved, by id; `solo`: the same person, under the setting."""

    requested_by: int | None
    approved_by: int
    solo: bool


@database.retried
def redrive(
    id: str,  # noqa: A002 - DESIGN section 5 names it
    note: str,
    *,
    approved_by: User,
    requested_by: User | None = None,
    batch: int | None = None,
    max_attempts: int | None = None,
    deadline_ms: int | None = None,
    now_ms: int | None = None,
) -> None:
    """Restart one dead job with a new budget, in one transaction with its redrives row and its audit event.

    `requested_by` None: a program asked. `max_attempts` None keeps the job's own, `deadline_ms` (an instant) None grants
    the queue's budget from now. Raises InvalidNote and ValueError before any query; NotAllowed, UnknownJob, NotDead, Held.
    """
    check_note(note)
    check_id(id)
    _check_budget(max_attempts, deadline_ms)
    with database.write():
        now = database.instant(now_ms)
        approver = approver_of(approved_by, requested_by)
        job = _dead(jobs.read(id, lock=True), id)
        held = holds.holders([id], except_plan=batch).get(id)
        if held is not None:
            raise Held(gettext_noop("Order %(job)s is held by redrive R-%(plan)s."), job=id, plan=held)
        policy = queues.policy_of(job.queue)
        budget = NewBudget(
            job.max_attempts if max_attempts is None else max_attempts,
            now + (policy.budget_ms if policy else 0) if deadline_ms is None else deadline_ms,
        )
        row = restart(
            job,
            note,
            budget,
            requested_by=requested_by.pk if requested_by else None,
            approved_by=approver.id,
            batch=batch,
            solo=requested_by is not None and requested_by.pk == approver.id,
            now=now,
        )
        if row is None:
            raise NotDead(gettext_noop("Order %(job)s is not in quarantine any more."), job=id)
        chain.append([approver.event("redrive", f"job:{id}", now, note=note, token=job.token, batch=batch)], [row])


def approver_of(approved_by: User, requested_by: User | None) -> Actor:
    """The approver with the rights of this moment. Raises NotAllowed unless active, a team lead by group, another one."""
    approver = actor_of(approved_by)
    require(approver, "approve")
    if requested_by is not None and requested_by.pk is None:
        raise NotAllowed(gettext_noop("Nobody is signed in."))  # as None it would count as asked by a program
    if requested_by is not None and requested_by.pk == approver.id and not conf.solo_approval():
        raise NotAllowed(gettext_noop("Nobody approves what they asked for themselves."))
    return approver


def restart(
    job: JobRow,
    note: str,
    budget: NewBudget,
    *,
    requested_by: int | None,
    approved_by: int,
    batch: int | None,
    solo: bool,
    now: int,
) -> RedriveRow | None:
    """Dead -> pending inside the caller's transaction; the row to chain, or None when the job moved meanwhile."""
    if not jobs.restart(
        job.id, job.token, max_attempts=budget.max_attempts, deadline=budget.deadline, batch=batch, now_ms=now
    ):
        return None
    return _row(job, note, budget, Names(requested_by, approved_by, solo), batch, now)


def restart_batch(
    found: Sequence[Candidate],
    note: str,
    names: Names,
    *,
    batch: int,
    max_attempts: int | None,
    deadline: int,
    now: int,
) -> list[RedriveRow] | None:
    """Dead -> pending for all of these jobs, which `store.restarts.candidates` holds; the rows to chain.

    None when one of them did not move: the caller rolls back and goes one by one.
    """
    moved = restarts.restart_all(found, max_attempts=max_attempts, deadline=deadline, batch=batch, now_ms=now)
    if moved != len(found):
        return None
    return [
        _row(
            job,
            note,
            NewBudget(job.max_attempts if max_attempts is None else max_attempts, deadline),
            names,
            batch,
            now,
        )
        for job in found
    ]


def _row(
    job: JobRow | Candidate, note: str, budget: NewBudget, names: Names, batch: int | None, now: int
) -> RedriveRow:
    return RedriveRow(
        job_id=job.id,
        token=job.token,
        at_ms=now,
        note=note,
        queue=job.queue,
        reason=job.reason,
        code=job.code,
        old_attempts=job.attempts,
        old_max_attempts=job.max_attempts,
        old_deadline=job.deadline,
        new_max_attempts=budget.max_attempts,
        new_deadline=budget.deadline,
        requested_by=names.requested_by,
        approved_by=names.approved_by,
        batch=batch,
        solo=names.solo,
    )


def _dead(job: JobRow | None, job_id: str) -> JobRow:
    if job is None:
        raise UnknownJob(gettext_noop("No order has the id %(job)s."), job=job_id)
    if job.state != "dead":
        raise NotDead(gettext_noop("Order %(job)s is not in quarantine."), job=job_id)
    return job


def _check_budget(max_attempts: object, deadline_ms: object) -> None:
    limits: Sequence[tuple[str, object, int, int]] = (
        ("max_attempts", max_attempts, 1, MAX_ATTEMPTS),
        ("deadline_ms", deadline_ms, 0, MAX_INSTANT_MS),
    )
    for name, value, low, high in limits:
        if value is not None and (type(value) is not int or not low <= value <= high):
            raise ValueError(f"{name} must be a whole number from {low} to {high:,}, or None.")
