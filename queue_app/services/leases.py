"""Handing out and finishing: the moves of workers (DESIGN section 4). Each runs in one short write transaction."""

from collections.abc import Iterable

from queue_app.policy.attempts import Lease, Result, check_proof, check_result
from queue_app.policy.decisions import lease_end_ms
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.orders import check_code, check_owner, check_queue_name
from queue_app.policy.queues import QueuePolicy
from queue_app.services import gates, passing
from queue_app.services.ending import end_all
from queue_app.services.handing_out import hand_out
from queue_app.store import database, ends, evidence, glances, queues
from queue_app.store.evidence import FailureRow
from queue_app.store.queues import Standing

MAX_CLAIM = 1_000
MAX_LEASE_MS = 86_400_000


@database.retried
def claim(
    owner: str, *, queue: str = "snacks", limit: int = 1, lease_ms: int | None = None, now_ms: int | None = None
) -> list[Lease]:
    """Take up to `limit` due jobs by (available_at, seq). Two claimers never get the same token of a job.

    Due jobs without budget are quarantined on the way, 100 a call at most. `lease_ms` None means the queue's own.
    Raises ValueError for a bad owner, limit or lease, InvalidOrder for an undeclared queue.
    """
    _check_claim(owner, queue, limit, lease_ms)
    at_ms = _moment(now_ms)
    with database.write():
        return _turn([], owner, queue, limit, lease_ms, at_ms)[1]


def finish(
    id: str,  # noqa: A002 - DESIGN section 5 names it
    token: int,
    outcome: str,
    *,
    code: str = "",
    retry_after_ms: int | None = None,
    now_ms: int | None = None,
) -> bool:
    """End an attempt: "ok", "retry" or "permanent". False, and no change to the job, unless it is leased with this token.

    An unknown outcome or a bad code is a ValueError before any write.
    """
    return finish_state(Result(id, token, outcome, code, retry_after_ms), now_ms=now_ms) is not None


@database.retried
def finish_state(result: Result, *, now_ms: int | None = None) -> str | None:
    """As `finish`, with the job's new state, or None when the token was refused."""
    check_result(result)
    at_ms = _moment(now_ms)
    with database.write():
        now, held = glances.held_now([result.id], at_ms)
        (state,) = end_all([result], held, now, _Policies())
    return state


@database.retried
def finish_many(results: Iterable[Result], *, now_ms: int | None = None) -> list[bool]:
    """End many attempts in one transaction; an answer per result, in order. A bad one is a ValueError before any write.

    Of two results for the same token the first counts and the second is refused.
    """
    checked = [check_result(result) for result in results]
    at_ms = _moment(now_ms)
    if not checked:
        return []
    with database.write():
        now, held = glances.held_now({result.id for result in checked}, at_ms)
        return [state is not None for state in end_all(checked, held, now, _Policies())]


@database.retried
def finish_and_claim(
    results: Iterable[Result],
    owner: str,
    *,
    queue: str = "snacks",
    limit: int = 1,
    lease_ms: int | None = None,
    now_ms: int | None = None,
) -> tuple[list[bool], list[Lease]]:
    """End attempts and take the next jobs in the same transaction: one commit where two would do."""
    checked = [check_result(result) for result in results]
    _check_claim(owner, queue, limit, lease_ms)
    at_ms = _moment(now_ms)
    with database.write():
        return _turn(checked, owner, queue, limit, lease_ms, at_ms)


def _turn(
    results: list[Result], owner: str, queue: str, limit: int, lease_ms: int | None, at_ms: int | None
) -> tuple[list[bool], list[Lease]]:
    """Ends and new leases inside the caller's transaction: what is plain in one statement, anything else step by step."""
    seen = glances.glance(queue, {result.id for result in results}, at_ms, passing.looks_ahead(queue, limit))
    standing = _declared(queue, seen.standing)
    plain = passing.pass_on(results, seen, standing, owner, lease_ms)
    if plain is not None:
        answers, leases = plain
        if len(leases) == len(seen.due or ()):
            return plain
        return answers, leases + hand_out(owner, standing, limit - len(leases), lease_ms)
    states = end_all(results, seen.held, standing.now_ms, _Policies())
    if standing.troubled or any(result.outcome != "ok" for result in results):
        # what has ended may have moved the gate
        standing = _declared(queue, queues.standing(queue))._replace(now_ms=standing.now_ms)
    return [state is not None for state in states], hand_out(owner, standing, limit, lease_ms)


def renew(id: str, token: int, *, lease_ms: int | None = None, now_ms: int | None = None) -> bool:  # noqa: A002
    """Extend the lease of this token to now + lease, never past the deadline by more than one lease, never shorter."""
    (renewed,) = renew_many([(id, token)], lease_ms=lease_ms, now_ms=now_ms)
    return renewed


@database.retried
def renew_many(
    proofs: Iterable[tuple[str, int]], *, lease_ms: int | None = None, now_ms: int | None = None
) -> list[bool]:
    """As `renew` for each (id, token), all leases in one statement; an answer per proof, in order."""
    wanted = _checked(proofs)
    if lease_ms is not None:
        _check_span("lease_ms", lease_ms, MAX_LEASE_MS)
    if not wanted:
        return []
    with database.write():
        now, policy_of = database.instant(now_ms), _Policies()
        held = ends.held({job_id for job_id, _ in wanted})
        wishes = {
            job.id: (job.id, token, lease_end_ms(now, lease_ms or policy_of(job.queue).lease_ms, job.deadline))
            for job_id, token in wanted
            if (job := held.get(job_id)) is not None and job.owned_by(token)
        }
        moved = ends.extend(list(wishes.values()))
    return [job_id in moved and wishes[job_id][1] == token for job_id, token in wanted]


def release(id: str, token: int, *, now_ms: int | None = None) -> bool:  # noqa: A002
    """Give back a job that was not started: available now, the attempt not spent, the token kept."""
    (released,) = release_many([(id, token)], now_ms=now_ms)
    return released


@database.retried
def release_many(proofs: Iterable[tuple[str, int]], *, now_ms: int | None = None) -> list[bool]:
    """As `release` for each (id, token), all in one statement; an answer per proof, in order."""
    wanted = _checked(proofs)
    if not wanted:
        return []
    with database.write():
        now = database.instant(now_ms)
        held = ends.held({job_id for job_id, _ in wanted})
        owned = {
            job.id: (job.id, token)
            for job_id, token in wanted
            if (job := held.get(job_id)) is not None and job.owned_by(token)
        }
        left = {owned[job_id] for job_id in ends.give_back(list(owned.values()), now)}
    answers = []
    for proof in wanted:  # the second time that a proof is named, it owns nothing any more
        answers.append(proof in left)
        left.discard(proof)
    return answers


@database.retried
def record_unknown(id: str, token: int, code: str, *, now_ms: int | None = None) -> bool:  # noqa: A002
    """Record an answer that proves nothing. The job stays leased: the lease's end brings it back (DESIGN section 4)."""
    check_proof(id, token)
    check_code(code)
    with database.write():
        now = database.instant(now_ms)
        job = ends.held([id]).get(id)
        if job is None or not job.owned_by(token):
            return False
        row = FailureRow(id, token, job.attempts, "unknown", code, job.owner or "")
        first = bool(evidence.add_failures([row], now))
        if first:
            gates.ended(job.queue, [Result(id, token, "unknown", code)], now)
        return first


# --- policies and arguments -----------------------------------------------------------------------------------------


def _policy(queue: str) -> QueuePolicy:
    policy = queues.policy_of(queue)
    if policy is None:
        raise InvalidOrder(f"No queue {queue!r} is declared.")
    return policy


class _Policies:
    """Each queue's policy, read once in a transaction and only if it is asked for."""

    def __init__(self) -> None:
        self._read: dict[str, QueuePolicy] = {}

    def __call__(self, queue: str) -> QueuePolicy:
        if queue not in self._read:
            self._read[queue] = _policy(queue)
        return self._read[queue]


def _declared(queue: str, standing: Standing | None) -> Standing:
    if standing is None:
        raise InvalidOrder(f"No queue {queue!r} is declared.")
    return standing


def _moment(now_ms: int | None) -> int | None:
    """The caller's instant, if one was given; ValueError as in `database.instant`."""
    return None if now_ms is None else database.instant(now_ms)


def _check_claim(owner: str, queue: str, limit: int, lease_ms: int | None) -> None:
    check_owner(owner)
    check_queue_name(queue)
    _check_span("limit", limit, MAX_CLAIM)
    if lease_ms is not None:
        _check_span("lease_ms", lease_ms, MAX_LEASE_MS)


def _check_span(name: str, value: object, high: int) -> None:
    if type(value) is not int or not 1 <= value <= high:
        raise ValueError(f"{name} must be a whole number from 1 to {high:,}.")


def _checked(proofs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    wanted = [(job_id, token) for job_id, token in proofs]
    for job_id, token in wanted:
        check_proof(job_id, token)
    return wanted
