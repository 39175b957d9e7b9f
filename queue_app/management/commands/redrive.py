"""`manage.py redrive`: ask, decide and steer from a terminal: the same services, checks and record as the console."""

import getpass
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError

from queue_app.management import redrive_arguments as arguments
from queue_app.management import redrive_words as words
from queue_app.management.help_lines import HelpLines
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.plans import STATES, InvalidPlan
from queue_app.policy.terms import parse_rate
from queue_app.reads import plans as reads
from queue_app.reads import previews, selected
from queue_app.services import approvals, batches, plans
from queue_app.services.approvals import Proof
from queue_app.services.receipts import Receipt
from queue_app.store import database

CLI = {"channel": "cli", "proof": "shell"}
EPILOG = """
A redrive is asked for by one person and approved by another (a team lead). Approving and rejecting
ask for the password of --as on the terminal.

exit status: 0 done (or done already: the first one's receipt is shown); 1 refused, nothing was
changed, and the sentence says why; 2 wrong usage, no terminal, or the database cannot be used
"""


class Command(BaseCommand):
    """Parses, calls one service, prints its receipt."""

    help = "Redrives: plan, show, list, approve, continue, reject, withdraw, cancel, pause, resume, slow, stop."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand for each move."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parts = parser.add_subparsers(dest="part", metavar="MOVE", required=True)
        plan = parts.add_parser("plan", help="ask for a redrive and freeze its list")
        arguments.add_person(plan, note="required")
        arguments.add_selection(plan)
        arguments.add_terms(plan)
        plan.add_argument("--dry-run", action="store_true", help="only show what would be frozen")
        listed = parts.add_parser("list", help="redrives, the newest first")
        listed.add_argument("--state", choices=STATES, action="append")
        listed.add_argument("--limit", type=int, default=50)
        for name, text in (
            ("show", "one redrive in full"),
            ("approve", "let it begin"),
            ("continue", "let it go on after a halt or pause, as a new round with a new trial"),
            ("reject", "refuse it for good"),
            ("withdraw", "take an own one back before it is decided"),
            ("cancel", "end the making of its list"),
            ("pause", "pause until somebody resumes"),
            ("resume", "resume what a person paused"),
            ("slow", "change its pace, up to the approved one"),
            ("stop", "stop for good"),
        ):
            part = parts.add_parser(name, help=text)
            part.add_argument("number", help="12 or R-12")
            if name != "show":
                decides = name in ("approve", "continue", "reject")
                arguments.add_person(part, note="required" if decides else "optional")
            if name in ("approve", "continue"):
                _add_tightening(part)
            if name in ("approve", "continue", "reject"):
                part.add_argument("--list", dest="digest", metavar="DIGEST", help="refuse unless the list is this one")
            if name == "slow":
                part.add_argument("--rate", required=True, help="orders per second")
        for part in parts.choices.values():
            part.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            self._do(options["part"], options)
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except ValueError as error:  # also every Invalid...: wrong usage
            self._end(str(error), 2)
        except SnackOpsError as error:
            self._end(str(error), 1)
        except (DatabaseError, InterfaceError) as error:
            self._end(f"The database cannot be used ({type(error).__name__}).", 2)

    def _do(self, part: str, options: dict[str, Any]) -> None:
        if part == "plan":
            self._plan(options)
        elif part == "list":
            lines = reads.plans(states=options["state"], limit=max(1, min(options["limit"], 1_000)))
            self._print(lines, words.of_lines(lines), options)
        elif part == "show":
            detail = reads.detail(arguments.number_of(options["number"]), database.now_ms())
            self._print(detail, words.of_detail(detail), options)
        elif part in ("approve", "continue", "reject"):
            self._decide(part, options)
        else:
            self._receipt(self._move(part, _user(options), arguments.number_of(options["number"]), options), options)

    def _plan(self, options: dict[str, Any]) -> None:
        user = _user(options)
        selection = arguments.selection_of(options)
        queue = selection.queue or (selected.queues_of(selection.ids) or ["snacks"])[0]
        terms = arguments.terms_of(options, queue)
        if options["dry_run"]:
            preview = previews.preview(selection, terms, database.now_ms())
            self._print(preview, words.of_preview(preview), options)
            return
        receipt = plans.ask(
            user, selection, terms, note=options["note"], comment=options["comment"], channel="cli", proof="shell"
        )
        self._receipt(receipt, options)

    def _move(self, part: str, user: User, number: int, options: dict[str, Any]) -> Receipt:
        note = options["note"]
        if part == "slow":
            return batches.set_pace(user, number, parse_rate(options["rate"]), note=note, **CLI)
        moves: dict[str, Callable[..., Receipt]] = {
            "withdraw": plans.withdraw,
            "cancel": plans.cancel,
            "pause": batches.pause,
            "resume": batches.resume,
            "stop": batches.stop,
        }
        return moves[part](user, number, note=note, **CLI)

    def _decide(self, part: str, options: dict[str, Any]) -> None:
        user = _user(options)
        number = arguments.number_of(options["number"])
        seen = reads.detail(number, database.now_ms())
        if not sys.stdin.isatty():
            self._end(f"No terminal: `redrive {part}` asks for the password of {user.username} on one.", 2)
        for line in words.of_detail(seen):
            self.stderr.write(line)
        typed = self._typed(part, seen)
        given = {
            "round": seen.deciding_round,
            "digest": options["digest"] or seen.digest,
            "note": options["note"],
            "comment": options["comment"],
            "proof": self._proof(user),
            "channel": "cli",
        }
        if part == "reject":
            receipt = approvals.reject(user, number, **given)
        else:
            receipt = approvals.approve(user, number, typed=typed, tightening=arguments.tightening_of(options), **given)
        self._receipt(receipt, options)

    def _typed(self, part: str, seen: reads.Detail) -> str | None:
        if part == "reject" or not seen.must_type:
            return None
        self.stderr.write(f"Type the number of orders ({seen.at_stake:,}): ", ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip()

    def _proof(self, user: User) -> Proof:
        return approvals.confirm_identity(user, getpass.getpass(f"Password of {user.username}: "), channel="cli")

    def _receipt(self, receipt: Receipt, options: dict[str, Any]) -> None:
        self._print(receipt, words.of_receipt(receipt), options)

    def _print(self, value: object, lines: Iterable[str], options: dict[str, Any]) -> None:
        for line in [words.as_json(value)] if options["json"] else lines:
            self.stdout.write(line)
        self.stdout.flush()

    def _end(self, sentence: str, status: int) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(status)


def _add_tightening(parser: CommandParser) -> None:
    parser.add_argument("--rate", help="slower than asked for, in orders per second")
    parser.add_argument("--canary", help="a larger trial")
    parser.add_argument("--leave-out", action="append", default=[], metavar="REASON/CODE", help="a cause to leave out")


def _user(options: dict[str, Any]) -> User:
    user = User.objects.filter(username=options["user"]).first()
    if user is None:
        raise InvalidPlan("There is no account %(name)s.", field="as", name=ascii(options["user"])[:40])
    return user
