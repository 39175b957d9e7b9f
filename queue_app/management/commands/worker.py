"""`manage.py worker`: delivers the orders of one queue until told to stop."""

import os
import re
import signal
import socket
from dataclasses import asdict
from types import FrameType
from typing import Any, NoReturn

import structlog
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError

from queue_app import conf
from queue_app.delivery.holding import Tally
from queue_app.delivery.http import HttpDelivery
from queue_app.delivery.troubles import trouble_of
from queue_app.delivery.worker import Settings, Worker
from queue_app.management.help_lines import HelpLines
from queue_app.policy.orders import check_owner
from queue_app.policy.queues import check_start
from queue_app.reads import ends
from queue_app.store import queues

log = structlog.get_logger(__name__)

MAX_CONCURRENCY = 256
STUCK = (
    "{n:,} orders of this ordered queue wait behind orders in quarantine: redrive those, "
    "or let a team lead record that later ones may pass."
)
EPILOG = """
SIGTERM or Ctrl-C: nothing new begins, what runs may end within --drain-s, the rest is given back with
its try not spent. `workers drain NAME`, or the page of the workers, says the same from anywhere.

exit status: 0 told to stop, or all ended, and nothing of its own is left behind; 1 the time for what
ran was over: those orders come back when their leases end; or, with --until-empty, the rest waits
behind an order in quarantine for a person; 2 the settings cannot work, or the database cannot be used
"""


class Command(BaseCommand):
    """Parses arguments, checks the settings, handles signals, says at the end how many ended how."""

    help = "Deliver the orders of a queue over HTTP."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which queue, under which name, how many at once, when to end."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("--queue", default="snacks", help="the queue (default %(default)s)")
        parser.add_argument("--owner", default="", help="the worker's name (default host and process id)")
        parser.add_argument("--concurrency", type=int, default=1, help="deliveries at once (default %(default)s)")
        parser.add_argument("--lease-ms", type=int, help="lease in ms (default the queue's)")
        parser.add_argument("--prefetch", type=int, default=0, help="jobs in hand (default: as fast as they end)")
        parser.add_argument("--drain-s", type=float, default=30, help="time for running deliveries at the end")
        ends_when = parser.add_mutually_exclusive_group()
        ends_when.add_argument("--until-idle", action="store_true", help="end when nothing is due")
        ends_when.add_argument(
            "--until-empty",
            action="store_true",
            help="end when nothing is unfinished, tries again included, or the queue was cancelled; close it first",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Work until told to stop; exit statuses as documented in EPILOG."""
        connect_ms, read_ms, total_ms = conf.delivery_times_ms()
        try:
            settings = self._settings(total_ms, options)
            deliver = HttpDelivery(conf.receiver_url(), connect_ms=connect_ms, read_ms=read_ms, total_ms=total_ms)
        except ValueError as error:
            self._give_up(str(error))
        except (DatabaseError, InterfaceError) as error:
            self._give_up(f"The database cannot be used ({trouble_of(error)}); nothing was begun.")
        with deliver:
            tally = run(Worker(deliver, settings))
        log.info("worker_ended", worker=settings.owner, queue=settings.queue, **asdict(tally))
        self._say(tally, settings.queue)
        if tally.left or tally.stuck:
            raise SystemExit(1)

    def _settings(self, total_ms: int, options: dict[str, Any]) -> Settings:
        policy = queues.policy_of(options["queue"])
        if policy is None:
            raise ValueError(f"No queue {ascii(options['queue'])[:40]} is declared.")
        owner = check_owner(options["owner"] or _own_name())
        check_start(policy, total_ms=total_ms, lease_ms=options["lease_ms"])
        if not 1 <= options["concurrency"] <= MAX_CONCURRENCY:
            raise ValueError(f"--concurrency must be a whole number from 1 to {MAX_CONCURRENCY}.")
        if not 0 <= options["prefetch"] <= 1_000:
            raise ValueError("--prefetch must be a whole number from 1 to 1,000, or 0.")
        if not 0 <= options["drain_s"] <= 3_600:
            raise ValueError("--drain-s must be a number of seconds from 0 to 3,600.")
        return Settings(
            owner,
            policy.name,
            options["prefetch"],
            options["lease_ms"],
            total_ms,
            options["until_idle"],
            options["until_empty"],
            options["concurrency"],
            int(options["drain_s"] * 1000),
        )

    def _say(self, tally: Tally, queue: str) -> None:
        """How the attempts ended, and how the queue stands: closed or empty does not mean delivered."""
        try:
            stands = _queue_words(ends.of_queue(queue))
        except (DatabaseError, InterfaceError):
            stands = "How the queue stands is not known: the database cannot be read."
        try:
            self.stdout.write(_words(tally))
            if tally.stuck:
                self.stdout.write(STUCK.format(n=tally.stuck))
            self.stdout.write(stands)
            self.stdout.flush()
        except (OSError, AttributeError):  # nobody reads it, or there is no standard output at all
            pass

    def _give_up(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(2)


def run(worker: Worker) -> Tally:
    """Run the worker, with SIGTERM and SIGINT meaning `stop`, also when they come again."""

    def told(_number: int, _frame: FrameType | None) -> None:
        worker.stop()

    signal.signal(signal.SIGTERM, told)
    signal.signal(signal.SIGINT, told)
    return worker.run()


def _words(tally: Tally) -> str:
    return (
        f"{tally.ended:,} tries ended: {tally.ok:,} delivered, {tally.retry:,} to be tried again or given up, "
        f"{tally.permanent:,} refused by the receiver, {tally.unknown:,} with an unknown answer, "
        f"{tally.refused:,} too late; {tally.back:,} given back unbegun, {tally.left:,} left to their leases."
    )


def _queue_words(stands: ends.Ends) -> str:
    dead = ", ".join(f"{n:,} {reason}" for reason, n in stands.dead)
    return (
        f"The queue {stands.queue} as of now: {stands.done:,} delivered, {stands.in_quarantine:,} in quarantine"
        + (f" ({dead})" if dead else "")
        + f", {stands.unfinished:,} unfinished; it {'accepts' if stands.accepting else 'does not accept'} orders."
    )


def _own_name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "", socket.gethostname()) or "host"
    return f"{host[:100]}-{os.getpid()}"
