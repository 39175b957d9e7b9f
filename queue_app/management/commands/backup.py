"""`manage.py backup FOLDER`: a copy of the whole database while everything runs."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from queue_app.management import backup_words as words
from queue_app.management.help_lines import HelpLines
from queue_app.services import backups
from queue_app.store.backups import CannotCopy

EPILOG = """
FOLDER must be new; it holds the data and manifest.json, both for their owner only, and appears
when it is whole. Keep the printed anchor elsewhere too: with it `restore --expect` shows when a
backup is older than you think. The folder holds the contents of all orders: keep it as safe as
the database itself.

exit status: 0 the backup is whole; 2 there is none, and the sentence says why
"""


class Command(BaseCommand):
    """Parses, calls the service, prints what was made."""

    help = "Back the database up into a new folder, while workers and pages go on."
    requires_system_checks = []  # a database that cannot take a write is backed up all the same

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to, and how long others may wait."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("target", metavar="FOLDER", type=Path, help="a new folder")
        parser.add_argument(
            "--pause-ms",
            type=_pause,
            metavar="MS",
            help="SQLite without WAL: how long commits may wait for it (default: half their own patience)",
        )
        parser.add_argument("--json", action="store_true", help="print the manifest")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            made = backups.make(options["target"].absolute(), pause_ms=options["pause_ms"])
        except CannotCopy as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        for line in [made.manifest.text().rstrip()] if options["json"] else words.of_made(made):
            self.stdout.write(line)


def _pause(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError("a whole number of milliseconds")
    return int(text)
