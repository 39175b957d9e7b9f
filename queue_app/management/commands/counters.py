"""`manage.py counters`: compare the counters behind every figure with the rows, or put them right."""

import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from queue_app.management.help_lines import HelpLines
from queue_app.policy.recounting import COLUMNS, Difference
from queue_app.services import counting
from queue_app.services.counting import Report
from queue_app.store.recounts import Recounted

EPILOG = """
Every figure on a page comes from counters that the database keeps in the same transaction as the
rows. `counters check` compares them with the rows and names each that disagrees; `counters rebuild`
also puts them right. Both may run while everything works: SQLite is read in short bites, and one
transaction at the end takes half a second for a million orders that are not delivered; PostgreSQL
is read in one snapshot that keeps nobody waiting. Housekeeping waits meanwhile on SQLite.

exit status: 0 all agree, or were put right; 1 some disagree (check); 2 the database cannot be
used, or somebody else corrected the counters at the same time
"""


class Command(BaseCommand):
    """Two moves; the rules are in `services.counting`."""

    help = "Compare the counters with the rows, or put them right, while everything goes on."

    def add_arguments(self, parser: CommandParser) -> None:
        """`check` and `rebuild`."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("move", choices=["check", "rebuild"])
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        move = counting.rebuild if options["move"] == "rebuild" else counting.check
        try:
            report = move(wait=time.sleep)
        except Recounted:
            raise CommandError("Somebody else corrected the counters meanwhile. Run it again.", returncode=2) from None
        except DatabaseError:
            raise CommandError("The database cannot be used; nothing was changed.", returncode=2) from None
        self.stdout.write(json.dumps(_record(report), sort_keys=True) if options["json"] else _words(report))
        if report.differences and not report.mended:
            raise SystemExit(1)


def _named(one: Difference) -> dict[str, str | int]:
    return dict(zip(COLUMNS[one.table], one.place, strict=True))


def _record(report: Report) -> dict[str, object]:
    return {
        "as_of_ms": report.as_of_ms,
        "mended": report.mended,
        "differences": [
            {
                "table": one.table,
                "place": _named(one),
                "column": one.column,
                "stored": one.stored,
                "counted": one.counted,
            }
            for one in report.differences
        ],
    }


def _words(report: Report) -> str:
    if not report.differences:
        return "Every counter agrees with its rows."
    lines = []
    for one in report.differences:
        place = " ".join(f"{name}={value}" for name, value in _named(one).items() if value != "")
        lines.append(f"{one.table} {place}: {one.column} said {one.stored:,}, the rows say {one.counted:,}")
    lines.append(
        f"{len(report.differences):,} counters were put right."
        if report.mended
        else f"{len(report.differences):,} counters disagree. `manage.py counters rebuild` puts them right."
    )
    return "\n".join(lines)
