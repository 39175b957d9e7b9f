"""`manage.py reconcile`: hold every order against the receiver's ledger."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any, NoReturn

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError

from queue_app import conf
from queue_app.delivery.ledger import HttpLedger
from queue_app.management import reconcile_words as words
from queue_app.management.help_lines import HelpLines
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.refusals import shown
from queue_app.services import reconciling
from queue_app.services.reconciling import Result

EPILOG = """
Compared are ids, effects, quantities, tries and totals, page by page, while workers go on. An order
that moves meanwhile is looked at again before it is called a difference. Nothing is changed on
either side; the result is kept and shown on the page "Receiver check".

exit status: 0 no difference; 1 differences; 2 wrong usage, or one of the two sides cannot be read
"""


class Command(BaseCommand):
    """Parses, compares, keeps the result, prints it."""

    help = "Compare done, dead, pending, leased and pruned orders with what the receiver knows."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whom to ask, for whom, and how much to print."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("--receiver", metavar="URL", help="another address than the one orders are delivered to")
        parser.add_argument("--as", dest="user", metavar="USER", help="the person in whose name it is recorded")
        parser.add_argument(
            "--limit-examples",
            type=_examples,
            default=reconciling.EXAMPLES_PER_KIND,
            metavar="N",
            dest="examples",
            help="ids kept and printed of each kind of difference, 0 to 100 (default %(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            user = _user(options["user"])
            result = compared(options["receiver"], examples=options["examples"])
            number = reconciling.record(result, user)
        except (SnackOpsError, ValueError) as error:
            self._end(str(error))
        except (DatabaseError, InterfaceError) as error:
            self._end(f"The database cannot be used ({type(error).__name__}).")
        lines = [json.dumps({"number": number, **asdict(result)})] if options["json"] else words.of_result(result)
        for line in lines:
            self.stdout.write(line)
        if result.differing:
            sys.exit(1)

    def _end(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(2)


def compared(url: str | None, *, examples: int = reconciling.EXAMPLES_PER_KIND) -> Result:
    """Compare with the receiver at `url` (None: the configured one). Raises BadLedger; ValueError for the address."""
    connect_ms, read_ms, total_ms = conf.delivery_times_ms()
    with HttpLedger(url or conf.receiver_url(), connect_ms=connect_ms, read_ms=read_ms, total_ms=total_ms) as ledger:
        return reconciling.compare(ledger, examples=examples)


def _user(name: str | None) -> User | None:
    if name is None:
        return None
    user = User.objects.filter(username=name).first()
    if user is None:
        raise ValueError(f"There is no account {shown(name)}.")
    reconciling.may_compare(user)  # before the long walk
    return user


def _examples(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= reconciling.EXAMPLES_MAX):
        raise argparse.ArgumentTypeError(f"a whole number from 0 to {reconciling.EXAMPLES_MAX}")
    return int(text)
