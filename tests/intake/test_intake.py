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
    assert run.tally.lines == 8
    assert not run.tally.good


def test_bad_lines_alone_do_not_trouble_the_queue_and_no_lines_do_nothing():
    run = Intake()
    run.run(BadLine(line, "b.") for line in range(5))
    run.run([])
    assert run.batches == []
    assert run.tally.rejected == 5


def test_long_lines_end_a_batch_early(monkeypatch):
    monkeypatch.setattr(intake, "BATCH_CHARACTERS", 100)
    run = Intake()
    run.run([candidate(1, 60), candidate(2, 60), candidate(3, 1)], batch=100)
    assert [len(batch) for batch in run.batches] == [2, 1]


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
        (OperationalError("database is locked"), "the database was busy for too long"),
        (OperationalError("canceling statement due to lock timeout"), "the database was busy for too long"),
        (OperationalError("database or disk is full"), "the disk of the database is full"),
        (OperationalError("could not extend file: No space left on device"), "the disk of the database is full"),
        (OperationalError("no such table: jobs"), "manage.py migrate"),
        (InterfaceError("DETAIL: row (secret)"), "the database failed (InterfaceError)"),
    ],
)
def test_a_failing_database_stops_the_intake_and_the_sentence_says_how_far_it_got(error, words):
    def answer(order):
        if order["id"] == "a9":
            raise error
        return "accepted"

    run = Intake(answer)
    with pytest.raises(IntakeStopped) as caught:
        run.run([*map(candidate, (2, 3, 5, 7, 9, 11, 12, 13))], batch=3)
    sentence = str(caught.value)
    assert words in sentence
    assert "Stopped at line 7:" in sentence
    assert "secret" not in sentence
    assert run.tally == Tally(accepted=3)
    assert run.batches == [["a2", "a3", "a5"]]


def test_a_source_that_breaks_has_what_was_read_taken_in_first():
    def entries():
        yield from map(candidate, range(1, 6))
        raise SourceBroken("reading failed (Input/output error)")

    run = Intake()
    with pytest.raises(IntakeStopped, match=r"Stopped after line 5: reading failed \(Input/output error\)"):
        run.run(entries(), batch=3)
    assert run.tally == Tally(accepted=5)


def test_an_answer_without_meaning_or_without_an_order_is_loud():
    with pytest.raises(ValueError, match="no meaning"):
        Intake(lambda _order: None).run([candidate(1)])
    with pytest.raises(ValueError, match="0 answers to 1 orders"):
        take_in([candidate(1)], Tally(), take=lambda _orders: [], batch=1, report=print, progress=print)


def test_an_error_of_reading_is_told_in_the_words_of_the_system():
    class Broken(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, _buffer):
            raise OSError(5, "secret")

    with pytest.raises(SourceBroken, match="Input/output error"):
        list(chunks_of(io.BufferedReader(Broken())))
    assert list(chunks_of(io.BufferedReader(io.BytesIO(b"ab")))) == [b"ab"]
