"""Guarded moves of jobs. Every update names the old state and the old token; who did not move is an answer.

A move takes as many jobs as there are in one statement and says which of them moved. The rules themselves (when, why,
how long) are in `queue_app.policy`; the transaction belongs to the service. The ends of an attempt are in `ends.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from queue_app.policy.decisions import Spent
from queue_app.store.database import is_postgresql
from queue_app.store.given import Given
from queue_app.store.statements import Rows, Statement, fetch, fetch_all

_COLUMNS = (
    "id, queue, quantity, payload, order_key, state, reason, code, attempts, max_attempts, token, owner, lease_until, "
    "available_at, deadline, changed_at_ms, redriven, batch, waited_ms"
)


class JobRow(NamedTuple):
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


# --- handing out ----------------------------------------------------------------------------------------------------

_DUE = (
    "SELECT "
    + ", ".join(f"j.{column}" for column in _COLUMNS.split(", "))
    + " FROM jobs AS j WHERE j.queue = %s AND j.state IN ('pending', 'leased') AND j.available_at <= %s "
    "AND (j.state = 'pending' OR j.lease_until <= %s)"
)
# `NOT (order_key = '')` as in the index: SQLite takes a partial index only for the very words of its condition, and with
# `<> ''` each look went through all earlier orders.
_NOT_BLOCKED = (
    " AND (j.order_key = '' OR NOT EXISTS (SELECT 1 FROM jobs AS e WHERE e.queue = j.queue AND e.order_key = "
    "j.order_key AND e.seq < j.seq AND e.state IN ('pending', 'leased', 'dead') AND NOT (e.order_key = '') AND NOT EXISTS "
    "(SELECT 1 FROM unblocks AS u WHERE u.job_id = e.id AND u.token = e.token AND e.state = 'dead')))"
)
_HAS_BUDGET = " AND j.attempts < j.max_attempts AND j.deadline > %s"


def due(queue: str, now_ms: int, limit: int, *, ordered: bool, with_budget: bool = False) -> list[JobRow]:
    """Up to `limit` due jobs by (available_at, seq), locked on PostgreSQL and passing over what others hold.

    `ordered` leaves out jobs behind an earlier unfinished one of the same key; `with_budget` leaves out those to bury.
    """
    sql = _DUE + (_NOT_BLOCKED if ordered else "") + (_HAS_BUDGET if with_budget else "") + _in_order()
    values: list[int | str] = [queue, now_ms, now_ms, *([now_ms] if with_budget else []), limit]
    return due_of(fetch(sql, values))


def due_statement(queue: str, now_ms: int | None, limit: int) -> Statement:
    """What `due` asks of an independent queue, to be asked together with something else; `now_ms` None: by the clock of
    the database, which each row then tells at its end."""
    if now_ms is not None:
        return _DUE + _in_order(), [queue, now_ms, now_ms, limit]
    columns, rest = _DUE.replace("<= %s", "<= (SELECT at FROM clock)").split(" FROM jobs", 1)
    sql = (
        f"WITH clock AS MATERIALIZED (SELECT snackops_now_ms() AS at) {columns}, (SELECT at FROM clock) FROM jobs{rest}"
    )
    return sql + _in_order(), [queue, limit]


def due_of(rows: Rows) -> list[JobRow]:
    """What `due` makes of the answer."""
    return list(map(JobRow._make, rows))


def _in_order() -> str:
    return " ORDER BY j.available_at, j.seq LIMIT %s" + (" FOR UPDATE OF j SKIP LOCKED" if is_postgresql() else "")


_AS_READ = Given("id text, state text, token bigint")
_STANDS_AS_READ = "jobs.id = g.id AND jobs.state = g.state AND jobs.token = g.token"


def lease_all(jobs: Sequence[JobRow], owner: str, now_ms: int, lease_until: int) -> set[str]:
    """Hand the jobs out: attempt and token grow by one. The ids of those that had not moved since they were read."""
    if not jobs:
        return set()
    return moved(
        "UPDATE jobs SET state = 'leased', owner = %s, lease_until = %s, attempts = jobs.attempts + 1, "
        f"token = jobs.token + 1, changed_at_ms = %s FROM {_AS_READ.table} WHERE {_STANDS_AS_READ} RETURNING jobs.id",
        [owner, lease_until, now_ms, *_AS_READ.values([(job.id, job.state, job.token) for job in jobs])],
    )


_PASSED = Given("id text, state text, token bigint, taken integer")


def pass_on(
    done: Sequence[tuple[str, int]], due: Sequence[JobRow], owner: str, now_ms: int, lease_until: int
) -> set[str]:
    """Leased -> done for each (id, token), and `lease_all` for jobs that are due, in one statement; the ids that moved.

    The last statement of its transaction. One where two would do: the counters' trigger works once, not twice.
    """
    rows = [(job_id, "leased", token, 0) for job_id, token in done]
    rows += [(job.id, job.state, job.token, 1) for job in due]
    if not rows:
        return set()
    sql = (
        "UPDATE jobs SET state = CASE g.taken WHEN 1 THEN 'leased' ELSE 'done' END, "
        "owner = CASE g.taken WHEN 1 THEN %s END, lease_until = CASE g.taken WHEN 1 THEN CAST(%s AS bigint) END, "
        "attempts = jobs.attempts + g.taken, token = jobs.token + g.taken, changed_at_ms = %s "
        f"FROM {_PASSED.table} WHERE {_STANDS_AS_READ} RETURNING jobs.id"
    )
    (answer,) = fetch_all([(sql, [owner, lease_until, now_ms, *_PASSED.values(rows)])], last=True)
    return {row[0] for row in answer}


_BURIED = Given("id text, state text, token bigint, reason text, code text")


def bury_all(burials: Sequence[tuple[JobRow, str, str]], now_ms: int) -> set[str]:
    """Quarantine due jobs without budget, each with (reason, code); their tokens grow by one. The ids that moved."""
    if not burials:
        return set()
    rows = [(job.id, job.state, job.token, reason, code) for job, reason, code in burials]
    return moved(
        "UPDATE jobs SET state = 'dead', reason = g.reason, code = g.code, token = jobs.token + 1, owner = NULL, "
        f"lease_until = NULL, changed_at_ms = %s FROM {_BURIED.table} WHERE {_STANDS_AS_READ} RETURNING jobs.id",
        [now_ms, *_BURIED.values(rows)],
    )


def moved(sql: str, values: Sequence[Any]) -> set[str]:
    """Carry out a guarded update whose statement returns the ids that moved."""
    return {row[0] for row in fetch(sql, values)}


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
