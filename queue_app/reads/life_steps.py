"""The steps of one order's life, from the evidence, a page at a time: one order may have failed 200,000 times.

A page is a run of tokens. What has no token (an investigation) stands on the page that was under way at its instant; what is
true now (being delivered, held, delivered) on the newest, the acceptance on the oldest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.policy.plans import OPEN

TOKENS = 100  # of one page; of each kind of evidence at most one more row is read
MAX_LOOKS = 500  # investigations of one page, the latest
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
class Part:
    """Which page: the newest tokens below `before`, or the oldest above `after`; neither: the newest of all."""

    before: int | None = None
    after: int | None = None


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
    """The steps of one page, the oldest first. `older`: the token before which older ones stand, `newer`: the one after
    which newer ones do, None where there are none. `looked`: an investigation covers the present stay in quarantine;
    `held_by`: the open plan that holds the order."""

    found: tuple[Step, ...]
    older: int | None
    newer: int | None
    looked: bool
    held_by: int | None


@dataclass(frozen=True, slots=True)
class _Stay:
    """One stay in quarantine; `left_ms` None: it lasts."""

    token: int
    reason: str
    code: str
    died_ms: int
    left_ms: int | None


@dataclass(frozen=True, slots=True)
class _Page:
    """The evidence of a run of tokens; `first` and `last` None when no token of the order left any."""

    failures: list[Step]
    redrives: list[Step]
    others: list[Step]
    first: int | None
    last: int | None
    older: bool
    newer: bool


def steps(job: dict[str, Any], part: Part) -> Steps:
    """The steps of a page of a job (its row as a dict). At most nine queries, however much evidence there is."""
    page = _page(job["id"], part)
    stays = _stays(job, page)
    since_ms, until_ms = _span(job["id"], page)
    looks = _looks(job, stays, since_ms, until_ms)
    holds = _holds(job["id"])
    found = [*page.failures, *page.redrives, *page.others, *looks]
    if not page.older:
        found.append(Step(job["created_at_ms"], "accepted"))
    if not page.newer:
        found += [*holds, *_now(job)]
    found += [Step(stay.died_ms, "quarantined", stay.token, reason=stay.reason, code=stay.code) for stay in stays]
    found.sort(key=lambda step: (step.at_ms, step.token or 0, _place(step.kind)))
    return Steps(
        tuple(found),
        older=page.first if page.older else None,
        newer=page.last if page.newer else None,
        looked=job["state"] == "dead" and _looked(job),
        held_by=holds[0].batch if holds else None,
    )


def _place(kind: str) -> int:
    """What a newer version of the product wrote comes last, and is shown as it is."""
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _now(job: dict[str, Any]) -> list[Step]:
    """What the job's own row tells: what it does now, or did at last."""
    if job["state"] == "leased":
        return [Step(job["changed_at_ms"], "attempt", job["token"], job["attempts"], worker=job["owner"] or "")]
    if job["state"] == "done":
        return [Step(job["changed_at_ms"], "delivered", job["token"], job["attempts"])]
    return []


def _page(job_id: str, part: Part) -> _Page:
    """Read a little more than a page of each kind of evidence, and cut all at the same tokens."""
    upwards = part.after is not None
    condition, value = (">", part.after) if part.after is not None else ("<", part.before)
    where = "1 = 1" if value is None else f"x.token {condition} {int(value)}"
    tail = f"AND {where} ORDER BY x.token {'ASC' if upwards else 'DESC'} LIMIT {TOKENS + 1}"
    kinds = [_failures(job_id, tail), _redrives(job_id, tail), _late(job_id, tail), _unblocks(job_id, tail)]
    tokens = sorted({step.token for kind in kinds for step in kind if step.token is not None}, reverse=not upwards)
    shown, more = set(tokens[:TOKENS]), len(tokens) > TOKENS
    failures, redrives, late, unblocks = (
        sorted((step for step in kind if step.token in shown), key=lambda step: step.token or 0) for kind in kinds
    )
    older, newer = (part.after is not None, more) if upwards else (more, part.before is not None)
    first, last = min(shown, default=part.after), max(shown, default=part.before)
    return _Page(failures, redrives, [*late, *unblocks], first, last, older, newer)


def _span(job_id: str, page: _Page) -> tuple[int | None, int | None]:
    """From when to when the page's tokens were under way: each page begins at its first failure. None: without end."""
    until = None
    if page.newer and page.last is not None:
        until = _failed_at(job_id, f"token > {page.last} ORDER BY token ASC")
    since = page.failures[0].at_ms if page.failures else until
    return (since if page.older else None), until


def _failed_at(job_id: str, which: str) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT at_ms FROM failures WHERE job_id = %s AND {which} LIMIT 1", [job_id])
        row = cursor.fetchone()
    return int(row[0]) if row else None


def _stays(job: dict[str, Any], page: _Page) -> list[_Stay]:
    """Each stay in quarantine of the page, the oldest first: those that a redrive ended, and the present one."""
    stays = []
    failures, place = page.failures, -1
    for redrive in page.redrives:
        # Whatever buries a job writes a failure at that instant, at latest under the job's token; only a job whose lost
        # token had an unknown outcome already shows that earlier instant.
        token = redrive.token or 0
        while place + 1 < len(failures) and (failures[place + 1].token or 0) <= token:
            place += 1
        died_ms = failures[place].at_ms if place >= 0 else None
        if died_ms is None:
            died_ms = _failed_at(job["id"], f"token <= {token} ORDER BY token DESC")
        stays.append(
            _Stay(
                token, redrive.reason, redrive.code, job["created_at_ms"] if died_ms is None else died_ms, redrive.at_ms
            )
        )
    if job["state"] == "dead" and not page.newer:
        stays.append(_Stay(job["token"], job["reason"], job["code"], job["changed_at_ms"], None))
    return stays


def _rows(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(values))
        return cursor.fetchall()


def _failures(job_id: str, tail: str) -> list[Step]:
    sql = f"SELECT at_ms, outcome, token, attempt, code, worker FROM failures AS x WHERE job_id = %s {tail}"
    return [
        Step(at_ms, outcome, token, attempt, code=code, worker=worker)
        for at_ms, outcome, token, attempt, code, worker in _rows(sql, [job_id])
    ]


def _late(job_id: str, tail: str) -> list[Step]:
    sql = f"SELECT at_ms, token, outcome FROM late_finishes AS x WHERE job_id = %s {tail}"
    return [Step(at_ms, "late_finish", token, outcome=outcome) for at_ms, token, outcome in _rows(sql, [job_id])]


def _redrives(job_id: str, tail: str) -> list[Step]:
    sql = (
        "SELECT x.at_ms, x.token, x.reason, x.code, x.note, a.username, p.username, x.batch, x.solo, o.outcome "
        "FROM redrives AS x LEFT JOIN auth_user AS a ON a.id = x.requested_by_id "
        "JOIN auth_user AS p ON p.id = x.approved_by_id "
        "LEFT JOIN redrive_outcomes AS o ON o.job_id = x.job_id AND o.token = x.token "
        f"WHERE x.job_id = %s {tail}"
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


def _unblocks(job_id: str, tail: str) -> list[Step]:
    sql = (
        "SELECT x.at_ms, x.token, x.note, p.username FROM unblocks AS x JOIN auth_user AS p ON p.id = x.by_id "
        f"WHERE x.job_id = %s {tail}"
    )
    return [Step(at_ms, "unblocked", token, note=note, by=by) for at_ms, token, note, by in _rows(sql, [job_id])]


def _looks(job: dict[str, Any], stays: Sequence[_Stay], since_ms: int | None, until_ms: int | None) -> list[Step]:
    """Investigations of the job, and those of its group that were recorded while it was in quarantine, of the page."""
    columns = "i.at_ms, i.as_of_ms, i.by_name, i.note, i.finding, i.comment, i.scope"
    groups = " OR ".join(["(g.reason = %s AND g.code = %s AND i.as_of_ms > %s)"] * len(stays)) or "1 = 0"
    values = [value for stay in stays for value in (stay.reason, stay.code, stay.died_ms)]
    span = ("" if since_ms is None else f" AND i.at_ms >= {int(since_ms)}") + (
        "" if until_ms is None else f" AND i.at_ms < {int(until_ms)}"
    )
    sql = (
        f"SELECT {columns}, '' AS reason, '' AS code, i.id FROM investigations AS i "
        f"WHERE i.job_id = %s AND i.job_id <> ''{span} UNION ALL "
        f"SELECT {columns}, g.reason, g.code, i.id FROM investigated_groups AS g JOIN investigations AS i "
        f"ON i.id = g.investigation_id WHERE g.queue = %s AND ({groups}){span} ORDER BY 10 DESC LIMIT {MAX_LOOKS}"
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


def _looked(job: dict[str, Any]) -> bool:
    """Whether somebody looked at this order or its group since it died."""
    sql = (
        "SELECT 1 FROM investigations WHERE job_id = %s AND job_id <> '' AND at_ms > %s UNION ALL "
        "SELECT 1 FROM investigated_groups AS g JOIN investigations AS i ON i.id = g.investigation_id "
        "WHERE g.queue = %s AND g.reason = %s AND g.code = %s AND i.as_of_ms > %s AND i.at_ms > %s LIMIT 1"
    )
    died_ms = job["changed_at_ms"]
    values = [job["id"], died_ms, job["queue"], job["reason"], job["code"], died_ms, died_ms]
    return bool(_rows(sql, values))


def codes(job_id: str, limit: int) -> set[str]:
    """The codes of the order's latest failures."""
    sql = (
        "SELECT DISTINCT code FROM (SELECT code FROM failures WHERE job_id = %s ORDER BY token DESC LIMIT %s) AS latest"
    )
    return {row[0] for row in _rows(sql, [job_id, limit])}


def _holds(job_id: str) -> list[Step]:
    sql = (
        "SELECT p.created_at_ms, p.id, p.note, a.username, p.state FROM holds AS h JOIN plans AS p ON p.id = h.plan_id "
        f"LEFT JOIN auth_user AS a ON a.id = p.requested_by_id WHERE h.job_id = %s AND p.state IN "
        f"({', '.join(['%s'] * len(OPEN))}) LIMIT 1"
    )
    return [
        Step(at_ms, "held", note=note, by=by or "", batch=plan, outcome=state)
        for at_ms, plan, note, by, state in _rows(sql, [job_id, *OPEN])
    ]
