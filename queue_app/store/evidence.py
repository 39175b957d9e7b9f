"""Rows that are only ever added: failures, refused finishes, results of redrives.

Each takes as many rows as there are in one statement.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import connection

from queue_app.store.database import is_postgresql
from queue_app.store.given import Given
from queue_app.store.statements import fetch


def _slot() -> str:
    return "pg_backend_pid()" if is_postgresql() else "0"


class FailureRow(NamedTuple):
    """One failed or lost attempt, to be written."""

    job_id: str
    token: int
    attempt: int
    outcome: str
    code: str
    worker: str


_FAILURES = Given("job_id text, token bigint, attempt integer, outcome text, code text, worker text")


def add_failures(rows: Sequence[FailureRow], at_ms: int) -> set[tuple[str, int]]:
    """Record failures, one a job and token; the (job, token) of those whose token had told nothing yet.

    The caller has guarded the jobs' rows before.
    """
    if not rows:
        return set()
    written = fetch(
        "INSERT INTO failures (job_id, token, attempt, at_ms, outcome, code, worker) "
        f"SELECT g.job_id, g.token, g.attempt, %s, g.outcome, g.code, g.worker FROM {_FAILURES.table} "
        "WHERE NOT EXISTS (SELECT 1 FROM failures AS f WHERE f.job_id = g.job_id AND f.token = g.token) "
        "RETURNING job_id, token",
        [at_ms, *_FAILURES.values(rows)],
    )
    return {(job_id, token) for job_id, token in written}


_NAMED = Given("name text")


def last_codes(job_ids: Iterable[str]) -> dict[str, str]:
    """The code of each job's last failure by id; '' or absent when there is none or it gave none."""
    if not (wanted := sorted(job_ids)):
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT f.job_id, f.code FROM {_NAMED.table} JOIN failures AS f ON f.job_id = g.name "
            "WHERE f.token = (SELECT max(l.token) FROM failures AS l WHERE l.job_id = g.name)",
            _NAMED.values([(name,) for name in wanted]),
        )
        return dict(cursor.fetchall())


_LATE = Given("job_id text, token bigint, outcome text")


def note_late_finishes(late: Sequence[tuple[str, int, str]], at_ms: int) -> None:
    """Count finishes (id, token, outcome) refused by their token, and keep the first of each token as evidence."""
    if not late:
        return
    firsts = {(job_id, token): (job_id, token, outcome) for job_id, token, outcome in reversed(late)}
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO late_finishes (job_id, token, at_ms, outcome) "
            f"SELECT g.job_id, g.token, %s, g.outcome FROM {_LATE.table} WHERE NOT EXISTS "
            "(SELECT 1 FROM late_finishes AS l WHERE l.job_id = g.job_id AND l.token = g.token)"
            + (" ON CONFLICT DO NOTHING" if is_postgresql() else ""),
            [at_ms, *_LATE.values(list(firsts.values()))],
        )
    tally("late_finish", len(late))


def tally(name: str, n: int = 1) -> None:
    """Add to a plain count."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO tallies AS t (name, slot, n) VALUES (%s, {_slot()}, %s) "
            "ON CONFLICT (name, slot) DO UPDATE SET n = t.n + excluded.n",
            [name, n],
        )


class End(NamedTuple):
    """A job that is done or dead, and by which token."""

    job_id: str
    state: str
    reason: str
    code: str
    token: int


_ENDS = Given("job_id text, state text, reason text, code text, token bigint")


def add_redrive_outcomes(ends: Sequence[End], at_ms: int) -> None:
    """Record the first end after each job's last redrive; jobs never redriven and later ends change nothing."""
    if not ends:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO redrive_outcomes (job_id, token, queue, batch, was_reason, was_code, outcome, reason, code, "
            "end_token, at_ms) SELECT r.job_id, r.token, r.queue, r.batch, r.reason, r.code, "
            "CASE WHEN g.state = 'done' THEN 'done' WHEN r.reason = g.reason AND r.code = g.code THEN 'dead_same' "
            f"ELSE 'dead_other' END, g.reason, g.code, g.token, %s FROM {_ENDS.table} JOIN redrives AS r "
            "ON r.job_id = g.job_id WHERE r.token = (SELECT max(l.token) FROM redrives AS l WHERE l.job_id = g.job_id) "
            "AND NOT EXISTS (SELECT 1 FROM redrive_outcomes AS o WHERE o.job_id = r.job_id AND o.token = r.token)",
            [at_ms, *_ENDS.values(ends)],
        )
