"""One order's whole life: every step with its token and attempt, who and why for every human step, what comes next."""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.policy.answers import effect_possible
from queue_app.reads import life_steps
from queue_app.reads.life_steps import Part, Step

MAX_BLOCKED = 1_000
MAX_CODES = 2_000  # failures asked whether one of them may have had its effect


@dataclass(frozen=True, slots=True)
class Next:
    """What comes next by itself.

    attempt: at `at_ms`, or as soon as a worker is free when that is past; too_late: the next claim quarantines it, its
    deadline is over; blocked: an ordered queue waits for `job_id`; paused: the queue hands nothing out; lease_end: being
    delivered, from `at_ms` on another worker may take over; overdue: that is past, the next claim takes it over or
    quarantines it; redrive_only: nothing, until people redrive it; nothing: delivered for good.
    """

    kind: str
    at_ms: int | None = None
    job_id: str = ""


@dataclass(frozen=True, slots=True)
class Life:
    """A job as it is, without its payload, and a page of its steps, the oldest first.

    `effect_possible`: some attempt, of the latest 2,000, may have had its effect at the receiver. `held_by`: the open
    plan that holds it. `looked`: somebody investigated it or its group since it died. `blocks`: later orders of an ordered
    queue that wait for this one, up to 1,000. `older`, `newer`: tokens before and after which more steps stand, None
    where there are none.
    """

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
    seq: int
    ordering: str
    paused: bool
    next: Next
    steps: tuple[Step, ...]
    effect_possible: bool
    held_by: int | None
    looked: bool
    unblocked: bool
    blocks: int
    older: int | None
    newer: int | None


_JOB = (
    "id, queue, order_key, quantity, state, reason, code, attempts, max_attempts, token, owner, lease_until, "
    "available_at, deadline, created_at_ms, changed_at_ms, redriven, batch, seq"
)


def life(job_id: str, as_of_ms: int, part: Part = Part()) -> Life | None:  # noqa: B008 - a frozen value
    """The life of one job as of an instant, or None when no job has this id. At most 13 queries, each of few rows."""
    job = _job(job_id)
    if job is None:
        return None
    steps = life_steps.steps(job, part)
    dead = job["state"] == "dead"
    return Life(
        **job,
        next=_next(job, as_of_ms),
        steps=steps.found,
        effect_possible=any(effect_possible(code) for code in life_steps.codes(job_id, MAX_CODES)),
        held_by=steps.held_by,
        looked=steps.looked,
        unblocked=dead and _unblocked(job),
        blocks=_blocks(job),
        older=steps.older,
        newer=steps.newer,
    )


def _unblocked(job: dict[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM unblocks WHERE job_id = %s AND token = %s", [job["id"], job["token"]])
        return cursor.fetchone() is not None


def _job(job_id: str) -> dict[str, Any] | None:
    columns = ", ".join(f"j.{name.strip()}" for name in _JOB.split(","))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns}, q.ordering, q.paused FROM jobs AS j LEFT JOIN queues AS q ON q.name = j.queue "
            "WHERE j.id = %s",
            [job_id],
        )
        row = cursor.fetchone()
        if row is None:
            return None
        job = dict(zip([column[0] for column in cursor.description], row, strict=True))
    return job | {"ordering": job["ordering"] or "independent", "paused": bool(job["paused"])}


@dataclass(frozen=True, slots=True)
class Removed:
    """What is known of a delivered order that housekeeping removed."""

    id: str
    quantity: int
    done_at_ms: int
    removed_at_ms: int


def removed(job_id: str) -> Removed | None:
    """The tombstone of an id, or None."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT job_id, quantity, done_at_ms, removed_at_ms FROM tombstones WHERE job_id = %s", [job_id])
        row = cursor.fetchone()
    return Removed(*row) if row else None


def _next(job: dict[str, Any], as_of_ms: int) -> Next:
    if job["state"] in ("dead", "done"):
        return Next("redrive_only" if job["state"] == "dead" else "nothing")
    if job["state"] == "leased":
        return Next("lease_end" if job["lease_until"] > as_of_ms else "overdue", job["lease_until"])
    if job["paused"]:
        return Next("paused")
    earlier = _waits_for(job)
    if earlier:
        return Next("blocked", job_id=earlier)
    return Next("too_late" if job["deadline"] <= as_of_ms else "attempt", job["available_at"])


def _waits_for(job: dict[str, Any]) -> str:
    """The first earlier unfinished order of the same key, as the claim sees it; '' when there is none."""
    if job["ordering"] != "ordered" or not job["order_key"]:
        return ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.id FROM jobs AS e WHERE e.queue = %s AND e.order_key = %s AND NOT (e.order_key = '') AND e.seq < %s "
            "AND e.state IN ('pending', 'leased', 'dead') AND NOT EXISTS (SELECT 1 FROM unblocks AS u "
            "WHERE u.job_id = e.id AND u.token = e.token AND e.state = 'dead') ORDER BY e.seq LIMIT 1",
            [job["queue"], job["order_key"], job["seq"]],
        )
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def _blocks(job: dict[str, Any]) -> int:
    if job["ordering"] != "ordered" or not job["order_key"] or job["state"] == "done":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 AS one FROM jobs AS l WHERE l.queue = %s AND l.order_key = %s "
            "AND NOT (l.order_key = '') AND l.seq > %s AND l.state IN ('pending', 'leased') LIMIT %s) AS r",
            [job["queue"], job["order_key"], job["seq"], MAX_BLOCKED],
        )
        return int(cursor.fetchone()[0])
