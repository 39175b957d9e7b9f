"""`manage.py move_house`: copy a SQLite installation to PostgreSQL with everything, and prove that nothing is missing."""

import json
import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from queue_app import conf
from queue_app.management.help_lines import HelpLines
from queue_app.services import moving
from queue_app.services.moving import CannotMove, Moved

EPILOG = """
Before: stop all workers, redrivers and web servers; run `manage.py migrate` on the old database; make
an empty database in PostgreSQL. DATABASE_URL names the old one (SQLite), --to the new one
(postgres://user:password@host/name); `--to -` reads the address from standard input, so that no
password is seen in the list of processes.

All or nothing: one transaction of PostgreSQL holds the copy and its proof (rows and a digest of every
table, the record's chain with the same anchor, every guard in force). The old database is only read,
under its write lock. Sessions, failed sign-ins and signs of life stay behind: people sign in anew, with
their old passwords.

exit status: 0 moved; 1 refused or not proved, nothing was moved; 2 wrong usage or a database cannot
be used
"""


class Command(BaseCommand):
    """Parses the address, moves, and says what to switch."""

    help = "Copy this SQLite installation to PostgreSQL with everything, and prove the copy."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("--to", required=True, metavar="URL", help="the new, empty database; - reads it from stdin")
        parser.add_argument("--json", action="store_true", help="print one JSON object at the end")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        address = sys.stdin.readline().strip() if options["to"] == "-" else options["to"]

        def told(line: str) -> None:
            if not options["json"]:
                self.stdout.write(f"  {line}")

        try:
            config = conf.database_at(address)
            moved = moving.move(config, told=told)
            moving.prepare(config)
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=2) from None
        except CannotMove as error:
            raise CommandError(str(error), returncode=1) from None
        except (DatabaseError, InterfaceError) as error:
            kind = type(error).__name__
            raise CommandError(f"A database cannot be used ({kind}). Nothing was moved.", returncode=2) from None
        self.stdout.write(json.dumps(_record(moved), sort_keys=True) if options["json"] else _words(moved))


def _record(moved: Moved) -> dict[str, object]:
    anchor = f"{moved.anchor.seq}:{moved.anchor.hash}"
    return {"rows": moved.rows, "anchor": anchor, "counters_disagree": len(moved.differences)}


def _words(moved: Moved) -> str:
    lines = [
        f"Moved and proved: {sum(moved.rows.values()):,} rows in {len(moved.rows)} tables read back the same.",
        f"The record is whole and ends at {moved.anchor.seq}:{moved.anchor.hash}, on both sides.",
    ]
    if moved.differences:
        lines.append(
            f"{len(moved.differences):,} counters disagreed with their rows before the move already: run "
            "`manage.py counters rebuild` on the new database."
        )
    lines += [
        "",
        "Now switch:",
        "1. Give the application's role its rights there: snackops/ops/application_role.sql, run as the owner.",
        "2. Set DATABASE_URL to the new address, with that role, for every process: web servers, workers, redrivers, "
        "scheduled commands.",
        "3. Start the web servers, then the redrivers, then the workers. People sign in anew.",
        "4. Keep the old file, and start nothing on it any more: what it accepted, the new database would not know.",
    ]
    return "\n".join(lines)
