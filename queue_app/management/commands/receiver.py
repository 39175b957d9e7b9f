"""`manage.py receiver`: the demo receiver as a process of its own (its promises: `queue_app/receiver/__init__.py`)."""

import argparse
import signal
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from queue_app.clock import monotonic_ms, now_ms
from queue_app.receiver import strict_json
from queue_app.receiver.database import Unusable
from queue_app.receiver.faults import Fault, check_faults, read_faults
from queue_app.receiver.ledger import Ledger
from queue_app.receiver.server import Receiver, serve


class Command(BaseCommand):
    """Parses arguments, starts the receiver, waits for SIGTERM or Ctrl-C."""

    help = "Run the demo receiver: it takes orders over HTTP, moves its stock once per id, and fails when told to."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to listen, where to keep the records, how to fail."""
        parser.add_argument("--db", required=True, metavar="PATH", help="SQLite file of its own; made if missing")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default %(default)s)")
        parser.add_argument("--port", type=_port, default=8081, help="0 takes a free one (default %(default)s)")
        parser.add_argument(
            "--fault",
            action="append",
            default=[],
            metavar="JSON",
            help='such as {"status": 503, "share": 0.02}; repeat',
        )
        parser.add_argument("--faults", metavar="FILE", help='JSON file: {"faults": [...]}; before those of --fault')
        parser.add_argument(
            "--demo",
            action="store_true",
            help="POST /faults replaces the faults; the replacement outlives restarts and wins over --fault",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until told to stop. Exit status 2 with one sentence when it cannot start."""
        # Blocked before any thread starts, so that every thread inherits it and only `sigwait` takes the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        try:
            faults = _faults(options["faults"], options["fault"])
        except ValueError as error:
            self._give_up(str(error))
        try:
            ledger = Ledger(options["db"], now_ms=now_ms, faults=faults, demo=options["demo"])
        except Unusable as error:
            self._give_up(str(error))
        try:
            receiver = self._listen(ledger, options["host"], options["port"])
            self.stdout.write(f"receiver listening on {receiver.url}")
            self.stdout.flush()
            signal.sigwait({signal.SIGTERM, signal.SIGINT})
            receiver.close()
        finally:
            ledger.close()

    def _listen(self, ledger: Ledger, host: str, port: int) -> Receiver:
        try:
            return serve(ledger, host, port, monotonic_ms=monotonic_ms)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "not a host name"
            self._give_up(f"The receiver cannot listen on {host} port {port}: {reason}.")

    def _give_up(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(2)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError("a port is a whole number from 0 to 65535")
    return int(text)


def _faults(file: str | None, rules: list[str]) -> tuple[Fault, ...]:
    """The faults of the file, then those of the options. Raises ValueError with one sentence."""
    found: list[object] = []
    if file:
        try:
            raw = Path(file).read_bytes()
        except OSError as error:
            raise ValueError(f"The faults file cannot be read: {error.strerror}.") from None
        found += [fault.as_json() for fault in read_faults(raw)]
    for rule in rules:
        found.append(strict_json.read(rule.encode()))
    return check_faults(found)
