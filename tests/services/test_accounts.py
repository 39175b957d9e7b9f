"""Accounts are made, changed and deactivated by a command, and the record tells it."""

import io
import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from queue_app.models import AuditEvent
from queue_app.services.accounts import one_time_password, set_person
from queue_app.services.people import may_see_payload
from queue_app.store.chain import Event
from tests.conftest import Clock
from tests.services.told import told

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("person", *arguments, stdout=out)
    return out.getvalue()


def test_a_new_person_gets_one_group_and_a_password_that_works() -> None:
    password = run("mia", "--role", "operator").split()[-1]
    mia = User.objects.get(username="mia")
    assert mia.check_password(password)
    assert [group.name for group in mia.groups.all()] == ["operator"]
    assert not may_see_payload(mia)
    event = AuditEvent.objects.get()
    assert (event.action, event.target, event.source) == ("account_set", f"user:{mia.pk}", "cli")
    assert password not in event.detail


def test_a_change_leaves_what_it_does_not_name() -> None:
    password = run("mia", "--role", "operator").split()[-1]
    run("mia", "--role", "team_lead", "--see-payloads")
    mia = User.objects.get(username="mia")
    assert mia.check_password(password)
    assert [group.name for group in mia.groups.all()] == ["team_lead"]
    assert may_see_payload(mia)
    run("mia", "--deactivate", "--hide-payloads")
    mia.refresh_from_db()
    assert not mia.is_active
    assert not mia.user_permissions.exists()
    run("mia", "--role", "operator", "--new-password")  # who left does not come back by a change of something else
    mia.refresh_from_db()
    assert not mia.is_active
    run("mia", "--activate")
    mia.refresh_from_db()
    assert mia.is_active
    with pytest.raises(CommandError, match="not allowed with"):
        run("mia", "--activate", "--deactivate")


@pytest.mark.parametrize("wish", ["--deactivate", "--activate", "--new-password", "--see-payloads"])
def test_a_name_that_nobody_has_makes_no_account_without_a_role(wish: str) -> None:
    with pytest.raises(CommandError, match=r"There is no account 'mya'; a new one wants --role\."):
        run("mya", wish)
    assert not User.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("name", ["", "a b", "x" * 200, "<b>"])
def test_a_name_that_cannot_be_one_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(CommandError):
        run(name, "--role", "operator")
    assert not User.objects.exists()


GOOD = "four-words-of-chance"
# what is asked one after the other of an account; then: new, active, the password that works, roles, may see contents,
# and what the record tells of it
STEPS: list[tuple[dict[str, Any], tuple[bool, bool, str | None, list[str], bool], dict[str, object]]] = [
    ({}, (True, True, None, [], False), {"role": None, "active": True, "password": False}),
    (
        {"role": "auditor", "password": GOOD, "see_payloads": True},
        (False, True, GOOD, ["auditor"], True),
        {"role": "auditor", "active": True, "password": True, "see_payloads": True},
    ),
    ({"active": False}, (False, False, GOOD, ["auditor"], True), {"role": None, "active": False, "password": False}),
    (
        {"role": "team_lead", "see_payloads": False},
        (False, False, GOOD, ["team_lead"], False),
        {"role": "team_lead", "active": False, "password": False, "see_payloads": False},
    ),
    ({"password": GOOD * 2}, (False, False, GOOD * 2, ["team_lead"], False),
     {"role": None, "active": False, "password": True}),
    ({"active": True}, (False, True, GOOD * 2, ["team_lead"], False), {"role": None, "active": True, "password": False}),
]  # fmt: skip


def test_each_change_of_an_account_leaves_what_it_does_not_name_and_is_recorded(clock: Clock) -> None:
    set_person("ole", role="operator", password=GOOD)
    of_users = ContentType.objects.get_for_model(User)
    Permission.objects.create(codename="view_payload", content_type=of_users, name="Another one of this name")
    for asked, (new, active, password, roles, sees), detail in STEPS:
        clock.advance(5)
        seq = AuditEvent.objects.count()
        assert set_person("mia", **asked) is new
        mia = User.objects.get(username="mia")
        assert told(seq) == [Event(clock.now, "account_set", f"user:{mia.pk}", source="cli", detail=detail)]
        assert (mia.is_active, list(mia.groups.values_list("name", flat=True))) == (active, roles)
        assert [one.content_type.app_label for one in mia.user_permissions.all()] == ["queue_app"] * sees
        assert mia.has_usable_password() is (password is not None)
        assert password is None or mia.check_password(password)
    ole = User.objects.get(username="ole")
    assert (ole.is_active, ole.check_password(GOOD), ole.groups.get().name) == (True, True, "operator")
    assert not ole.user_permissions.exists()


def test_an_unknown_role_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="role") as refused:
        set_person("mia", role="admin")
    assert str(refused.value) == "The role must be one of operator, team_lead, auditor."
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("short", "password_too_short"),
        ("miranda-smith", "password_too_similar"),
        ("password123", "password_too_common"),
    ],
)
def test_a_weak_password_makes_and_changes_nothing(password: str, code: str) -> None:
    with pytest.raises(ValidationError) as refused:
        set_person("miranda-smith", password=password)
    assert [error.code for error in refused.value.error_list] == [code]
    assert not User.objects.exists()
    assert not AuditEvent.objects.exists()


def test_a_one_time_password_is_four_short_groups_and_never_the_same() -> None:
    some = {one_time_password() for _ in range(9)}
    assert len(some) == 9
    assert all(re.fullmatch(r"[0-9a-f]{4}(-[0-9a-f]{4}){3}", password) for password in some)
