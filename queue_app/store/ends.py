"""Guarded ends of attempts: every one needs the state leased and the same token. Which rows moved is the answer.

`held` reads and locks what a worker's proofs name; each end then takes all of its jobs in one statement.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from queue_app.policy.decisions import Spent
from queue_app.store.database import is_postgresql
from queue_app.store.gates import troubled
from queue_app.store.given import Given
from queue_app.store.jobs import moved
from queue_app.store.statements import Rows, Statement, fetch

_COLUMNS = "id, queue, state, token, attempts, max_attempts, waited_ms, deadline, owner, redriven"


class HeldRow(NamedTuple):
    """A job as its worker's end finds it, without its body."""

    id: str
    queue: str
    state: str
    token: int
    attempts: int
    max_attempts: int
    waited_ms: int
    deadline: int
    owner: str | None
    redriven: int
    troubled: bool  # the gate of its queue is not simply open: something has failed of late

    @property
    def spent(self) -> Spent:
        """What of its budget the job has used."""
        return Spent(self.attempts, self.max_attempts, self.waited_ms, self.deadline)

    def owned_by(self, token: int) -> bool:
        """Whether this token may move the job: the token fences, not the clock."""
        return self.state == "leased" and self.token == token


_OF_JOBS = ", ".join(f"jobs.{column}" for column in _COLUMNS.split(", ")) + f", {troubled('jobs.queue')}"
_NAMED = Given("name text")


def held(job_ids: Iterable[str]) -> dict[str, HeldRow]:
    """The jobs that exist, by id; locked in id order on PostgreSQL, so that two callers cannot deadlock."""
    return held_of(fetch(*held_statement(job_ids)))


def held_statement(job_ids: Iterable[str]) -> Statement:
    """What `held` asks, to be asked together with something else."""
    lock = " ORDER BY jobs.id FOR UPDATE OF jobs" if is_postgresql() else ""
    sql = f"SELECT {_OF_JOBS} FROM {_NAMED.table} JOIN jobs ON jobs.id = g.name{lock}"
    return sql, _NAMED.values([(job_id,) for job_id in sorted(job_ids)])


def held_of(rows: Rows) -> dict[str, HeldRow]:
    """What `held` makes of the answer."""
    return {row[0]: HeldRow._make(row) for row in rows}


_OWNED = "jobs.id = g.id AND jobs.state = 'leased' AND jobs.token = g.token"
_PROOF = Given("id text, token bigint")


def complete(proofs: Sequence[tuple[str, int]], now_ms: int) -> set[str]:
    """Leased -> done, for each (id, token)."""
    return _leave_lease("state = 'done'", _PROOF, proofs, now_ms)


_RETRY = Given("id text, token bigint, at_ms bigint, wait_ms bigint")


def retry(waits: Sequence[tuple[str, int, int, int]], now_ms: int) -> set[str]:
    """Leased -> pending, for each (id, token, not before, what that adds to the waits)."""
    return _leave_lease(
        "state = 'pending', available_at = g.at_ms, waited_ms = jobs.waited_ms + g.wait_ms", _RETRY, waits, now_ms
    )


_QUARANTINE = Given("id text, token bigint, reason text, code text")


def quarantine(deaths: Sequence[tuple[str, int, str, str]], now_ms: int) -> set[str]:
    """Leased -> dead, for each (id, token, reason, code)."""
    return _leave_lease("state = 'dead', reason = g.reason, code = g.code", _QUARANTINE, deaths, now_ms)


def give_back(proofs: Sequence[tuple[str, int]], now_ms: int) -> set[str]:
    """Leased -> pending, available now, the attempt not spent, the token kept, for each (id, token)."""
    return _leave_lease(
        "state = 'pending', available_at = %s, "
        "attempts = CASE WHEN jobs.attempts > 0 THEN jobs.attempts - 1 ELSE 0 END",
        _PROOF,
        proofs,
        now_ms,
        now_ms,
    )


def _leave_lease(
    change: str, given: Given, rows: Sequence[tuple[object, ...]], now_ms: int, *values: object
) -> set[str]:
    if not rows:
        return set()
    return moved(
        f"UPDATE jobs SET {change}, owner = NULL, lease_until = NULL, changed_at_ms = %s "
        f"FROM {given.table} WHERE {_OWNED} RETURNING jobs.id",
        [*values, now_ms, *given.values(rows)],
    )


_UNTIL = Given("id text, token bigint, until bigint")


def extend(wishes: Sequence[tuple[str, int, int]]) -> set[str]:
    """Let the leases last until their instant at least, for each (id, token, until); none becomes shorter."""
    if not wishes:
        return set()
    return moved(
        "UPDATE jobs SET lease_until = CASE WHEN jobs.lease_until > g.until THEN jobs.lease_until ELSE g.until END "
        f"FROM {_UNTIL.table} WHERE {_OWNED} RETURNING jobs.id",
        _UNTIL.values(wishes),
    )
