"""`manage.py person`: make an account, give it a role, deactivate it, activate it again."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from queue_app.policy.rights import ROLES
from queue_app.services.accounts import one_time_password, set_person


class Command(BaseCommand):
    """One account per call; a new password is made and shown once."""

    help = "Make or change an account. A new account, or --new-password, gets a password that is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name, role, rights."""
        parser.add_argument("name")
        parser.add_argument("--role", choices=ROLES, help="the one group that the person belongs to from now on")
        parser.add_argument("--new-password", action="store_true", help="make a new password; earlier sessions end")
        state = parser.add_mutually_exclusive_group()
        state.add_argument("--deactivate", action="store_true", help="the person can do nothing from now on")
        state.add_argument(
            "--activate", action="store_true", help="the person may work again, with the role from before"
        )
        sight = parser.add_mutually_exclusive_group()
        sight.add_argument("--see-payloads", action="store_true", help="may see what orders contain (recorded)")
        sight.add_argument("--hide-payloads", action="store_true", help="may not see it any more")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit status 1 with a sentence when the account cannot be made so."""
        known = User.objects.filter(username=options["name"]).exists()
        password = one_time_password() if options["new_password"] or not known else None
        sight = True if options["see_payloads"] else False if options["hide_payloads"] else None
        active = True if options["activate"] else False if options["deactivate"] else None
        try:
            if not options["name"]:
                raise ValueError("The name is missing.")
            if not known and options["role"] is None:  # a slip of the pen must not leave somebody else as he was
                raise ValueError(f"There is no account {options['name']!r}; a new one wants --role.")
            User._meta.get_field("username").run_validators(options["name"])
            new = set_person(
                options["name"],
                role=options["role"],
                password=password,
                active=active,
                see_payloads=sight,
            )
        except (ValueError, ValidationError) as error:
            sentences = error.messages if isinstance(error, ValidationError) else [str(error)]
            raise CommandError(" ".join(sentences)) from None
        self.stdout.write(f"{options['name']} is {'made' if new else 'changed'}.")
        if password:
            self.stdout.write(f"Password, shown only now: {password}")
