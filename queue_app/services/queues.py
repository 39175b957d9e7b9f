"""Closing, pausing and limiting a queue: a team lead's moves, each with its event (DESIGN section 9).

Workers look at their queue's row several times a second, so a move acts everywhere within a second. What a worker has
begun to send is not recalled: no move undoes an effect.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from django.contrib.auth.models import User

from queue_app.policy.errors import gettext_noop
from queue_app.policy.notes import check_note
from queue_app.policy.orders import check_queue_name
from queue_app.policy.queues import QueuePolicy, UnknownQueue, with_limits
from queue_app.services.asking import allowed, recorded
from queue_app.services.people import actor_of, require
from queue_app.store import chain, database, queues


@dataclass(frozen=True, slots=True)
class QueueReceipt:
    """A move that stands: `first` is False when the queue already stood so, and then no event was written."""

    queue: str
    move: str
    first: bool
    at_ms: int


def close(user: User, name: str, *, note: str = "", channel: str = "console", proof: str = "session") -> QueueReceipt:
    """Accept no new orders: `enqueue` refuses with QueueClosed. What is in goes on, tries again included.

    Raises InvalidOrder (the name) and InvalidNote before any query, UnknownQueue, NotAllowed (recorded); so do the others.
    """
    return _move(user, name, "close_queue", "close_queue", _closes, note, channel, proof)


def reopen(user: User, name: str, *, note: str = "", channel: str = "console", proof: str = "session") -> QueueReceipt:
    """Accept orders again. A queue that was paused as well stays paused."""
    return _move(user, name, "reopen_queue", "close_queue", _reopens, note, channel, proof)


def pause(user: User, name: str, *, note: str = "", channel: str = "console", proof: str = "session") -> QueueReceipt:
    """Hand nothing out: workers give back what they have not begun, with the try not spent."""
    return _move(user, name, "pause_queue", "pause_queue", _pauses, note, channel, proof)


def resume(user: User, name: str, *, note: str = "", channel: str = "console", proof: str = "session") -> QueueReceipt:
    """Hand out again."""
    return _move(user, name, "resume_queue", "pause_queue", _resumes, note, channel, proof)


def cancel(user: User, name: str, *, note: str = "", channel: str = "console", proof: str = "session") -> QueueReceipt:
    """Close and pause in one move: nothing comes in, nothing begins, and `worker --until-empty` ends.

    The orders wait unharmed; to go on, reopen and resume.
    """
    return _move(user, name, "cancel_queue", "close_queue", _cancels, note, channel, proof)


@database.retried
def set_limits(
    user: User, name: str, *, note: str = "", channel: str = "console", proof: str = "session", **limits: int | None
) -> QueueReceipt:
    """Change some of `policy.queues.LIMITS`; those not named stay. The event tells each change, old and new.

    Raises InvalidLimit besides those of `close`.
    """
    _check(name, note)
    with recorded(user, "limit_queue", f"queue:{name}", channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, "limit_queue")
        policy = _locked(name)
        now = database.now_ms()
        before, after = asdict(policy), asdict(with_limits(policy, limits))
        changed = {field: value for field, value in limits.items() if before[field] != after[field]}
        if changed:
            queues.set_limits(policy.name, changed)
            detail = {f"{field}_before": before[field] for field in changed} | changed
            chain.append([actor.event("limit_queue", f"queue:{policy.name}", now, note=note, **detail)])
        return QueueReceipt(policy.name, "limit_queue", bool(changed), now)


def may_limit(user: User, name: str, *, channel: str = "console", proof: str = "session") -> None:
    """Raise NotAllowed (recorded) unless the person may change limits: asked before input is looked at."""
    allowed(user, "limit_queue", f"queue:{name}", channel=channel, proof=proof)


# --- one move -------------------------------------------------------------------------------------------------------


def _closes(name: str) -> bool:
    return queues.set_accepting(name, accepting=False)


def _reopens(name: str) -> bool:
    return queues.set_accepting(name, accepting=True)


def _pauses(name: str) -> bool:
    return queues.set_paused(name, paused=True)


def _resumes(name: str) -> bool:
    return queues.set_paused(name, paused=False)


def _cancels(name: str) -> bool:
    closed, paused = _closes(name), _pauses(name)
    return closed or paused


@database.retried
def _move(
    user: User, name: str, move: str, right: str, change: Callable[[str], bool], note: str, channel: str, proof: str
) -> QueueReceipt:
    _check(name, note)
    with recorded(user, right, f"queue:{name}", channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, right)
        policy = _locked(name)
        now = database.now_ms()
        first = change(policy.name)
        if first:
            chain.append([actor.event(move, f"queue:{policy.name}", now, note=note)])
        return QueueReceipt(policy.name, move, first, now)


def _check(name: str, note: str) -> None:
    check_queue_name(name)
    if note:
        check_note(note)


def _locked(name: str) -> QueuePolicy:
    """The policy, held until the transaction ends, so that two people's limits are told in the order in which they act."""
    policy = queues.policy_of(name, lock=True)
    if policy is None:
        raise UnknownQueue(gettext_noop("No queue %(queue)s is declared."), queue=name)
    return policy
