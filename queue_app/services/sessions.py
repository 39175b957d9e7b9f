"""The account's own record: who signed in and out, who failed to, who changed the password (DESIGN section 9).

A change fails when its event cannot be written: so does a new password. Signing in and out are no changes of the queue.
When the record cannot be written, people must still be able to look (the record itself may be what is broken), so these
two go on and the log says that they are missing in the record; whatever is changed afterwards still needs its event.
"""

import structlog
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils.crypto import salted_hmac

from queue_app.services.people import Actor
from queue_app.store import chain, database
from queue_app.store.chain import Event

log = structlog.get_logger(__name__)

WAIT_MS = 1_000  # for the write lock; signing in never waits longer for its event
UNKNOWN = "identity:unknown"


def signed_in(actor: Actor, address: str) -> None:
    """Record a sign-in from an address; a record that cannot be written is logged and does not stop it."""
    _try_to_record(actor.event("sign_in", _target(actor.id), database.now_ms(), address=_short(address)))


def signed_out(actor: Actor, address: str) -> None:
    """Record a sign-out, on the same terms."""
    _try_to_record(actor.event("sign_out", _target(actor.id), database.now_ms(), address=_short(address)))


def sign_in_failed(name: str, address: str, *, waits: bool) -> None:
    """Record a failed sign-in; `waits`: further tries have to wait from now on. Tries during a wait are not recorded.

    Nobody proved who they are, so the event has no actor. The name of an account that exists is its target. A name that
    nobody has may be a password typed into the wrong field, and the record is for ever: only a keyed mark of it is kept,
    by which the same name is known again.
    """
    user = User.objects.filter(username=name).values_list("pk", flat=True).first()
    detail: dict[str, object] = {"tried": "sign_in", "address": _short(address), "waits": waits}
    if user is None:
        detail["mark"] = salted_hmac("queue_app.services.sessions", name, algorithm="sha256").hexdigest()[:16]
    target = UNKNOWN if user is None else _target(user)
    _try_to_record(Event(database.now_ms(), "refused", target, source="console", detail=detail))


def reproof_failed(actor: Actor, address: str, *, waits: bool) -> None:
    """Record a wrong password of somebody who is signed in and wants a new one."""
    at_ms, where = database.now_ms(), _short(address)
    event = actor.event("refused", _target(actor.id), at_ms, tried="password_change", address=where, waits=waits)
    _try_to_record(event)


@database.retried
def change_password(user: User, actor: Actor, password: str) -> None:
    """Set a checked new password with its event, both or neither. Raises DatabaseError when the record refuses."""
    user.set_password(password)  # the slow hash is made before the write lock is taken
    with database.write():
        user.save(update_fields=["password"])
        chain.append([actor.event("password_change", _target(user.pk), database.now_ms())])


def _target(user_id: int) -> str:
    return f"user:{user_id}"


def _short(address: str) -> str:
    return ascii(address)[1:-1][:64]


def _try_to_record(event: Event) -> None:
    try:
        _record(event)
    except DatabaseError as error:
        log.error("not_recorded", action=event.action, target=event.target, code=type(error).__name__)


@database.retried
def _record(event: Event) -> None:
    with database.write(limit_ms=WAIT_MS):
        chain.append([event])
