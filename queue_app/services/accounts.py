"""Accounts: made, given a role, deactivated by whoever runs the installation (never deleted: the record names them)."""

import secrets

from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password

from queue_app.policy.rights import ROLES
from queue_app.store import chain, database
from queue_app.store.chain import Event


@database.retried
def set_person(
    name: str,
    *,
    role: str | None = None,
    password: str | None = None,
    active: bool | None = None,
    see_payloads: bool | None = None,
) -> bool:
    """Make or change an account, with its event in the record; True when it is new.

    None leaves what there is: the groups, the password (a new account then has none that works), whether it is active (a
    new one is) and the permission. ValueError for an unknown role, ValidationError for a weak password.
    """
    if role is not None and role not in ROLES:
        raise ValueError(f"The role must be one of {', '.join(ROLES)}.")
    with database.write():
        user, new = User.objects.get_or_create(username=name)
        if password is not None:
            validate_password(password, user)
            user.set_password(password)
        elif new:
            user.set_unusable_password()
        user.is_active = user.is_active if active is None else active
        user.save()
        if role is not None:
            user.groups.set([Group.objects.get(name=role)])
        if see_payloads is not None:
            permission = Permission.objects.get(content_type__app_label="queue_app", codename="view_payload")
            (user.user_permissions.add if see_payloads else user.user_permissions.remove)(permission)
        detail: dict[str, object] = {"role": role, "active": user.is_active, "password": password is not None}
        if see_payloads is not None:
            detail["see_payloads"] = see_payloads
        chain.append([Event(database.now_ms(), "account_set", f"user:{user.pk}", source="cli", detail=detail)])
    return new


def one_time_password() -> str:
    """A password that a person can read off a screen, with 64 bits of chance."""
    return "-".join(secrets.token_hex(2) for _part in range(4))
