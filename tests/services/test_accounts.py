"""Accounts are made, changed and deactivated by a command, and the record tells it."""

import io

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from queue_app.models import AuditEvent
from queue_app.services.people import may_see_payload

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


@pytest.mark.parametrize("name", ["", "a b", "x" * 200, "<b>"])
def test_a_name_that_cannot_be_one_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(CommandError):
        run(name, "--role", "operator")
    assert not User.objects.exists()
