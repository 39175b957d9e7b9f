"""Naming on the command line the person who does something."""

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from queue_app.policy.refusals import shown


def add_person(part: CommandParser) -> None:
    """`--as USER` and `--note`."""
    part.add_argument("--as", dest="user", required=True, metavar="USER", help="the team lead who does it")
    part.add_argument("--note", default="", help="ticket or reference")


def person(name: str) -> User:
    """The account, or ValueError."""
    user = User.objects.filter(username=name).first()
    if user is None:
        raise ValueError(f"There is no account {shown(name)}.")
    return user
