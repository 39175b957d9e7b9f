"""Batches: what is counted and reported, in which order, and what is said when an intake has to stop."""

import io

import pytest
from django.db import InterfaceError, OperationalError

from queue_app.policy.errors import Conflict, InvalidOrder, QueueClosed, QueueFull
from queue_app.policy.lines import BadLine, Candidate
from queue_app.services import intake
from queue_app.services.intake import IntakeStopped, SourceBroken, Tally, chunks_of, take_in


def candidate(line, size=10):
    return Candidate(line, {"id": f"a{line}", "quantity": 1}, size)


class Intake:
    """Runs `take_in` against answers made up by the test, and keeps what it did."""

    def __init__(self, answer=lambda _order: "accepted"):
        self.answer = answer
        self.tally = Tally()
        self.batches = []
        self.reports = []
        self.progress = []

    def take(self, orders):
        answers = [self.answer(order) for order in orders]
        self.batches.append([order["id"] for order in orders])
        return answers

    def run(self, entries, batch=3):
        take_in(
            entries,
            self.tally,
            take=self.take,
            batch=batch,
            report=lambda line, why: self.reports.append((line, why)),
            progress=lambda tally: self.progress.append(tally.lines),
        )


def test_batches_are_full_but_the_last_and_progress_is_told_after_each():
    run = Intake()
    run.run(candidate(line) for line in range(1, 8))
    assert [len(batch) for batch in run.batches] == [3, 3, 1]
    assert run.progress == [3, 6, 7]
    assert run.tally == Tally(accepted=7)
    assert run.tally.good


def test_every_answer_has_its_count_and_reports_keep_the_order_of_the_file():
    answers = {
        "a1": "accepted",
        "a3": "duplicate",
        "a4": Conflict("It is c."),
        "a5": InvalidOrder("It is i."),
        "a6": QueueFull("It is f."),
        "a7": QueueClosed("It is l."),
    }
    run = Intake(lambda order: answers[order["id"]])
    run.run([candidate(1), BadLine(2, "b."), *map(candidate, (3, 4, 5, 6, 7)), BadLine(8, "b.")], batch=100)
    assert run.reports == [(2, "b."), (4, "It is c."), (5, "It is i."), (6, "It is f."), (7, "It is l."), (8, "b.")]
    assert run.tally == Tally(accepted=1, duplicate=1, conflicting=1, rejected=5)
    run.run(map(candidate, (1, 3, 4, 5)))
    assert run.tally == Tally(accepted=2, duplicate=2, conflicting=2, rejected=6)


def test_bad_lines_alone_do_not_trouble_the_queue_and_no_lines_do_nothing():
    run = Intake()
    run.run(BadLine(line, "b.") for line in range(5))
    run.run([])
    assert run.batches == []
    assert run.tally.rejected == 5


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([60, 60, 1], [2, 1]),
        ([50, 50, 50, 50], [2, 2]),
        ([50, 49, 1, 1], [3, 1]),
        ([99, 1, 99, 1, 5], [2, 2, 1]),
        ([100, 100], [1, 1]),
        ([99, None, 1, 99, None, None, 1], [2, 2]),
    ],
)
def test_long_lines_end_a_batch_early(monkeypatch, sizes, batches):
    """None: a bad line, of which nothing is kept but why."""
    monkeypatch.setattr(intake, "BATCH_CHARACTERS", 100)
    run = Intake()
    run.run((candidate(line, size) if size else BadLine(line, "b.") for line, size in enumerate(sizes)), batch=100)
    assert [len(batch) for batch in run.batches] == batches


def test_nothing_is_read_ahead_of_the_batch_that_is_being_committed():
    read = []

    def entries():
        for line in range(1, 5):
            read.append(line)
            yield candidate(line)

    seen = []
    run = Intake(lambda _order: seen.append(len(read)) or "accepted")
    run.run(entries(), batch=2)
    assert seen == [2, 2, 4, 4]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OperationalError("Database is LOCKED"), "the database was busy for too long"),
        (OperationalError("canceling statement due to lock timeout"), "the database was busy for too long"),
        (OperationalError("database or disk is Full"), "the disk of the database is full"),
        (OperationalError("could not extend file: No space left on device"), "the disk of the database is full"),
        (OperationalError("no such table: jobs"), "the database is not set up (run: manage.py migrate)"),
        (OperationalError('relation "jobs" does not exist'), "the database is not set up (run: manage.py migrate)"),
        (InterfaceError("DETAIL: row (secret)"), "the database failed (InterfaceError)"),
    ],
)
def test_a_failing_database_stops_the_intake_and_the_sentence_says_how_far_it_got(error, words):
    def answer(order):
        if order["id"] == "a9000":
            raise error
        return "accepted"

    run = Intake(answer)
    with pytest.raises(IntakeStopped) as caught:
        run.run([*map(candidate, (2, 3, 5, 7_000, 9_000, 11_000, 12_000, 13_000))], batch=3)
    assert str(caught.value) == (
        f"Stopped at line 7,000: {words}. Every good line before it is in. "
        "Run it again to go on: what is in counts as duplicate."
    )
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__, "the database's own words may quote the row"
    assert run.tally == Tally(accepted=3)
    assert run.batches == [["a2", "a3", "a5"]]


@pytest.mark.parametrize(
    ("lines", "last", "progress"),
    [([], "0", []), ([1], "1", [1]), ([*range(1, 5)], "4", [3, 4]), ([998, 1_000], "1,000", [2])],
)
def test_a_source_that_breaks_has_what_was_read_taken_in_first(lines, last, progress):
    def entries():
        yield from map(candidate, lines)
        raise SourceBroken("reading failed (Input/output error)")

    run = Intake()
    with pytest.raises(IntakeStopped) as caught:
        run.run(entries(), batch=3)
    assert str(caught.value) == (
        f"Stopped after line {last}: reading failed (Input/output error). Every good line up to there is in. "
        "Run it again to go on."
    )
    assert run.tally == Tally(accepted=len(lines))
    assert run.progress == progress


@pytest.mark.parametrize(
    ("answer", "kind"), [(None, "NoneType"), ("", "str"), ("Accepted", "str"), (ValueError(), "ValueError")]
)
def test_an_answer_without_meaning_is_loud(answer, kind):
    with pytest.raises(ValueError, match="answer") as caught:
        Intake(lambda _order: answer).run([candidate(1)])
    assert str(caught.value) == f"The queue gave an answer that has no meaning here: {kind}."


@pytest.mark.parametrize("answers", [[], ["accepted"], ["accepted"] * 3])
def test_an_answer_too_few_or_too_many_is_loud(answers):
    tally = Tally()
    with pytest.raises(ValueError, match="answers") as caught:
        take_in(map(candidate, (1, 2)), tally, take=lambda _orders: answers, batch=2, report=print, progress=print)
    assert str(caught.value) == f"The queue gave {len(answers)} answers to 2 orders."
    assert tally == Tally()


class Broken(io.RawIOBase):
    """A file that cannot be read after its first bytes."""

    def __init__(self, error, first=b""):
        self.error, self.first = error, first

    def readable(self):
        return True

    def readinto(self, buffer):
        if not self.first:
            raise self.error
        buffer[: len(self.first)], self.first, n = self.first, b"", len(self.first)
        return n


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(5, "secret"), "Input/output error"),
        (OSError("secret"), "Success"),
        (OSError(28, "secret"), "No space left on device"),
    ],
)
def test_an_error_of_reading_is_told_in_the_words_of_the_system(error, words):
    chunks = chunks_of(io.BufferedReader(Broken(error, b"ab")))
    assert next(chunks) == b"ab"
    with pytest.raises(SourceBroken) as caught:
        next(chunks)
    assert str(caught.value) == f"reading failed ({words})"
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(("content", "chunks"), [(b"", []), (b"ab", [b"ab"]), (b"abcdefg", [b"abc", b"def", b"g"])])
def test_a_source_is_read_in_pieces_to_its_end(monkeypatch, content, chunks):
    monkeypatch.setattr(intake, "CHUNK_BYTES", 3)
    assert list(chunks_of(io.BufferedReader(io.BytesIO(content), 3))) == chunks


@pytest.mark.parametrize(
    ("tally", "lines", "good"),
    [
        (Tally(), 0, True), (Tally(accepted=1, duplicate=20), 21, True), (Tally(conflicting=1), 1, False),
        (Tally(rejected=1), 1, False), (Tally(1, 20, 300, 4_000), 4_321, False),
    ],
)  # fmt: skip
def test_a_tally_counts_all_lines_and_is_good_without_a_bad_one(tally, lines, good):
    assert (tally.lines, tally.good) == (lines, good)
