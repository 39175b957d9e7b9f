"""What gathers by itself goes when it is older than the instant, not more at once than asked, and the number is told."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import Model

from queue_app.models import Presence
from queue_app.store import chores
from tests.conftest import START_MS

pytestmark = pytest.mark.django_db
AT_MS = START_MS + 7  # an instant between two seconds
AGES = {"young": -1, "border": 0, "old-1": 1, "old-2": 1_000, "old-3": 10**9}  # ms before the instant


def instant(ago_ms: int) -> datetime:
    return datetime(2027, 1, 15, 8, tzinfo=UTC) + timedelta(milliseconds=7 - ago_ms)


def sessions() -> None:
    for name, ago in AGES.items():
        Session.objects.create(session_key=name, session_data="", expire_date=instant(ago))


def presences() -> None:
    user = User.objects.create_user("oda")
    for name, ago in AGES.items():
        Presence.objects.create(user=user, queue="snacks", reason="permanent", code=name, seen_at_ms=AT_MS - ago)


def sign_ins() -> None:
    for name, ago in AGES.items():
        made = AccessAttempt.objects.create(username=name, ip_address="10.0.0.1", failures_since_start=1)
        AccessAttempt.objects.filter(pk=made.pk).update(attempt_time=instant(ago))


CHORES: list[tuple[Callable[[], None], Callable[[int, int], int], type[Model], str]] = [
    (sessions, chores.forget_sessions, Session, "session_key"),
    (presences, chores.forget_presences, Presence, "code"),
    (sign_ins, chores.forget_sign_ins, AccessAttempt, "username"),
]


@pytest.mark.parametrize(("fill", "forget", "table", "name"), CHORES, ids=["sessions", "presences", "sign_ins"])
def test_a_bite_is_bounded_and_the_border_stays(
    fill: Callable[[], None], forget: Callable[[int, int], int], table: type[Model], name: str
) -> None:
    fill()
    assert [forget(AT_MS, limit) for limit in (2, 2, 2, 0)] == [2, 1, 0, 0]
    assert set(table._default_manager.values_list(name, flat=True)) == {"young", "border"}
    assert forget(AT_MS + 1, 9) == 1
    assert set(table._default_manager.values_list(name, flat=True)) == {"young"}
