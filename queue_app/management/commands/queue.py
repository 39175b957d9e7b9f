"""`manage.py queue`: show, close, reopen, pause, resume, cancel and limit a queue: a team lead's moves, each recorded."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError

from queue_app.management.help_lines import HelpLines
from queue_app.management.persons import add_person, person
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.orders import check_queue_name
from queue_app.policy.queues import LIMITS, InvalidLimit, QueuePolicy, UnknownQueue
from queue_app.policy.refusals import shown
from queue_app.reads import ends
from queue_app.services import queues as moves
from queue_app.services.queues import QueueReceipt
from queue_app.store import queues

CLI = {"channel": "cli", "proof": "shell"}
MOVES: dict[str, tuple[Callable[..., QueueReceipt], str, str]] = {
    "close": (moves.close, "take no new orders; what is in goes on", "is closed: it takes no new orders."),
    "reopen": (moves.reopen, "take orders again", "takes orders."),
    "pause": (moves.pause, "hand nothing out", "is paused: nothing begins. What has begun ends by itself."),
    "resume": (moves.resume, "hand out again", "hands out orders."),
    "cancel": (
        moves.cancel,
        "close and pause: what has not begun is given back",
        "is closed and paused: what has not begun is given back. What was already sent is not recalled.",
    ),
}
EPILOG = """
To end a queue in order: close it, run `worker --until-empty`, and look here how the orders ended.
A change acts on all workers within a second.

exit status: 0 it stands so (also if it did before); 1 refused, nothing was changed, and the sentence
says why; 2 wrong usage, or the database cannot be used
"""


class Command(BaseCommand):
    """Parses, calls one service, prints how the queue stands."""

    help = "Queues: show, close, reopen, pause, resume, cancel, limit."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand for each move."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parts = parser.add_subparsers(dest="part", metavar="MOVE", required=True)
        parts.add_parser("show", help="its settings, and how its orders stand")
        for name, (_move, text, _said) in MOVES.items():
            add_person(parts.add_parser(name, help=text))
        limit = parts.add_parser("limit", help="change its limits; those not named stay")
        add_person(limit)
        for field, (low, high, optional) in LIMITS.items():
            text = f"from {low:,} to {high:,}" + (", or none" if optional else "")
            limit.add_argument(f"--{field.replace('_', '-')}", dest=field, metavar="N", help=text)
        for part in parts.choices.values():
            part.add_argument("name", help="the queue")
            part.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            said = self._do(options["part"], options["name"], options)
            self._print(options["name"], said, as_json=options["json"])
        except ValueError as error:  # also every Invalid...: wrong usage
            self._end(str(error), 2)
        except SnackOpsError as error:
            self._end(str(error), 1)
        except (DatabaseError, InterfaceError) as error:
            self._end(f"The database cannot be used ({type(error).__name__}).", 2)

    def _do(self, part: str, name: str, options: dict[str, Any]) -> str:
        if part == "show":
            check_queue_name(name)
            return ""
        user = person(options["user"])
        if part == "limit":
            limits = {field: _number(field, options[field]) for field in LIMITS if options[field] is not None}
            more: dict[str, Any] = limits | CLI
            receipt = moves.set_limits(user, name, note=options["note"], **more)
            return f"The limits of {name} {'are changed' if receipt.first else 'stood so already'}."
        move, _text, said = MOVES[part]
        receipt = move(user, name, note=options["note"], **CLI)
        return f"The queue {name} {said}" + ("" if receipt.first else " It stood so already.")

    def _print(self, name: str, said: str, *, as_json: bool) -> None:
        policy = queues.policy_of(name)
        if policy is None:
            raise UnknownQueue("No queue %(queue)s is declared.", queue=name)
        stands = ends.of_queue(name)
        if as_json:
            self.stdout.write(json.dumps({"policy": asdict(policy), "orders": asdict(stands)}, sort_keys=True))
            return
        for line in (said, *_words(policy, stands)):
            if line:
                self.stdout.write(line)

    def _end(self, sentence: str, status: int) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(status)


def _number(field: str, text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidLimit(
            field, "%(limit)s must be a whole number, and this is %(value)s.", limit=field, value=shown(text)
        )
    return int(text)


def _words(policy: QueuePolicy, stands: ends.Ends) -> list[str]:
    dead = ", ".join(f"{n:,} {reason}" for reason, n in stands.dead)
    gates = ("accepts orders" if policy.accepting else "closed") + (", paused" if policy.paused else ", hands out")
    settings = (f"{field} {'none' if value is None else value}" for field, value in sorted(asdict(policy).items()))
    return [
        f"{policy.name}: {gates}",
        f"orders: {stands.done:,} delivered, {stands.in_quarantine:,} in quarantine{f' ({dead})' if dead else ''}, "
        f"{stands.unfinished:,} unfinished",
        "settings: " + ", ".join(part for part in settings if not part.startswith(("name ", "accepting ", "paused "))),
    ]
