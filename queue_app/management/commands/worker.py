"""`manage.py worker`: delivers the orders of one queue until told to stop."""

import os
import re
import signal
import socket
from types import FrameType
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from queue_app import conf
from queue_app.delivery.http import HttpDelivery
from queue_app.delivery.worker import DrainOver, Settings, Worker
from queue_app.policy.orders import check_owner
from queue_app.policy.queues import check_times
from queue_app.store import queues


class Command(BaseCommand):
    """Parses arguments, checks the times, handles signals."""

    help = (
        "Deliver the orders of a queue over HTTP. SIGTERM or Ctrl-C: the running delivery ends, the rest is given back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which queue, under which name, how many at once."""
        parser.add_argument("--queue", default="snacks", help="the queue (default %(default)s)")
        parser.add_argument("--owner", default="", help="the worker's name (default host and process id)")
        parser.add_argument("--lease-ms", type=int, help="lease in ms (default the queue's)")
        parser.add_argument("--prefetch", type=int, default=1, help="jobs taken at once (default %(default)s)")
        parser.add_argument("--drain-s", type=float, default=30, help="time for the running delivery at the end")
        parser.add_argument("--until-idle", action="store_true", help="end when nothing is due")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Work until told to stop; exit status 2 with one sentence when the settings cannot work."""
        connect_ms, read_ms, total_ms = conf.delivery_times_ms()
        policy = queues.policy_of(options["queue"])
        if policy is None:
            self._give_up(f"No queue {ascii(options['queue'])[:40]} is declared.")
        lease_ms = policy.lease_ms if options["lease_ms"] is None else options["lease_ms"]
        try:
            owner = check_owner(options["owner"] or _own_name())
            check_times(total_ms, lease_ms)
            if not 1 <= options["prefetch"] <= 1_000:
                raise ValueError("--prefetch must be a whole number from 1 to 1,000.")
            if not 0 <= options["drain_s"] <= 3_600:
                raise ValueError("--drain-s must be a number of seconds from 0 to 3,600.")
        except ValueError as error:
            self._give_up(str(error))
        settings = Settings(
            owner, policy.name, options["prefetch"], options["lease_ms"], total_ms, options["until_idle"]
        )
        with HttpDelivery(conf.receiver_url(), connect_ms=connect_ms, read_ms=read_ms, total_ms=total_ms) as deliver:
            run(Worker(deliver, settings), options["drain_s"])

    def _give_up(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(2)


def run(worker: Worker, drain_s: float) -> None:
    """Run the worker with SIGTERM and SIGINT meaning: end what runs within `drain_s` seconds, claim nothing more."""

    def told(_number: int, _frame: FrameType | None) -> None:
        worker.stop()
        signal.setitimer(signal.ITIMER_REAL, max(drain_s, 0.001))

    def over(_number: int, _frame: FrameType | None) -> None:
        if worker.delivering:
            raise DrainOver

    signal.signal(signal.SIGALRM, over)
    signal.signal(signal.SIGTERM, told)
    signal.signal(signal.SIGINT, told)
    try:
        worker.run()
    except DrainOver:
        worker.end()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _own_name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "", socket.gethostname()) or "host"
    return f"{host[:100]}-{os.getpid()}"
