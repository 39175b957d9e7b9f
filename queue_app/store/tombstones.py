"""What stays of a delivered order that was removed: its id is known for ever (insert-only)."""

from collections.abc import Sequence

from django.db import connection

from queue_app.policy.bodies import body_digest
from queue_app.policy.retention import DoneJob


def bury(removed: Sequence[DoneJob], now_ms: int) -> None:
    """One tombstone for each, in the transaction that removes them."""
    rows: list[tuple[str | int, ...]] = []
    for job in sorted(removed, key=lambda one: one.id):
        digest = body_digest(job.queue, job.quantity, job.payload, job.order_key)
        rows.append((job.id, digest, job.quantity, job.done_at_ms, now_ms, job.id))
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO tombstones (job_id, body_digest, quantity, done_at_ms, removed_at_ms) SELECT %s, %s, %s, %s, %s "
            "WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE job_id = %s)",
            rows,
        )
