"""Many orders from a file into the queue: in batches, each committed before the next is read, whatever some lines are.

The same file can be taken in again at any time: what is in already answers `duplicate`. So whatever stops an intake,
the way on is to run it again.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from django.db import Error as DatabaseFailure

from queue_app import clock
from queue_app.policy.errors import Conflict, QueueFull, SnackOpsError
from queue_app.policy.lines import BadLine, Candidate

SAMPLE_FILE = Path(__file__).resolve().parent.parent / "sample" / "snack-orders.tsv"
CHUNK_BYTES = 65_536
WAIT_STEPS_S = (0.05, 1.0)  # between looks at a full queue
BATCH_CHARACTERS = 4_000_000  # ends a batch early, so that long lines do not multiply into a large amount of memory

Take = Callable[[list[Mapping[str, object]]], Sequence[object]]
Entry = Candidate | BadLine


@dataclass(slots=True)
class Tally:
    """What became of the order lines so far. A line counts once its batch is committed; a blank line is none."""

    accepted: int = 0
    duplicate: int = 0
    conflicting: int = 0
    rejected: int = 0

    @property
    def lines(self) -> int:
        """All order lines that were dealt with."""
        return self.accepted + self.duplicate + self.conflicting + self.rejected

    @property
    def good(self) -> bool:
        """Whether no line was conflicting or rejected."""
        return not self.conflicting and not self.rejected


class IntakeStopped(SnackOpsError):
    """The intake could not go on; the message says why and from which line on the file is still to be taken in."""


class SourceBroken(SnackOpsError):
    """The file or pipe could not be read further."""


def chunks_of(source: BufferedReader) -> Iterator[bytes]:
    """The bytes of a file or pipe as they come; SourceBroken when reading fails."""
    while True:
        try:
            chunk = source.read1(CHUNK_BYTES)
        except OSError as error:
            raise SourceBroken(f"reading failed ({os.strerror(error.errno or 0)})") from None
        if not chunk:
            return
        yield chunk


def patiently(take: Take, wait_s: float, *, pause: Callable[[float], object] = time.sleep) -> Take:
    """As `take`, but orders that find their queue full wait for room: up to `wait_s` seconds since one got in.

    Whoever waited in vain is refused with QueueFull, and what comes then is not waited for, until one gets in again.
    """
    in_vain = False

    def waiting(orders: list[Mapping[str, object]]) -> Sequence[object]:
        nonlocal in_vain
        answers = list(take(orders))
        in_vain = in_vain and "accepted" not in answers
        end_ms, step_s = clock.monotonic_ms() + int(wait_s * 1000), WAIT_STEPS_S[0]
        while not in_vain and (
            full := [place for place, answer in enumerate(answers) if isinstance(answer, QueueFull)]
        ):
            left_s = (end_ms - clock.monotonic_ms()) / 1000
            in_vain = left_s <= 0
            if in_vain:
                break
            pause(min(step_s, left_s))
            step_s = min(step_s * 2, WAIT_STEPS_S[1])
            again = take([orders[place] for place in full])
            if "accepted" in again:
                end_ms, step_s = clock.monotonic_ms() + int(wait_s * 1000), WAIT_STEPS_S[0]
            for place, answer in zip(full, again, strict=True):
                answers[place] = answer
        return answers

    return waiting


def take_in(
    entries: Iterable[Entry],
    tally: Tally,
    *,
    take: Take,
    batch: int,
    report: Callable[[int, str], None],
    progress: Callable[[Tally], None],
) -> None:
    """Hand the orders to `take` (`services.queue.enqueue_many`) in batches and count into `tally` what it answers.

    `report(line, why)` is called for every conflicting or rejected line, in the order of the file; `progress` after
    every batch. IntakeStopped when the database or the source fails: then `tally` holds what is safely in.
    """
    waiting: list[Entry] = []
    size = 0
    last = 0
    broken = ""
    try:
        for entry in entries:
            waiting.append(entry)
            last = entry.line
            size += entry.size if isinstance(entry, Candidate) else 0
            if len(waiting) >= batch or size >= BATCH_CHARACTERS:
                _commit(waiting, tally, take, report)
                progress(tally)
                waiting, size = [], 0
    except SourceBroken as error:
        broken = str(error)
    if waiting:
        _commit(waiting, tally, take, report)
        progress(tally)
    if broken:
        raise IntakeStopped(
            f"Stopped after line {last:,}: {broken}. Every good line up to there is in. Run it again to go on."
        )


def _commit(waiting: list[Entry], tally: Tally, take: Take, report: Callable[[int, str], None]) -> None:
    orders: list[Mapping[str, object]] = [entry.order for entry in waiting if isinstance(entry, Candidate)]
    try:
        answers = take(orders) if orders else []
    except DatabaseFailure as error:
        raise IntakeStopped(
            f"Stopped at line {waiting[0].line:,}: {_trouble(error)}. Every good line before it is in. "
            "Run it again to go on: what is in counts as duplicate."
        ) from None
    if len(answers) != len(orders):
        raise ValueError(f"The queue gave {len(answers)} answers to {len(orders)} orders.")
    rest = iter(answers)
    for entry in waiting:
        if isinstance(entry, BadLine):
            tally.rejected += 1
            report(entry.line, entry.why)
        else:
            _count(entry, next(rest), tally, report)


def _count(entry: Candidate, answer: object, tally: Tally, report: Callable[[int, str], None]) -> None:
    if answer == "accepted":
        tally.accepted += 1
    elif answer == "duplicate":
        tally.duplicate += 1
    elif isinstance(answer, SnackOpsError):
        if isinstance(answer, Conflict):
            tally.conflicting += 1
        else:
            tally.rejected += 1
        report(entry.line, str(answer))
    else:
        raise ValueError(f"The queue gave an answer that has no meaning here: {type(answer).__name__}.")


def _trouble(error: DatabaseFailure) -> str:
    """The failure in words of our own: a database's own message may quote the row that it refused."""
    text = str(error).lower()
    if "locked" in text or "lock timeout" in text:
        return "the database was busy for too long"
    if "full" in text or "no space" in text:
        return "the disk of the database is full"
    if "no such table" in text or "does not exist" in text:
        return "the database is not set up (run: manage.py migrate)"
    return f"the database failed ({type(error).__name__})"
