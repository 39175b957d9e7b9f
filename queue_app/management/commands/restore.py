"""`manage.py restore FOLDER --into NEW`: a backup put into a new place, and proved there."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from queue_app.management import backup_words as words
from queue_app.management.commands.reconcile import compared
from queue_app.management.help_lines import HelpLines
from queue_app.policy.chain import parse_anchor
from queue_app.policy.errors import SnackOpsError
from queue_app.services import backups
from queue_app.services.reconciling import Result

EPILOG = """
NEW is a new folder (SQLite), or the name of an empty database on the server that DATABASE_URL names
(PostgreSQL; `createdb NAME` makes one). Nothing is ever overwritten. Checked are the checksum, the
pages, states, tokens and counters against the rows, and the record with its anchor. --receiver also
says which orders the receiver knows that the backup does not have as delivered.

exit status: 0 the copy is whole; 1 it is in its place, and something must be looked at first;
2 nothing was restored, and the sentence says why
"""


class Command(BaseCommand):
    """Parses, calls the service, prints what was found and what to do next."""

    help = "Put a backup into a new place, prove it, and say what to switch."
    requires_system_checks = []  # the configured database may be what was lost

    def add_arguments(self, parser: CommandParser) -> None:
        """From where, where to, and what to hold it against."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("source", metavar="FOLDER", type=Path, help="a folder that `backup` made")
        parser.add_argument("--into", required=True, metavar="NEW", help="a new folder, or an empty database's name")
        parser.add_argument("--expect", metavar="SEQ:HASH", help="a younger anchor that was kept elsewhere")
        parser.add_argument(
            "--receiver", nargs="?", const="", metavar="URL", help="compare the copy with the receiver's ledger"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        asked = options["receiver"]
        compare: Callable[[], Result] | None = None if asked is None else lambda: compared(asked or None)
        try:
            expect = None if options["expect"] is None else parse_anchor(options["expect"])
            done = backups.restore(options["source"].absolute(), options["into"], expect=expect, compare=compare)
        except (SnackOpsError, ValueError) as error:
            self._end(str(error))
        for line in words.of_restored(done):
            self.stdout.write(line)
        if done.problems or (done.result is not None and done.result.differing):
            sys.exit(1)

    def _end(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(2)
