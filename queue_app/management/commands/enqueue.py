"""`manage.py enqueue`: the orders of a file into the queue."""

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from queue_app.management.help_lines import HelpLines
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.lines import NotReadable
from queue_app.policy.order_files import FORMATS, read_orders
from queue_app.policy.orders import check_queue_name
from queue_app.services import queue
from queue_app.services.intake import IntakeStopped, SourceBroken, Tally, chunks_of, patiently, take_in

MAX_BATCH = 5_000
MAX_WAIT_S = 86_400
COLUMNS = """
columns of TSV and CSV (first line: their names) and keys of JSON lines:
  id            required; 1 to 64 of A-Z a-z 0-9 . _ : - and begins with a letter or digit
  quantity      required; a whole number from 1 to 1,000,000, in a table in plain digits
  queue         optional; else --queue
  order_key     optional; the key within which a queue that keeps order does so
  max_attempts  optional; 1 to 100, else the queue's own
  deadline_ms   optional; milliseconds since 1970 (UTC), else the queue's own
  the rest      the payload, at most 16 KiB; in a table every further column, as text just as it
                stands; in JSON lines one object under the key payload, or all further keys

The text is UTF-8, a line at most 64 KiB. TSV knows no quotes. A quoted cell of CSV may hold line
breaks. With --sample the columns are order_id, quantity, item_name, choice_description and
item_total_price, and the id is o{order_id}-{n}, where n counts the lines of that order from 1
(one counter per order id is kept in memory).

A line that cannot be accepted is named on standard error and does not stop the others. The same
file again changes nothing. When standard output or standard error is closed, the intake goes on.

exit status: 0 all lines are in; 1 some are conflicting or rejected; 2 the file could not be
read, or the intake had to stop (the sentence says where; run it again to go on); 130 Ctrl-C.
"""


class Command(BaseCommand):
    """Reads, reports and ends with the count; the rules are in `policy`, the batches in `services.intake`."""

    help = "Take the orders of a TSV, CSV or JSON lines file into the queue."

    def add_arguments(self, parser: CommandParser) -> None:
        """The options; the columns are documented below them."""
        parser.formatter_class = HelpLines
        parser.epilog = COLUMNS
        parser.add_argument("file", metavar="FILE", help="the file, or - for standard input")
        parser.add_argument(
            "--format", choices=FORMATS, default="auto", help="default: by the name, then the first line"
        )
        parser.add_argument("--sample", action="store_true", help="the table is in the form of the sample orders")
        parser.add_argument("--queue", default="snacks", help="the queue of lines that name none (default: snacks)")
        parser.add_argument("--batch", type=int, default=500, help="orders per commit, 1 to 5000 (default: 500)")
        parser.add_argument(
            "--wait-s",
            type=float,
            default=0,
            metavar="S",
            help="when the queue is full, wait so many seconds for room since an order got in (default: refuse at once)",
        )
        parser.add_argument("--json", action="store_true", help="print the count as one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Exit statuses as documented in COLUMNS."""
        if not 1 <= options["batch"] <= MAX_BATCH:
            raise CommandError(f"--batch must be from 1 to {MAX_BATCH:,}.", returncode=2)
        if not 0 <= options["wait_s"] <= MAX_WAIT_S:
            raise CommandError(f"--wait-s must be from 0 to {MAX_WAIT_S:,}.", returncode=2)
        try:
            default_queue = check_queue_name(options["queue"])
        except InvalidOrder as error:
            raise CommandError(str(error), returncode=2) from None
        tally = Tally()
        status, sentence = self._run(default_queue, tally, options)
        self._end_progress()
        if sentence:
            self._say(self.stderr, sentence)
        self._say(self.stdout, _json(tally, status) if options["json"] else _words(tally))
        if status:
            sys.exit(status)

    def _run(self, default_queue: str, tally: Tally, options: dict[str, Any]) -> tuple[int, str]:
        name = options["file"]
        with _opened(name) as source:
            try:
                entries = read_orders(
                    chunks_of(source),
                    form=options["format"],
                    name=name,
                    sample=options["sample"],
                    queue=default_queue,
                )
                take_in(
                    entries,
                    tally,
                    take=patiently(queue.enqueue_many, options["wait_s"]),
                    batch=options["batch"],
                    report=self._report,
                    progress=self._progress,
                )
            except (NotReadable, SourceBroken) as error:
                raise CommandError(f"Cannot read {name!a}: {error}", returncode=2) from None
            except IntakeStopped as error:
                return 2, str(error)
            except KeyboardInterrupt:
                return 130, "Interrupted; run it again to go on."
        return (0 if tally.good else 1), ""

    def _report(self, line: int, why: str) -> None:
        self._end_progress()
        self._say(self.stderr, f"line {line}: {why}")

    def _progress(self, tally: Tally) -> None:
        if self.stderr.isatty():
            self._say(self.stderr, f"\r\x1b[K{_words(tally)}", end="")

    def _end_progress(self) -> None:
        if self.stderr.isatty():
            self._say(self.stderr, "\r\x1b[K", end="")

    def _say(self, stream: OutputWrapper, text: str, end: str = "\n") -> None:
        """Print, or be quiet for good when nobody can read it: the reader has left (`| head`), the stream is closed."""
        if stream._out is None:  # the process was started with `>&-`
            return
        try:
            stream.write(text, style_func=str, ending=end)
            stream.flush()
        except OSError as error:
            # What is still buffered would raise again when the interpreter flushes at its end.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, cast("IO[str]", stream).fileno())
            os.close(nowhere)
            if stream is self.stdout and error.errno != errno.EPIPE:
                self._say(self.stderr, f"The count cannot be printed: {os.strerror(error.errno or 0)}.")


@contextmanager
def _opened(name: str) -> Iterator[BufferedReader]:
    if name == "-":
        if sys.stdin is None:
            raise CommandError("Standard input is closed.", returncode=2)
        yield cast("BufferedReader", sys.stdin.buffer)
        return
    try:
        source = Path(name).open("rb")  # noqa: SIM115 - closed below; the sentence is for a failed open only
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "no such name"
        raise CommandError(f"Cannot read {name!a}: {why}.", returncode=2) from None
    with source:
        yield source


def _words(tally: Tally) -> str:
    return (
        f"{tally.lines:,} order lines: {tally.accepted:,} accepted, {tally.duplicate:,} duplicate, "
        f"{tally.conflicting:,} conflicting, {tally.rejected:,} rejected"
    )


def _json(tally: Tally, status: int) -> str:
    return json.dumps({**asdict(tally), "lines": tally.lines, "complete": status < 2}, sort_keys=True)
