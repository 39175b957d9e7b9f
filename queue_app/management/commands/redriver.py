"""`manage.py redriver`: makes lists and carries out approved redrives until told to stop."""

import os
import re
import signal
import socket
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from queue_app.delivery.redriver import Redriver
from queue_app.policy.orders import check_owner


class Command(BaseCommand):
    """Parses arguments and handles signals."""

    help = (
        "Carry out approved redrives at their rate. Any number may run; the rate holds over all of them. "
        "SIGTERM or Ctrl-C: it ends after the step at hand, and whoever comes next goes on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Under which name, and whether to stay."""
        parser.add_argument("--owner", default="", help="the redriver's name (default host and process id)")
        parser.add_argument("--once", action="store_true", help="do what is due now and end")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Work until told to stop; exit status 2 with one sentence for a bad name."""
        try:
            redriver = Redriver(check_owner(options["owner"] or _own_name()))
        except ValueError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None

        def told(_number: int, _frame: FrameType | None) -> None:
            redriver.stop()

        signal.signal(signal.SIGTERM, told)
        signal.signal(signal.SIGINT, told)
        if options["once"]:
            redriver.once()
            redriver.leave()
        else:
            redriver.run()


def _own_name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "", socket.gethostname()) or "host"
    return f"redriver-{host[:90]}-{os.getpid()}"
