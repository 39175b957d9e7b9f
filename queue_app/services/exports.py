"""Exports: what a filter shows as CSV or JSON lines, recorded in the audit before the first byte leaves (DESIGN 9).

The rows come in bites, each a query of its own. While bytes go to a client, however slow, no cursor and no transaction
is open, for one paused reader would stop every commit on SQLite (DESIGN section 10). A reader that never rests would make
every commit there meet a bite and wait for its end, and longer when the machine is busy: so the walk rests between bites.

A file is as of one instant: what comes later is not in it. A row that leaves the list before its bite is read is missing,
and the file then says how many it holds.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from queue_app.policy import cells
from queue_app.policy.cells import Column, Row
from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.refusals import shown
from queue_app.services.asking import Somebody, allowed
from queue_app.services.people import Actor
from queue_app.store import chain, database

BITE = 200
REST_S = 0.003  # of a walk after each bite and each look; reading one takes about 1 ms on SQLite
LOOK = 1_000  # rows to one statement, whether they match or not: a commit on SQLite waits for its end
MAX_ROWS = 1_000_000  # more makes a file that no spreadsheet opens and a request that runs for many minutes
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
_NAME = re.compile(r"[a-z][a-z-]{0,31}")


class UnknownFormat(SnackOpsError, ValueError):
    """An export is asked for in a format that there is not."""


class TooManyRows(SnackOpsError):
    """The filter shows more rows than one file may hold."""


def rest() -> None:
    """Leave SQLite's file to those who write, between two looks of one bite."""
    time.sleep(REST_S)


@dataclass(frozen=True, slots=True)
class Content:
    """What a file will hold: `rows` counted, and `bites` still unread, as of one instant.

    `bites` gives rows in the order of the columns, at most `BITE` at a time, each from a query of its own; never a payload
    or a comment.
    """

    rows: int
    as_of_ms: int
    bites: Iterator[Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Export:
    """A recorded export, ready to be sent: `chunks` are bytes, one bite each."""

    file_name: str
    content_type: str
    chunks: Iterator[bytes]


def in_bites[R](
    read: Callable[[R | None, int], Sequence[R]], limit: int = BITE, *, rest: Callable[[float], object] = time.sleep
) -> Iterator[Sequence[R]]:
    """Walk a list by its key: `read(after, limit)` gives the rows after the row `after` (None at first), in order.

    `rest(seconds)` leaves SQLite's file, and the processor, to those who write, after each bite that is not the last.
    """
    last: R | None = None
    while rows := read(last, limit):
        yield rows
        if len(rows) < limit:
            return
        last = rows[-1]
        rest(REST_S)


def export(
    user: Somebody,
    name: str,
    columns: Sequence[Column],
    content: Callable[[Actor], Content],
    *,
    filter: str,  # noqa: A002 - the word of the pages
    form: str,
    rights: Sequence[str] = (),
    channel: str = "console",
    proof: str = "session",
) -> Export:
    """Record the export and return its bytes, still unread. Call it outside a transaction.

    `content` reads for the person, who was found to have the right `export` and also `rights`. `filter` is its canonical
    ASCII text. Raises NotAllowed (recorded) before anything is read, UnknownFormat, TooManyRows; then nothing is sent.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("The name of an export is 1 to 32 of a-z and -.")
    target = f"export:{name}"
    actor = _allowed(user, target, ("export", *rights), channel, proof)
    if form not in FORMATS:
        raise UnknownFormat(gettext_noop("There is no export format %(format)s."), format=shown(form))
    found = _no_more_than_fits(content(actor))
    told: dict[str, Any] = {"filter": filter, "as_of_ms": found.as_of_ms, "rows": found.rows, "format": form}

    @database.retried
    def record() -> tuple[int, str]:
        with database.write():
            return chain.append([actor.event("export", target, database.now_ms(), **told)])

    seq, head = record()
    facts = _Facts(name, filter, found.as_of_ms, found.rows, f"{seq}:{head}")
    stamp = re.sub(r"[^0-9TZ]", "", cells.utc(found.as_of_ms).partition(".")[0] + "Z")
    writer = _csv if form == "csv" else _json
    return Export(f"snackops-{name}-{stamp}.{form}", FORMATS[form], writer(columns, found.bites, facts))


def _allowed(user: Somebody, target: str, rights: Sequence[str], channel: str, proof: str) -> Actor:
    for right in rights:
        actor = allowed(user, right, target, channel=channel, proof=proof)
    return actor


def _no_more_than_fits(found: Content) -> Content:
    if found.rows > MAX_ROWS:
        raise TooManyRows(
            gettext_noop("The filter shows %(rows)s rows, and one file holds at most %(most)s. Narrow the filter."),
            rows=f"{found.rows:,}",
            most=f"{MAX_ROWS:,}",
        )
    return found


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a file says of itself. The anchor covers the record of this very export."""

    name: str
    filter: str
    as_of_ms: int
    rows: int
    anchor: str


def _csv(columns: Sequence[Column], bites: Iterator[Sequence[Row]], facts: _Facts) -> Iterator[bytes]:
    head = [
        ("export", facts.name),
        ("filter", facts.filter),
        ("as_of", cells.utc(facts.as_of_ms)),
        ("rows", str(facts.rows)),
        ("anchor", facts.anchor),
    ]
    yield _bytes(cells.BOM + cells.csv_head(columns, head))
    written = 0
    for rows in bites:
        written += len(rows)
        yield _bytes(cells.csv_records(columns, rows))
    if written != facts.rows:
        yield _bytes(cells.csv_facts(columns, [("written", str(written))]))


def _json(columns: Sequence[Column], bites: Iterator[Sequence[Row]], facts: _Facts) -> Iterator[bytes]:
    yield _bytes(
        cells.json_line(
            {
                "export": facts.name,
                "filter": facts.filter,
                "as_of": cells.utc(facts.as_of_ms),
                "as_of_ms": facts.as_of_ms,
                "rows": facts.rows,
                "anchor": facts.anchor,
            }
        )
    )
    written = 0
    for rows in bites:
        written += len(rows)
        yield _bytes(cells.json_records(columns, rows))
    if written != facts.rows:  # rows left the list while the file was being sent: say so rather than look whole
        yield _bytes(cells.json_line({"written": written}))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
