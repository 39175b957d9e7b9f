"""What the record keeps of sign-ins and passwords, as whole events, and what becomes of one that cannot be written."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils.crypto import salted_hmac
from structlog.testing import capture_logs

from queue_app.models import AuditEvent
from queue_app.services import sessions
from queue_app.services.people import Actor, actor_of
from queue_app.store import chain, database
from queue_app.store.chain import Event
from tests.services.told import World, told

pytestmark = pytest.mark.django_db


def oda_of(world: World) -> Actor:
    return actor_of(world.oda, channel="console", proof="session")


def mark(name: str) -> str:
    return salted_hmac("queue_app.services.sessions", name, algorithm="sha256").hexdigest()[:16]


def nobodys(world: World, target: str, **detail: object) -> Event:
    return Event(world.clock.now, "refused", target, None, "", "", "", "console", "", {"tried": "sign_in", **detail})


ADDRESSES = [
    ("10.1.2.3", "10.1.2.3"), ("", ""), ("é", "\\xe9"), ("a\nb", "a\\nb"), ("x" * 64, "x" * 64), ("x" * 65, "x" * 64),
    ("é" * 20, "\\xe9" * 16), ("it's", "it's"),
]  # fmt: skip


@pytest.mark.parametrize(("address", "kept"), ADDRESSES)
def test_every_event_of_an_account(world: World, address: str, kept: str) -> None:
    oda, target = oda_of(world), f"user:{world.oda.pk}"
    world.clock.advance(5)
    sessions.signed_in(oda, address)
    sessions.signed_out(oda, address)
    sessions.sign_in_failed("oda", address, waits=False)
    sessions.sign_in_failed("nobody", address, waits=True)
    sessions.reproof_failed(oda, address, waits=True)
    assert told(0) == [
        world.event(world.oda, "sign_in", target, address=kept),
        world.event(world.oda, "sign_out", target, address=kept),
        nobodys(world, target, address=kept, waits=False),
        nobodys(world, "identity:unknown", address=kept, waits=True, mark=mark("nobody")),
        world.event(world.oda, "refused", target, tried="password_change", address=kept, waits=True),
    ]


def test_a_new_password_and_nothing_else_is_stored_with_its_event(world: World) -> None:
    user = User.objects.get(pk=world.oda.pk)
    user.first_name = "not asked for"
    sessions.change_password(user, oda_of(world), "another fine staple")
    stored = User.objects.get(pk=world.oda.pk)
    assert stored.check_password("another fine staple")
    assert stored.first_name == ""
    assert told(0) == [world.event(world.oda, "password_change", f"user:{world.oda.pk}")]


CALLS: list[tuple[Callable[[World], None], str]] = [
    (lambda w: sessions.signed_in(oda_of(w), "a"), "sign_in"),
    (lambda w: sessions.signed_out(oda_of(w), "a"), "sign_out"),
    (lambda _w: sessions.sign_in_failed("oda", "a", waits=False), "refused"),
    (lambda w: sessions.reproof_failed(oda_of(w), "a", waits=False), "refused"),
]


@pytest.mark.parametrize(("call", "action"), CALLS)
def test_an_event_that_cannot_be_written_is_logged_and_keeps_nobody_out(
    world: World, monkeypatch: pytest.MonkeyPatch, call: Callable[[World], None], action: str
) -> None:
    waits: list[dict[str, int]] = []
    real = database.write

    def write(**more: int) -> Any:
        waits.append(more)
        return real(**more)

    def refuse(_events: list[Event]) -> None:
        raise OperationalError("the record is full")

    monkeypatch.setattr(database, "write", write)
    monkeypatch.setattr(chain, "append", refuse)
    with capture_logs() as said:
        call(world)
    target = f"user:{world.oda.pk}"
    entry = {"event": "not_recorded", "action": action, "target": target, "code": "OperationalError"}
    assert said == [{**entry, "log_level": "error"}]
    assert waits == [{"limit_ms": 1_000}]
    assert not AuditEvent.objects.exists()


def test_what_is_no_trouble_of_the_database_is_a_mistake_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(_events: list[Event]) -> None:
        raise TypeError("mistaken")

    monkeypatch.setattr(chain, "append", mistaken)
    with pytest.raises(TypeError, match="mistaken"):
        sessions.signed_in(oda_of(world), "a")


def test_a_password_stays_when_the_record_refuses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_events: list[Event]) -> None:
        raise OperationalError("the record is full")

    before = User.objects.get(pk=world.oda.pk).password
    monkeypatch.setattr(chain, "append", refuse)
    with pytest.raises(OperationalError, match="the record is full"):
        sessions.change_password(User.objects.get(pk=world.oda.pk), oda_of(world), "another fine staple")
    assert User.objects.get(pk=world.oda.pk).password == before
