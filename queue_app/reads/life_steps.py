"""The steps of one order's life, from the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.policy.plans import OPEN

MAX_ROWS = 500  # of each kind of evidence the latest are shown
FAILURES = ("retry", "permanent", "unknown", "lease_expired", "deadline_passed")
_ORDER = (
    "accepted",
    *FAILURES,
    "delivered",
    "quarantined",
    "unblocked",
    "investigated",
    "held",
    "redriven",
    "attempt",
    "late_finish",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `at_ms`, `kind`, and what that kind fills:

    accepted · attempt (being delivered now: token, attempt, worker) · retry, permanent, unknown, lease_expired,
    deadline_passed (how an attempt failed: token, attempt, code, worker) · delivered (token, attempt) · quarantined (token,
    reason, code) · late_finish (token, outcome: what was refused) · redriven (token, reason and code before, note, by: who
    asked or '' for a program, approved_by, batch, solo, outcome: waiting, done, dead_same or dead_other) · investigated
    (by, note, finding, comment, scope) · unblocked (token, by, note) · held (batch: the open plan, by, note, outcome: its
    state).
    """

    at_ms: int
    kind: str
    token: int | None = None
    attempt: int | None = None
    reason: str = ""
    code: str = ""
    worker: str = ""
    by: str = ""
    approved_by: str = ""
    note: str = ""
    finding: str = ""
    comment: str = ""
    scope: str = ""
    batch: int | None = None
    outcome: str = ""
    solo: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps, the oldest first; `looked`: an investigation covers the present stay in quarantine."""

    found: tuple[Step, ...]
    looked: bool
    shortened: bool


@dataclass(frozen=True, slots=True)
class _Stay:
    """One stay in quarantine; `left_ms` None: it lasts."""

    token: int
    reason: str
    code: str
    died_ms: int
    left_ms: int | None


def steps(job: dict[str, Any]) -> Steps:
    """The steps of a job (its row as a dict). Six queries."""
    failures, redrives = _failures(job["id"]), _redrives(job["id"])
    stays = _stays(job, failures, redrives)
    looks = _looks(job, stays)
    parts = [failures, redrives, looks, _late(job["id"]), _unblocks(job["id"]), _holds(job["id"])]
    found = [step for part in parts for step in part] + _own(job)
    found += [Step(stay.died_ms, "quarantined", stay.token, reason=stay.reason, code=stay.code) for stay in stays]
    found.sort(key=lambda step: (step.at_ms, step.token or 0, _ORDER.index(step.kind)))
    present = stays[-1].died_ms if stays and stays[-1].left_ms is None else None
    looked = present is not None and any(step.at_ms > present for step in looks)
    return Steps(tuple(found), looked, any(len(part) >= MAX_ROWS for part in parts))


def _own(job: dict[str, Any]) -> list[Step]:
    """What the job's own row tells: when it came, and what it does now."""
    found = [Step(job["created_at_ms"], "accepted")]
    if job["state"] == "leased":
        found.append(Step(job["changed_at_ms"], "attempt", job["token"], job["attempts"], worker=job["owner"] or ""))
    if job["state"] == "done":
        found.append(Step(job["changed_at_ms"], "delivered", job["token"], job["attempts"]))
    return found


def _stays(job: dict[str, Any], failures: Sequence[Step], redrives: Sequence[Step]) -> list[_Stay]:
    """Each stay in quarantine, the oldest first: those that a redrive ended, and the present one."""
    stays = []
    for redrive in redrives:
        # Whatever buries a job writes a failure at that instant, at latest under the job's token; only a job whose lost
        # token had an unknown outcome already shows that earlier instant.
        died = [failure.at_ms for failure in failures if (failure.token or 0) <= (redrive.token or 0)]
        died_ms = max(died, default=job["created_at_ms"])
        stays.append(_Stay(redrive.token or 0, redrive.reason, redrive.code, died_ms, redrive.at_ms))
    if job["state"] == "dead":
        stays.append(_Stay(job["token"], job["reason"], job["code"], job["changed_at_ms"], None))
    return stays


def _rows(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} LIMIT {MAX_ROWS}", list(values))
        return cursor.fetchall()[::-1]


def _failures(job_id: str) -> list[Step]:
    sql = "SELECT at_ms, outcome, token, attempt, code, worker FROM failures WHERE job_id = %s ORDER BY token DESC"
    return [
        Step(at_ms, outcome, token, attempt, code=code, worker=worker)
        for at_ms, outcome, token, attempt, code, worker in _rows(sql, [job_id])
    ]


def _late(job_id: str) -> list[Step]:
    sql = "SELECT at_ms, token, outcome FROM late_finishes WHERE job_id = %s ORDER BY token DESC"
    return [Step(at_ms, "late_finish", token, outcome=outcome) for at_ms, token, outcome in _rows(sql, [job_id])]


def _redrives(job_id: str) -> list[Step]:
    sql = (
        "SELECT r.at_ms, r.token, r.reason, r.code, r.note, a.username, p.username, r.batch, r.solo, o.outcome "
        "FROM redrives AS r LEFT JOIN auth_user AS a ON a.id = r.requested_by_id "
        "JOIN auth_user AS p ON p.id = r.approved_by_id "
        "LEFT JOIN redrive_outcomes AS o ON o.job_id = r.job_id AND o.token = r.token "
        "WHERE r.job_id = %s ORDER BY r.token DESC"
    )
    return [
        Step(
            at_ms,
            "redriven",
            token,
            reason=reason,
            code=code,
            note=note,
            by=asked or "",
            approved_by=approved,
            batch=batch,
            solo=bool(solo),
            outcome=outcome or "waiting",
        )
        for at_ms, token, reason, code, note, asked, approved, batch, solo, outcome in _rows(sql, [job_id])
    ]


def _looks(job: dict[str, Any], stays: Sequence[_Stay]) -> list[Step]:
    """Investigations of the job, and those of its group that were recorded while it was in quarantine."""
    columns = "i.at_ms, i.as_of_ms, i.by_name, i.note, i.finding, i.comment, i.scope"
    groups = " OR ".join(["(g.reason = %s AND g.code = %s AND i.as_of_ms > %s)"] * len(stays)) or "1 = 0"
    values = [value for stay in stays for value in (stay.reason, stay.code, stay.died_ms)]
    sql = (
        f"SELECT {columns}, '' AS reason, '' AS code, i.id FROM investigations AS i "
        "WHERE i.job_id = %s AND i.job_id <> '' UNION ALL "
        f"SELECT {columns}, g.reason, g.code, i.id FROM investigated_groups AS g JOIN investigations AS i "
        f"ON i.id = g.investigation_id WHERE g.queue = %s AND ({groups}) ORDER BY 10 DESC"
    )
    found = []
    for at_ms, as_of_ms, by, note, finding, comment, scope, reason, code, _ in _rows(
        sql, [job["id"], job["queue"], *values]
    ):
        if scope == "job" or any(_covers(stay, reason, code, as_of_ms, at_ms) for stay in stays):
            found.append(Step(at_ms, "investigated", by=by, note=note, finding=finding, comment=comment, scope=scope))
    return found


def _covers(stay: _Stay, reason: str, code: str, as_of_ms: int, at_ms: int) -> bool:
    of_group = (stay.reason, stay.code) == (reason, code)
    return of_group and stay.died_ms < as_of_ms and (stay.left_ms is None or at_ms <= stay.left_ms)


def _unblocks(job_id: str) -> list[Step]:
    sql = (
        "SELECT u.at_ms, u.token, u.note, p.username FROM unblocks AS u JOIN auth_user AS p ON p.id = u.by_id "
        "WHERE u.job_id = %s ORDER BY u.token DESC"
    )
    return [Step(at_ms, "unblocked", token, note=note, by=by) for at_ms, token, note, by in _rows(sql, [job_id])]


def _holds(job_id: str) -> list[Step]:
    sql = (
        "SELECT p.created_at_ms, p.id, p.note, a.username, p.state FROM holds AS h JOIN plans AS p ON p.id = h.plan_id "
        f"LEFT JOIN auth_user AS a ON a.id = p.requested_by_id WHERE h.job_id = %s AND p.state IN "
        f"({', '.join(['%s'] * len(OPEN))})"
    )
    return [
        Step(at_ms, "held", note=note, by=by or "", batch=plan, outcome=state)
        for at_ms, plan, note, by, state in _rows(sql, [job_id, *OPEN])
    ]
