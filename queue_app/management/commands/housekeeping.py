"""`manage.py housekeeping`: remove done orders that their queue keeps no longer, and tidy what gathers by itself."""

import json
import os
import signal
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from queue_app.management.help_lines import HelpLines
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.retention import done_before
from queue_app.services import housekeeping
from queue_app.services.housekeeping import Round
from queue_app.store import database

EPILOG = """
A queue keeps its done orders for done_kept_ms; null, the default, keeps them for ever. Only done
orders are removed, and never one that an open redrive, an unfinished batch or an investigation
refers to. Each leaves a tombstone: its id still answers `duplicate` or `Conflict`, and its page
says that it was delivered and removed. Failures, redrives and the record stay.

--archive FILE appends one JSON line for each order before it is removed, with its contents: the
file is made for its owner only. After a crash a line may stand there twice; none is missing.

Run it once a day or once an hour (cron, a systemd timer). Workers and pages go on meanwhile; it may
be killed at any point, and the next run goes on.

exit status: 0 done; 1 stopped before the end (a recount of the counters is at work, or a signal);
2 wrong usage, the archive cannot be written, or the database cannot be used
"""


class ArchiveFile:
    """A file of lines for its owner only; what `append` took is on the disk when it returns."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(path, flags, 0o600)
        try:
            found = os.fstat(self._handle)
            if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
                raise PermissionError("it must be a plain file that only its owner may read (chmod 600)")
            if found.st_size and os.pread(self._handle, 1, found.st_size - 1) != b"\n":
                self._write(b"\n")  # a crash cut the last line; its order was not removed
            os.fsync(self._handle)
            self._sync_folder(path.parent)
        except BaseException:
            os.close(self._handle)
            raise

    @staticmethod
    def _sync_folder(folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)  # or a power cut could forget the name of a new file
        finally:
            os.close(handle)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._handle, data) :]

    def append(self, lines: Sequence[str]) -> None:
        """Write the lines and wait until they are on the disk."""
        self._write("".join(lines).encode())
        os.fsync(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)


class Command(BaseCommand):
    """Parses arguments, opens the archive, handles signals; the rules are in `services.housekeeping`."""

    help = "Remove done orders that their queue keeps no longer, and tidy sessions, presences and counters."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which queue, whether to archive, whether to change anything."""
        parser.formatter_class = HelpLines
        parser.epilog = EPILOG
        parser.add_argument("--queue", help="only done orders of this queue (default all)")
        parser.add_argument("--archive", metavar="FILE", type=Path, help="append each order to this file first")
        parser.add_argument("--dry-run", action="store_true", help="count what would be removed; change nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in EPILOG."""
        try:
            rules = housekeeping.rules(options["queue"])
            if options["dry_run"]:
                self._tell_dry(housekeeping.removable(done_before(rules, database.now_ms())), rules, options["json"])
                return
            done, stopped = self._run(options["queue"], options["archive"])
            tidied = housekeeping.tidy()
        except InvalidOrder as error:
            raise CommandError(str(error), returncode=2) from None
        except OSError as error:
            why = error.strerror or str(error)
            raise CommandError(f"The archive {options['archive']} cannot be written: {why}.", returncode=2) from None
        except DatabaseError:
            raise CommandError(
                "The database cannot be used; the next run goes on where this one was.", returncode=2
            ) from None
        self._tell(done, tidied, rules, options["json"])
        if stopped or done.kept_off:
            raise SystemExit(1)

    def _run(self, queue: str | None, path: Path | None) -> tuple[Round, bool]:
        stop = threading.Event()

        def told(_number: int, _frame: FrameType | None) -> None:
            stop.set()

        usual = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            if path is None:
                return housekeeping.remove_round(queue, wait=stop.wait, stopped=stop.is_set), stop.is_set()
            with ArchiveFile(path) as archive:
                done = housekeeping.remove_round(queue, archive=archive.append, wait=stop.wait, stopped=stop.is_set)
                return done, stop.is_set()
        finally:
            for number, handler in usual.items():
                signal.signal(number, handler)

    def _tell_dry(self, found: dict[str, int], rules: dict[str, int | None], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"would_remove": found, "kept_ms": rules}, sort_keys=True))
            return
        for queue, kept in rules.items():
            self.stdout.write(
                f"{queue}: keeps done orders for ever"
                if kept is None
                else f"{queue}: would remove {found.get(queue, 0):,}"
            )

    def _tell(self, done: Round, tidied: dict[str, int], rules: dict[str, int | None], as_json: bool) -> None:
        if as_json:
            record = {
                "removed": dict(done.removed),
                "kept_ms": rules,
                "bites": done.bites,
                "longest_lock_ms": done.held_ms,
                "tidied": tidied,
                "kept_off": done.kept_off,
            }
            self.stdout.write(json.dumps(record, sort_keys=True))
            return
        for queue, kept in rules.items():
            if kept is None:
                self.stdout.write(f"{queue}: keeps done orders for ever (done_kept_ms is not set)")
            else:
                self.stdout.write(f"{queue}: removed {done.removed[queue]:,} done orders")
        self.stdout.write("tidied: " + ", ".join(f"{name} {n:,}" for name, n in tidied.items()))
        if done.kept_off:
            self.stdout.write("Stopped: the counters are being recounted. Run it again afterwards.")
