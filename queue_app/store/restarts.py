"""Dead -> pending for many jobs of one batch at once: the same guarded move as `jobs.restart`, without their bodies."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from queue_app.store.database import is_postgresql
from queue_app.store.given import Given
from queue_app.store.statements import fetch


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


_COLUMNS = ", ".join(f"jobs.{field.name}" for field in fields(Candidate))
_NAMED = Given("name text")


def candidates(job_ids: Sequence[str]) -> tuple[dict[str, Candidate], set[str]]:
    """The jobs that exist, held until the transaction ends, and the ids of those that somebody else holds just now."""
    if not job_ids:
        return {}, set()
    wanted = f"FROM {_NAMED.table} JOIN jobs ON jobs.id = g.name"
    values = _NAMED.values([(job_id,) for job_id in job_ids])
    lock = " ORDER BY jobs.id FOR UPDATE OF jobs SKIP LOCKED" if is_postgresql() else ""
    found = {row[0]: Candidate(*row) for row in fetch(f"SELECT {_COLUMNS} {wanted}{lock}", values)}
    if not is_postgresql() or len(found) == len(job_ids):
        return found, set()
    return found, {job_id for (job_id,) in fetch(f"SELECT jobs.id {wanted}", values)} - set(found)


_PROOF = Given("id text, token bigint")


def restart_all(jobs: Sequence[Candidate], *, max_attempts: int | None, deadline: int, batch: int, now_ms: int) -> int:
    """Restart jobs that `candidates` holds as dead; how many moved. `max_attempts` None keeps each job's own."""
    if not jobs:
        return 0
    moved = fetch(
        "UPDATE jobs SET state = 'pending', reason = '', code = '', attempts = 0, "
        "max_attempts = coalesce(CAST(%s AS integer), jobs.max_attempts), deadline = %s, available_at = %s, waited_ms = 0, "
        f"redriven = jobs.redriven + 1, batch = %s, changed_at_ms = %s FROM {_PROOF.table} "
        "WHERE jobs.id = g.id AND jobs.state = 'dead' AND jobs.token = g.token RETURNING jobs.id",
        [max_attempts, deadline, now_ms, batch, now_ms, *_PROOF.values([(job.id, job.token) for job in jobs])],
    )
    return len(moved)
