"""`manage.py workers`: who works, and letting one worker finish and end: a team lead's move, recorded."""

import json
from dataclasses import asdict
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError

from queue_app.management.help_lines import HelpLines
from queue_app.management.persons import add_person, person
from queue_app.policy.errors import InvalidNote, SnackOpsError
from queue_app.reads import processes
from queue_app.reads.processes import ProcessLine
from queue_app.services import workers
from queue_app.store import database

EPILOG = """
A worker that is drained takes nothing new, finishes what it delivers within its own --drain-s, gives back
the rest with the try not spent, and ends: what SIGTERM does, with the same exit status, from anywhere. It
looks at least twice a second. It cannot be taken back; start a new worker instead. What a supervisor starts
again takes orders again: stop its unit.

exit status: 0 it stands so (also if it did before); 1 refused, nothing was changed, and the sentence
says why; 2 wrong usage, or the database cannot be used
"""


class Command(BaseCommand):
    """Parses, calls one service, prints how it stands."""

    help = "Workers: show, drain."

    def add_arguments(self, parser: CommandParser) -> None:
        """`show` and `drain`."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parts = parser.add_subparsers(dest="part", metavar="show|drain", required=True)
        show = parts.add_parser("show", help="who said within the last day that it lives")
        show.add_argument("--json", action="store_true", help="print one JSON object a line")
        drain = parts.add_parser("drain", help="let one finish and end")
        drain.add_argument("name", help="the worker's name, as `show` has it")
        add_person(drain)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            if options["part"] == "show":
                self._show(as_json=options["json"])
            else:
                self._drain(options["name"], options["user"], options["note"])
        except (InvalidNote, ValueError) as error:
            self._end(str(error), 2)
        except SnackOpsError as error:
            self._end(str(error), 1)
        except (DatabaseError, InterfaceError) as error:
            self._end(f"The database cannot be used ({type(error).__name__}).", 2)

    def _show(self, *, as_json: bool) -> None:
        roll = processes.roll(database.now_ms())
        for line in roll.lines:
            self.stdout.write(json.dumps(asdict(line), sort_keys=True) if as_json else _words(line))
        if not roll.lines and not as_json:
            self.stdout.write("Nobody has worked here within the last day.")

    def _drain(self, name: str, user: str, note: str) -> None:
        receipt = workers.drain(person(user), name, note=note, channel="cli", proof="shell")
        if receipt.first:
            said = "takes nothing new, finishes what it delivers, and ends."
        else:
            said = "has ended already." if receipt.stopped else "was told so already."
        self.stdout.write(f"The worker {name} {said}")

    def _end(self, sentence: str, status: int) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(status)


def _words(line: ProcessLine) -> str:
    """One process: `w-1: worker of snacks on h1, alive, takes nothing new; holds 3; 120 ended, 7 no success`."""
    of = f" of {line.queue}" if line.queue else ""
    told = ", takes nothing new" if line.draining and line.state == "alive" else ""
    return (
        f"{line.name}: {line.kind}{of}{f' on {line.host}' if line.host else ''}, {line.state}{told}; "
        f"holds {line.held.n:,}; {line.ended:,} ended, {line.failed:,} no success"
    )
