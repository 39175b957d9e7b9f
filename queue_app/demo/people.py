"""Three people for the demo, with passwords that are made anew at every start and shown once."""

from queue_app.services.accounts import one_time_password, set_person

# name -> role; the operator and the lead may also see what an order contains
PEOPLE = {"olivia": "operator", "liam": "team_lead", "aki": "auditor"}
_SEE_PAYLOADS = ("operator", "team_lead")


def renew_people() -> dict[str, str]:
    """Make the three people if they are missing; name -> new password. Earlier passwords and sessions end."""
    passwords = {}
    for name, role in PEOPLE.items():
        passwords[name] = one_time_password()
        set_person(name, role=role, password=passwords[name], see_payloads=role in _SEE_PAYLOADS)
    return passwords
