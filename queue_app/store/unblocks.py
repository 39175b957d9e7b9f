"""The rows of `unblocks`: later orders of an ordered queue may pass this dead one. Insert-only."""

from django.db import connection

from queue_app.models import Unblock


def of(job_id: str, token: int) -> tuple[str, int] | None:
    """Who unblocked the job at this token (the name of now) and when, or None."""
    return Unblock.objects.filter(job_id=job_id, token=token).values_list("by__username", "at_ms").first()


def add(job_id: str, token: int, *, at_ms: int, note: str, by: int) -> bool:
    """Let later orders pass the job at this token. The caller holds its row; False when that was recorded before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO unblocks (job_id, token, at_ms, note, by_id) SELECT %s, %s, %s, %s, %s "
            "WHERE EXISTS (SELECT 1 FROM jobs WHERE id = %s AND token = %s AND state = 'dead') "
            "AND NOT EXISTS (SELECT 1 FROM unblocks WHERE job_id = %s AND token = %s)",
            [job_id, token, at_ms, note, by, job_id, token, job_id, token],
        )
        return cursor.rowcount == 1
