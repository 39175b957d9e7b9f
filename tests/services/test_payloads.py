"""Who may see what an order contains, and that each look is recorded."""

import json

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError

from queue_app.models import AuditEvent
from queue_app.policy.errors import InvalidOrder, NotAllowed, UnknownJob
from queue_app.services import queue
from queue_app.services.payloads import look
from queue_app.store import chain


@pytest.fixture
def trusted(auditor: User) -> User:
    """Somebody with the permission of its own, which no role brings."""
    auditor.user_permissions.add(Permission.objects.get(codename="view_payload"))
    queue.enqueue("a", 1, payload={"item": "奶茶", "price": 3})
    return auditor


def test_a_look_shows_the_text_and_leaves_an_event_without_it(trusted: User) -> None:
    assert look(trusted, "a") == '{"item":"奶茶","price":3}'
    (row,) = AuditEvent.objects.all()
    assert (row.action, row.target, row.name, row.source) == ("payload_look", "job:a", "ada", "console")
    assert json.loads(row.detail) == {"token": 0}


def test_without_the_permission_it_is_refused_and_kept(trusted: User, team_lead: User) -> None:
    root = User.objects.create_superuser("root")
    for user in (team_lead, root):
        with pytest.raises(NotAllowed):
            look(user, "a")
        row = AuditEvent.objects.latest("seq")
        assert (row.action, row.target, row.name) == ("refused", "job:a", user.username)


def test_without_its_event_nothing_is_shown(trusted: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(chain, "append", fail)
    with pytest.raises(DatabaseError):
        look(trusted, "a")


def test_unknown_and_impossible_ids(trusted: User) -> None:
    with pytest.raises(UnknownJob):
        look(trusted, "b")
    with pytest.raises(InvalidOrder):
        look(trusted, "../x")
    assert AuditEvent.objects.count() == 0


def test_a_deactivated_person_sees_nothing(trusted: User) -> None:
    User.objects.filter(pk=trusted.pk).update(is_active=False)
    with pytest.raises(NotAllowed):
        look(trusted, "a")
