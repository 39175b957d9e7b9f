"""Three people for the demo, with passwords that are made anew at every start and shown once."""

import secrets

from django.contrib.auth.models import Group, Permission, User

# name -> role; the operator and the lead may also see what an order contains
PEOPLE = {"olivia": "operator", "liam": "team_lead", "aki": "auditor"}
_SEE_PAYLOADS = ("operator", "team_lead")


def renew_people() -> dict[str, str]:
    """Make the three people if they are missing; name -> new password. Earlier passwords and sessions end."""
    passwords = {}
    permission = Permission.objects.get(content_type__app_label="queue_app", codename="view_payload")
    for name, role in PEOPLE.items():
        user, _made = User.objects.get_or_create(username=name)
        passwords[name] = "-".join(secrets.token_hex(2) for _part in range(4))
        user.set_password(passwords[name])
        user.is_active = True
        user.save()
        user.groups.set([Group.objects.get(name=role)])
        if role in _SEE_PAYLOADS:
            user.user_permissions.add(permission)
    return passwords
