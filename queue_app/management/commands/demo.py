"""`manage.py demo`: everything on this machine in one go, with real orders and induced faults."""

import fcntl
import json
import signal
import socket
import sqlite3
import threading
import urllib.error
import urllib.request
from typing import IO, Any, NoReturn

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connections

from queue_app import conf
from queue_app.demo.children import CannotStart, Child, Children, environment, python, wait_until_up
from queue_app.demo.past import make_past
from queue_app.demo.people import PEOPLE, renew_people

# one big cause, one small one, and noise that retries repair; the old cause is in queue_app/demo/past.py
FAULTS = (
    {"name": "stock system down", "status": 503, "share": 0.12, "for_good": True},
    {"name": "unknown item", "status": 422, "share": 0.006, "for_good": True},
    {"name": "hiccup", "status": 500, "share": 0.03},
    {"name": "lost answer", "drop": "after", "share": 0.01},
)
HOST = "127.0.0.1"


class Command(BaseCommand):
    """Sets up what is missing, starts every process, prints where to look, and stops all at Ctrl-C."""

    help = "Start the whole product on this machine with real orders, and a receiver that fails on purpose."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Ports, number of workers, and the repair of the receiver."""
        parser.add_argument("--port", type=int, default=8000, help="of the console (default %(default)s)")
        parser.add_argument("--receiver-port", type=int, default=8081, help="of the receiver (default %(default)s)")
        parser.add_argument("--workers", type=int, default=2, help="how many workers (default %(default)s)")
        parser.add_argument("--no-feed", action="store_true", help="leave the sample orders out")
        parser.add_argument("--repair", action="store_true", help="tell the running receiver that it is repaired")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until Ctrl-C or SIGTERM; exit status 2 with one sentence when something is in the way."""
        if options["repair"]:
            self._repair(options["receiver_port"])
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        lock = self._only_demo()
        for port, what in ((options["port"], "--port"), (options["receiver_port"], "--receiver-port")):
            self._need_free(port, what)
        passwords = self._prepare()
        children = Children(self._say)
        alive = False
        try:
            self._start(children, options)
            self._welcome(options["port"], passwords)
            alive = children.watch(stop, conf.data_dir())
        except CannotStart as error:
            self.stderr.write(str(error))
        finally:
            self._say("Stopping ...")
            children.stop()
            lock.close()
        if not alive:
            raise SystemExit(1)
        self._say("Stopped. The data stays; the same command goes on with it.")

    def _prepare(self) -> dict[str, str]:
        try:
            call_command("migrate", verbosity=0)
            passwords = renew_people()
            make_past()
        except (DatabaseError, sqlite3.Error, OSError) as error:
            self._give_up(f"The database cannot be set up in {conf.data_dir()}: {_plain(error)}.")
        finally:
            connections.close_all()  # from here on only the children use the file
        conf.static_root().mkdir(parents=True, exist_ok=True)
        return passwords

    def _start(self, children: Children, options: dict[str, Any]) -> None:
        receiver_url = f"http://{HOST}:{options['receiver_port']}"
        logs = conf.data_dir() / "logs"
        logs.mkdir(exist_ok=True)
        env = environment(SNACKOPS_RECEIVER_URL=receiver_url)

        def child(name: str, command: list[str]) -> Child:
            log = logs / f"{name.replace(' ', '-')}.log"
            log.write_bytes(b"")
            return children.add(Child(name, command, env, log))

        database = str(conf.data_dir() / "receiver.sqlite3")
        faults = [part for fault in FAULTS for part in ("--fault", json.dumps(fault))]
        port = str(options["receiver_port"])
        receiver = child("receiver", python("receiver", "--demo", "--db", database, "--port", port, *faults))
        wait_until_up(f"{receiver_url}/livez", receiver)
        web = child("web server", _web_command(options["port"]))
        wait_until_up(f"http://{HOST}:{options['port']}/livez", web)
        for number in range(1, options["workers"] + 1):
            child(f"worker {number}", python("worker", "--owner", f"worker-{number}"))
        child("redriver", python("redriver", "--owner", "redriver-1"))
        if not options["no_feed"]:
            child("feeder", python("demo_feed"))

    def _welcome(self, port: int, passwords: dict[str, str]) -> None:
        self._say(f"\nSnackOps runs at  http://{HOST}:{port}/\n")
        for name, password in passwords.items():
            self._say(f"  {PEOPLE[name]:<10}  name {name:<7}  password {password}")
        self._say(
            "\nThe passwords are new at every start and shown only here. What to try:\n"
            "  1. Sign in as olivia and read the overview: orders flow, about one in eight ends in quarantine.\n"
            "  2. Open the largest cause, look at an order, record what you found.\n"
            "  3. Ask for a redrive as olivia; approve it as liam. The receiver still fails: the trial stops it.\n"
            "  4. Say that the receiver is repaired:  uv run manage.py demo --repair   and let liam go on.\n"
            "  5. Sign in as aki and follow who did what.\n"
            f"Logs are in {conf.data_dir() / 'logs'}. Ctrl-C stops everything.\n"
        )

    def _repair(self, port: int) -> None:
        request = urllib.request.Request(
            f"http://{HOST}:{port}/faults",
            data=b'{"faults": []}',
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=10):  # noqa: S310
                self._say("The receiver is repaired: from now on it takes every order.")
        except (urllib.error.URLError, OSError):
            self._give_up(f"No demo receiver answers at {HOST} port {port}: start `manage.py demo` first.")

    def _only_demo(self) -> IO[str]:
        path = conf.data_dir() / "demo.lock"
        try:
            lock = path.open("w")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._give_up(f"A demo is running with the data in {conf.data_dir()} already: stop it first.")
        except OSError as error:
            self._give_up(f"{path} cannot be written: {error.strerror}.")
        return lock

    def _need_free(self, port: int, option: str) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except (OSError, OverflowError) as error:
                why = getattr(error, "strerror", None) or "not a port"
                self._give_up(f"Port {port} of {HOST} cannot be used ({why}): choose another with {option}.")

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()

    def _give_up(self, sentence: str) -> NoReturn:
        self.stderr.write(sentence)
        raise SystemExit(2)


def _web_command(port: int) -> list[str]:
    return [
        *python()[:1],
        "-m",
        "gunicorn",
        "snackops.wsgi:application",
        "--worker-class=gthread",
        "--threads=8",
        f"--bind={HOST}:{port}",
        "--no-control-socket",
        "--graceful-timeout=5",
        f"--chdir={conf.base_dir()}",
    ]


def _plain(error: Exception) -> str:
    text = str(error).lower()
    for part, words in (("full", "the disk is full"), ("readonly", "it is read-only"), ("locked", "it is locked")):
        if part in text:
            return words
    return getattr(error, "strerror", None) or type(error).__name__
