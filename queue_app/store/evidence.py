"""Rows that are only ever added: failures, refused finishes, results of redrives, tombstones' answers."""

from django.db import connection

from queue_app.store.database import is_postgresql, placeholders


def _slot() -> str:
    return "pg_backend_pid()" if is_postgresql() else "0"


def add_failure(
    job_id: str, token: int, *, attempt: int, at_ms: int, outcome: str, code: str = "", worker: str = ""
) -> bool:
    """Record one failure unless this token has one already. The caller has guarded the job's row before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO failures (job_id, token, attempt, at_ms, outcome, code, worker) "
            "SELECT %s, %s, %s, %s, %s, %s, %s "
            "WHERE NOT EXISTS (SELECT 1 FROM failures WHERE job_id = %s AND token = %s)",
            [job_id, token, attempt, at_ms, outcome, code, worker, job_id, token],
        )
        return cursor.rowcount == 1


def last_code(job_id: str) -> str:
    """The code of the job's last failure, '' when there is none or it gave none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT code FROM failures WHERE job_id = %s ORDER BY token DESC LIMIT 1", [job_id])
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def note_late_finish(job_id: str, token: int, outcome: str, at_ms: int) -> None:
    """Count a finish refused by its token, and keep the first of each token as evidence."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO late_finishes (job_id, token, at_ms, outcome) SELECT %s, %s, %s, %s "
            "WHERE NOT EXISTS (SELECT 1 FROM late_finishes WHERE job_id = %s AND token = %s)"
            + (" ON CONFLICT DO NOTHING" if is_postgresql() else ""),
            [job_id, token, at_ms, outcome, job_id, token],
        )
    tally("late_finish")


def tally(name: str, n: int = 1) -> None:
    """Add to a plain count."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO tallies AS t (name, slot, n) VALUES (%s, {_slot()}, %s) "
            "ON CONFLICT (name, slot) DO UPDATE SET n = t.n + excluded.n",
            [name, n],
        )


def add_redrive_outcome(job_id: str, *, state: str, reason: str, code: str, end_token: int, at_ms: int) -> bool:
    """Record the first end (done or dead) after the job's last redrive; later ends change nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO redrive_outcomes (job_id, token, queue, batch, was_reason, was_code, outcome, reason, code, "
            "end_token, at_ms) SELECT r.job_id, r.token, r.queue, r.batch, r.reason, r.code, "
            "CASE WHEN %s = 'done' THEN 'done' WHEN r.reason = %s AND r.code = %s THEN 'dead_same' "
            "ELSE 'dead_other' END, %s, %s, %s, %s FROM redrives AS r WHERE r.job_id = %s AND r.token = "
            "(SELECT max(token) FROM redrives WHERE job_id = %s) AND NOT EXISTS "
            "(SELECT 1 FROM redrive_outcomes AS o WHERE o.job_id = r.job_id AND o.token = r.token)",
            [state, reason, code, reason, code, end_token, at_ms, job_id, job_id],
        )
        return cursor.rowcount == 1


def buried_bodies(job_ids: list[str]) -> dict[str, str]:
    """Body digests of done jobs that housekeeping removed, by id."""
    if not job_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT job_id, body_digest FROM tombstones WHERE job_id IN ({placeholders(len(job_ids))})", job_ids
        )
        return dict(cursor.fetchall())
