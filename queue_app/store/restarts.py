"""Dead -> pending for many jobs of one batch at once: the same guarded move as `jobs.restart`, without their bodies."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from queue_app.store.database import is_postgresql, placeholders


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a redrive needs to know of a job, which may be in any state."""

    id: str
    state: str
    token: int
    queue: str
    reason: str
    code: str
    attempts: int
    max_attempts: int
    deadline: int
    changed_at_ms: int


_COLUMNS = "id, state, token, queue, reason, code, attempts, max_attempts, deadline, changed_at_ms"


def candidates(job_ids: Sequence[str]) -> tuple[dict[str, Candidate], set[str]]:
    """The jobs that exist, held until the transaction ends, and the ids of those that somebody else holds just now."""
    if not job_ids:
        return {}, set()
    wanted = f"FROM jobs WHERE id IN ({placeholders(len(job_ids))})"
    lock = " ORDER BY id FOR UPDATE SKIP LOCKED" if is_postgresql() else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} {wanted}{lock}", list(job_ids))
        found = {row[0]: Candidate(*row) for row in cursor.fetchall()}
        if not is_postgresql() or len(found) == len(job_ids):
            return found, set()
        cursor.execute(f"SELECT id {wanted}", list(job_ids))
        return found, {job_id for (job_id,) in cursor.fetchall()} - set(found)


def restart_all(jobs: Sequence[Candidate], *, max_attempts: int | None, deadline: int, batch: int, now_ms: int) -> int:
    """Restart jobs that `candidates` holds as dead; how many moved. `max_attempts` None keeps each job's own."""
    if not jobs:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET state = 'pending', reason = '', code = '', attempts = 0, "
            "max_attempts = coalesce(%s, max_attempts), deadline = %s, available_at = %s, waited_ms = 0, "
            "redriven = redriven + 1, batch = %s, changed_at_ms = %s "
            f"WHERE id IN ({placeholders(len(jobs))}) AND state = 'dead'",
            [max_attempts, deadline, now_ms, batch, now_ms, *[job.id for job in jobs]],
        )
        return cursor.rowcount
