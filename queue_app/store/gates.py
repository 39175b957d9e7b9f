"""The rows of `gates`: the bucket of a queue's delivery rate and its breaker, shared by all workers and hosts."""

from dataclasses import dataclass

from django.db import connection

from queue_app.policy.breakers import Breaker
from queue_app.policy.buckets import Bucket
from queue_app.store.database import is_postgresql

_COLUMNS = (
    "level_uj, level_at_ms, breaker, failed_in_row, since_ms, probe_at_ms, probe_job, probe_token, silent_since_ms, "
    "probes_failed"
)

_FULL = Bucket(0, 0)  # so old that the first look finds it full
_CLOSED = Breaker()


@dataclass(frozen=True, slots=True)
class Gate:
    """A queue's gate as read inside a transaction; also what stands for a queue that has no row yet."""

    queue: str
    bucket: Bucket = _FULL
    breaker: Breaker = _CLOSED


def troubled(queue: str) -> str:
    """SQL: whether there is more to ask of the gate of the queue that this expression names than its rate: its breaker
    is not closed, or some deliveries have failed since its last answer. A claim and an end of all that is well ask no
    more."""
    return (
        f"EXISTS (SELECT 1 FROM gates WHERE gates.queue = {queue} "
        "AND (gates.breaker <> 'closed' OR gates.failed_in_row > 0))"
    )


def read(queue: str) -> Gate:
    """The gate as it stands now; nobody waits for anybody."""
    return _read(queue, "") or Gate(queue)


def locked(queue: str) -> Gate:
    """The gate, made if there is none, and held until the transaction ends; SQLite's write transaction holds everything."""
    suffix = " FOR UPDATE" if is_postgresql() else ""
    found = _read(queue, suffix)
    if found is None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO gates (queue, level_uj, level_at_ms, breaker, failed_in_row, since_ms, probe_job, "
                "probe_token, probes_failed) VALUES (%s, 0, 0, 'closed', 0, 0, '', 0, 0) ON CONFLICT (queue) DO NOTHING",
                [queue],
            )
        found = _read(queue, suffix)
    if found is None:
        raise RuntimeError(f"The gate of {queue} is gone inside the transaction that made it.")
    return found


def _read(queue: str, suffix: str) -> Gate | None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM gates WHERE queue = %s{suffix}", [queue])
        row = cursor.fetchone()
    return Gate(queue, Bucket(row[0], row[1]), Breaker(*row[2:])) if row else None


def spend(gate: Gate, bucket: Bucket) -> bool:
    """Write the bucket after a claim. False when somebody else took from it since it was read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE gates SET level_uj = %s, level_at_ms = %s WHERE queue = %s AND level_uj = %s AND level_at_ms = %s",
            [bucket.level_uj, bucket.at_ms, gate.queue, gate.bucket.level_uj, gate.bucket.at_ms],
        )
        return cursor.rowcount == 1


def move(gate: Gate, breaker: Breaker) -> bool:
    """Write the breaker's next state. False when it moved since it was read."""
    old = gate.breaker
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE gates SET breaker = %s, failed_in_row = %s, since_ms = %s, probe_at_ms = %s, probe_job = %s, "
            "probe_token = %s, silent_since_ms = %s, probes_failed = %s WHERE queue = %s AND breaker = %s "
            "AND failed_in_row = %s AND probe_job = %s AND probe_token = %s",
            [
                breaker.state,
                breaker.failed_in_row,
                breaker.since_ms,
                breaker.probe_at_ms,
                breaker.probe_job,
                breaker.probe_token,
                breaker.silent_since_ms,
                breaker.probes_failed,
                gate.queue,
                old.state,
                old.failed_in_row,
                old.probe_job,
                old.probe_token,
            ],
        )
        return cursor.rowcount == 1


def is_leased(job_id: str, token: int, now_ms: int) -> bool:
    """Whether this very lease still runs: the job is leased with this token, and its time is not over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM jobs WHERE id = %s AND token = %s AND state = 'leased' AND lease_until > %s",
            [job_id, token, now_ms],
        )
        return cursor.fetchone() is not None
