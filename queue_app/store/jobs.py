"""Guarded moves of jobs. Every update names the old state and the old token; a count other than one is an answer.

The rules themselves (when, why, how long) are in `queue_app.policy`; the transaction belongs to the service.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import batched

from django.db import connection

from queue_app.policy.decisions import Spent
from queue_app.policy.orders import Order
from queue_app.store.database import NAMES_PER_STATEMENT, is_postgresql, placeholders

_COLUMNS = (
    "id, queue, quantity, payload, order_key, state, reason, code, attempts, max_attempts, token, owner, lease_until, "
    "available_at, deadline, changed_at_ms, redriven, batch, waited_ms"
)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as read inside a transaction."""

    id: str
    queue: str
    quantity: int
    payload: str
    order_key: str
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
    changed_at_ms: int
    redriven: int
    batch: int | None
    waited_ms: int

    @property
    def spent(self) -> Spent:
        """What of its budget the job has used."""
        return Spent(self.attempts, self.max_attempts, self.waited_ms, self.deadline)


def read(job_id: str, *, lock: bool = False) -> JobRow | None:
    """The job, or None. `lock` holds its row on PostgreSQL; SQLite's write transaction holds everything anyway."""
    suffix = " FOR UPDATE" if lock and is_postgresql() else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = %s{suffix}", [job_id])
        row = cursor.fetchone()
    return JobRow(*row) if row else None


def read_many(job_ids: Sequence[str], *, lock: bool = False) -> dict[str, JobRow]:
    """Jobs by id, those that exist; locked in id order on PostgreSQL so that two callers cannot deadlock."""
    suffix = " ORDER BY id FOR UPDATE" if lock and is_postgresql() else ""
    found: dict[str, JobRow] = {}
    with connection.cursor() as cursor:
        for some in batched(sorted(job_ids), NAMES_PER_STATEMENT, strict=False):
            cursor.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id IN ({placeholders(len(some))}){suffix}", list(some))
            found |= {row[0]: JobRow(*row) for row in cursor.fetchall()}
    return found


# --- accepting ------------------------------------------------------------------------------------------------------


def next_seqs(count: int) -> list[int]:
    """Reserve `count` places in the order of acceptance, ascending. Other hosts may draw places in between."""
    with connection.cursor() as cursor:
        if is_postgresql():
            cursor.execute("SELECT nextval('jobs_seq') FROM generate_series(1, %s)", [count])
            return sorted(row[0] for row in cursor.fetchall())
        cursor.execute("UPDATE heads SET seq = seq + %s WHERE name = 'jobs' RETURNING seq", [count])
        last = int(cursor.fetchone()[0])
    return list(range(last - count + 1, last + 1))


def insert(orders: Sequence[Order], seqs: Sequence[int], limits: Sequence[tuple[int, int]], now_ms: int) -> list[str]:
    """Insert orders as pending; `limits` are (max_attempts, deadline). Returns the ids that were placed.

    The caller has looked which ids are new. On PostgreSQL another host may have been faster: then the id is passed over.
    In id order, so that two hosts that accept the same ids in different orders wait for each other without a deadlock.
    """
    placed: list[str] = []
    rows = sorted(zip(orders, seqs, limits, strict=True), key=lambda row: row[0].id)
    with connection.cursor() as cursor:
        for order, seq, (max_attempts, deadline) in rows:
            cursor.execute(
                "INSERT INTO jobs (id, seq, queue, order_key, quantity, payload, state, reason, code, attempts, "
                "max_attempts, token, available_at, deadline, created_at_ms, changed_at_ms, redriven, waited_ms) "
                "VALUES (%s, %s, %s, %s, %s, %s, 'pending', '', '', 0, %s, 0, %s, %s, %s, %s, 0, 0)"
                + (" ON CONFLICT (id) DO NOTHING" if is_postgresql() else ""),
                [
                    order.id,
                    seq,
                    order.queue,
                    order.order_key,
                    order.quantity,
                    order.payload,
                    max_attempts,
                    now_ms,
                    deadline,
                    now_ms,
                    now_ms,
                ],
            )
            if cursor.rowcount == 1:
                placed.append(order.id)
    return placed


# --- handing out ----------------------------------------------------------------------------------------------------

_DUE = (
    "SELECT {columns} FROM jobs AS j WHERE j.queue = %s AND j.state IN ('pending', 'leased') AND j.available_at <= %s "
    "AND (j.state = 'pending' OR j.lease_until <= %s)"
)
_NOT_BLOCKED = (
    " AND (j.order_key = '' OR NOT EXISTS (SELECT 1 FROM jobs AS e WHERE e.queue = j.queue AND e.order_key = "
    "j.order_key AND e.seq < j.seq AND e.state IN ('pending', 'leased', 'dead') AND e.order_key <> '' AND NOT EXISTS "
    "(SELECT 1 FROM unblocks AS u WHERE u.job_id = e.id AND u.token = e.token AND e.state = 'dead')))"
)
_HAS_BUDGET = " AND j.attempts < j.max_attempts AND j.deadline > %s"


def due(queue: str, now_ms: int, limit: int, *, ordered: bool, with_budget: bool = False) -> list[JobRow]:
    """Up to `limit` due jobs by (available_at, seq), locked on PostgreSQL and passing over what others hold.

    `ordered` leaves out jobs behind an earlier unfinished one of the same key; `with_budget` leaves out those to bury.
    """
    columns = ", ".join(f"j.{column.strip()}" for column in _COLUMNS.split(","))
    sql = _DUE.format(columns=columns) + (_NOT_BLOCKED if ordered else "") + (_HAS_BUDGET if with_budget else "")
    sql += " ORDER BY j.available_at, j.seq LIMIT %s"
    if is_postgresql():
        sql += " FOR UPDATE OF j SKIP LOCKED"
    values: list[int | str] = [queue, now_ms, now_ms, *([now_ms] if with_budget else []), limit]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [JobRow(*row) for row in cursor.fetchall()]


def lease(job: JobRow, owner: str, now_ms: int, lease_until: int) -> bool:
    """Hand the job out: attempt and token grow by one. False when it moved since it was read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET state = 'leased', owner = %s, lease_until = %s, attempts = attempts + 1, "
            "token = token + 1, changed_at_ms = %s WHERE id = %s AND state = %s AND token = %s",
            [owner, lease_until, now_ms, job.id, job.state, job.token],
        )
        return cursor.rowcount == 1


def bury(job: JobRow, reason: str, code: str, now_ms: int) -> bool:
    """Quarantine a due job without budget; its token grows by one. False when it moved since it was read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET state = 'dead', reason = %s, code = %s, token = token + 1, owner = NULL, "
            "lease_until = NULL, changed_at_ms = %s WHERE id = %s AND state = %s AND token = %s",
            [reason, code, now_ms, job.id, job.state, job.token],
        )
        return cursor.rowcount == 1


# --- ends of an attempt: all need state leased and the same token ---------------------------------------------------


def complete(job_id: str, token: int, now_ms: int) -> bool:
    """Leased -> done."""
    return _leave_lease("state = 'done'", [], job_id, token, now_ms)


def retry(job_id: str, token: int, at_ms: int, wait_ms: int, now_ms: int) -> bool:
    """Leased -> pending, not before `at_ms`."""
    return _leave_lease(
        "state = 'pending', available_at = %s, waited_ms = waited_ms + %s", [at_ms, wait_ms], job_id, token, now_ms
    )


def quarantine(job_id: str, token: int, reason: str, code: str, now_ms: int) -> bool:
    """Leased -> dead."""
    return _leave_lease("state = 'dead', reason = %s, code = %s", [reason, code], job_id, token, now_ms)


def give_back(job_id: str, token: int, now_ms: int) -> bool:
    """Leased -> pending, available now, the attempt not spent, the token kept."""
    return _leave_lease(
        "state = 'pending', available_at = %s, attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END",
        [now_ms],
        job_id,
        token,
        now_ms,
    )


def _leave_lease(change: str, values: list[int | str], job_id: str, token: int, now_ms: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE jobs SET {change}, owner = NULL, lease_until = NULL, changed_at_ms = %s "
            "WHERE id = %s AND state = 'leased' AND token = %s",
            [*values, now_ms, job_id, token],
        )
        return cursor.rowcount == 1


def extend(job_id: str, token: int, lease_until: int) -> bool:
    """Let the lease last until `lease_until` at least; it never becomes shorter."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET lease_until = CASE WHEN lease_until > %s THEN lease_until ELSE %s END "
            "WHERE id = %s AND state = 'leased' AND token = %s",
            [lease_until, lease_until, job_id, token],
        )
        return cursor.rowcount == 1


# --- out of quarantine ----------------------------------------------------------------------------------------------


def restart(job_id: str, token: int, *, max_attempts: int, deadline: int, batch: int | None, now_ms: int) -> bool:
    """Dead -> pending with a new budget; reason and code cleared, token kept. False unless dead with this token."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET state = 'pending', reason = '', code = '', attempts = 0, max_attempts = %s, deadline = %s, "
            "available_at = %s, waited_ms = 0, redriven = redriven + 1, batch = %s, changed_at_ms = %s "
            "WHERE id = %s AND state = 'dead' AND token = %s",
            [max_attempts, deadline, now_ms, batch, now_ms, job_id, token],
        )
        return cursor.rowcount == 1
