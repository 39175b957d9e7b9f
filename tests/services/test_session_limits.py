"""Both ends of a session at their borders: where a sign-in puts them, when somebody's presence moves one, and how far."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.utils import timezone
from structlog.testing import capture_logs

from queue_app import conf
from queue_app.services import session_limits
from queue_app.store import database

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
IDLE_S, WHOLE_S = 7_200, 43_201  # the whole is not Django's own age of a cookie


def after(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def _an_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)


def limits(monkeypatch: pytest.MonkeyPatch, idle_s: int, whole_s: int = WHOLE_S) -> None:
    monkeypatch.setattr(conf, "session_limits_s", lambda: (idle_s, whole_s))


def session(left_s: int, whole_s: int = WHOLE_S) -> SessionStore:
    """One that ends so soon, and in all so soon; not yet stored, and not changed since."""
    made = SessionStore()
    made[session_limits.END] = after(whole_s).isoformat()
    made.set_expiry(after(left_s))
    made.modified = False
    return made


def stored(key: str | None) -> tuple[datetime, dict[str, Any]]:
    """The end that the row carries, and what the session holds."""
    row = Session.objects.get(pk=key)
    return row.expire_date, row.get_decoded()


@pytest.mark.parametrize(
    ("idle_s", "whole_s", "end_s"), [(7_200, 43_201, 7_200), (43_201, 43_201, 43_201), (50_000, 43_201, 43_201)]
)
def test_a_sign_in_sets_the_whole_and_the_nearer_end(
    monkeypatch: pytest.MonkeyPatch, idle_s: int, whole_s: int, end_s: int
) -> None:
    limits(monkeypatch, idle_s, whole_s)
    fresh = SessionStore()
    assert not session_limits.has_limits(fresh)
    session_limits.begin(request=SimpleNamespace(session=fresh), sender=object(), user=object())
    assert session_limits.has_limits(fresh)
    assert dict(fresh.items()) == {
        "session_end": after(whole_s).isoformat(),
        "_session_expiry": after(end_s).isoformat(),
    }


# how long without a person, what is left before, whether somebody's presence moves the end
STEPS = [
    (IDLE_S, 6_901, False), (IDLE_S, 6_900, True), (IDLE_S, 1, True), (IDLE_S, IDLE_S, False),
    (1_200, 901, False), (1_200, 900, True),  # a quarter is exactly the longest step
    (103, 79, False), (103, 78, True), (103, 77, True),  # a quarter of a short time, in whole seconds
]  # fmt: skip


@pytest.mark.parametrize(("idle_s", "left_s", "moves"), STEPS)
@pytest.mark.django_db
def test_the_end_moves_once_a_step(monkeypatch: pytest.MonkeyPatch, idle_s: int, left_s: int, moves: bool) -> None:
    limits(monkeypatch, idle_s)
    one = session(left_s)
    session_limits.prolong(one)
    assert one.get_expiry_date() == after(idle_s if moves else left_s)
    assert (one.session_key is not None) is moves, "what does not move is not written"
    if moves:
        assert stored(one.session_key) == (after(idle_s), dict(one.items()))
    assert one.modified is moves


@pytest.mark.parametrize(
    ("left_s", "whole_s", "then_s", "written"),
    [
        (10, 10, 10, False),
        (11, 10, 11, False),
        (10, 11, 11, True),
        (10, IDLE_S, IDLE_S, True),
        (10, 9_999, IDLE_S, True),
    ],
)
@pytest.mark.django_db
def test_what_ends_the_whole_is_not_moved_and_never_passed(
    monkeypatch: pytest.MonkeyPatch, left_s: int, whole_s: int, then_s: int, written: bool
) -> None:
    limits(monkeypatch, IDLE_S)
    one = session(left_s, whole_s)
    session_limits.prolong(one)
    assert (one.get_expiry_date(), one.session_key is not None) == (after(then_s), written)
    assert one[session_limits.END] == after(whole_s).isoformat()


@pytest.mark.django_db
def test_the_write_waits_a_moment_for_the_lock_and_a_disk_that_is_full_is_only_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits(monkeypatch, IDLE_S)
    waits: list[dict[str, int]] = []
    real = database.write

    def write(**more: int) -> Any:
        waits.append(more)
        return real(**more)

    def refuse(_self: SessionStore) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(database, "write", write)
    session_limits.prolong(session(1))
    monkeypatch.setattr(SessionStore, "save", refuse)
    one = session(1)
    with capture_logs() as said:
        session_limits.prolong(one)
    assert waits == [{"limit_ms": 300}] * 2
    assert said == [{"event": "session_not_prolonged", "code": "OperationalError", "log_level": "warning"}]
    assert one.modified is False, "nobody tries to save it again at the end of the request"
