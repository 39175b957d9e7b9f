"""What the proof says of each tampering, as whole values. The record is a list here, so no database is asked."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError

from queue_app.policy.chain import GENESIS, VERSION, Anchor, Link, link_hash
from queue_app.reads.chain import Ends
from queue_app.services import verification
from queue_app.services.verification import Broken, Report, verify

OTHER = "f" * 64
TABLES = ("audit", "redrives")


def place(row: Link) -> int:
    assert isinstance(row.link, int)
    return row.link


class Record:
    """A chain of events (A) and redrives rows (R) as `reads.chain` gives it, and what was asked of it."""

    def __init__(self, kinds: str = "ARAAR") -> None:
        self.rows: list[Link] = []
        self.asked: list[tuple[int | None, int, int]] = []
        self.heads: list[Ends | None] = []  # what the next looks at the head row find instead of what stands
        self.unreadable: Callable[[int, int], bool] = lambda _after, _upto: False
        for kind in kinds:
            self.add(kind)
        self.head: Any = self.ends_of_rows()

    def add(self, kind: str) -> None:
        link, prev = len(self.rows) + 1, self.rows[-1].hash if self.rows else GENESIS
        seq = sum(row.table == "audit" for row in self.rows) + 1
        record = {"seq": seq} if kind == "A" else {"job_id": f"o{link}", "token": 3}
        hashed = link_hash(str(prev), record)
        self.rows.append(
            Link("audit", seq, link, record, prev, hashed, VERSION)
            if kind == "A"
            else Link("redrives", link, link, record, None, hashed, None)
        )

    def ends_of_rows(self) -> Ends:
        tops: list[int | None] = []
        for name in TABLES:
            tops.append(max([place(row) for row in self.rows if row.table == name], default=None))
        last = self.rows[-1] if self.rows else None
        return Ends(
            sum(row.table == "audit" for row in self.rows), len(self.rows), last.hash if last else GENESIS, *tops
        )

    def ends(self) -> Ends | None:
        return self.heads.pop(0) if self.heads else self.head

    def bite(self, after: int | None, upto: int, limit: int) -> list[Link]:
        self.asked.append((after, upto, limit))
        if self.unreadable(after or 0, upto):
            raise DatabaseError
        found = [row for row in self.rows if (after is None or place(row) > after) and place(row) <= upto]
        return [row for row in found if place(row) <= place(found[:limit][-1])]  # both rows of a link that stands twice


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Record]:
    """Makes the record that the proof then reads."""

    def make(*kinds: str) -> Record:
        made = Record(*kinds)
        monkeypatch.setattr(verification, "chain", made)
        return made

    return make


Make = Callable[..., Record]


def test_a_whole_record_is_told_with_its_numbers_and_its_head(record: Make) -> None:
    for kinds, events in (("", 0), ("A", 1), ("R", 0), ("ARAAR", 3), ("RRA", 1)):
        made = record(kinds)
        head = made.rows[-1].hash if made.rows else GENESIS
        wanted = Report(events, len(kinds) - events, Anchor(events, str(head)), None)
        assert verify() == verify(bite=1) == wanted
        assert wanted.whole


def test_it_reads_in_bites_from_before_the_first_row_to_the_head(record: Make) -> None:
    made = record()
    verify()
    assert made.asked == [(None, 5, 1_000), (5, 5, 1_000)]
    made.asked.clear()
    verify(bite=2)
    assert made.asked == [(None, 5, 2), (2, 5, 2), (4, 5, 2), (5, 5, 2)]


# --- a row that does not fit --------------------------------------------------------------------------------------------


def without(*places: int) -> Callable[[list[Link]], list[Link]]:
    return lambda rows: [row for k, row in enumerate(rows) if k not in places]


def changed(at: int, **values: object) -> Callable[[list[Link]], list[Link]]:
    return lambda rows: [replace(row, **values) if k == at else row for k, row in enumerate(rows)]  # type: ignore[arg-type]


FIRST, SECOND, THIRD = "audit seq 1 (link 1)", "redrives id 2 (order 'o2', token 3, link 2)", "audit seq 2 (link 3)"
PLACES: dict[str, tuple[Callable[[list[Link]], list[Link]], int, tuple[str, ...], str]] = {  # place of the broken row
    "the first is gone": (without(0), 0, ("gap", "hash"), f"Link 1 is missing: at the beginning comes {SECOND}."),
    "one is gone": (without(1), 1, ("gap", "prev", "hash"), f"Link 2 is missing: after {FIRST} comes {THIRD}."),
    "the last but one is gone": (without(3), 3, ("gap", "hash"), "Link 4 is missing: after audit seq 2 (link 3) comes "
                                 "redrives id 5 (order 'o5', token 3, link 5)."),
    "one is there twice": (lambda rows: [*rows[:3], replace(rows[1], key=3, link=3), *rows[3:]], 3, ("repeated", "hash"),
                           f"Link 3 occurs twice: after {THIRD} comes redrives id 3 (order 'o2', token 3, link 3)."),
    "one before the first": (lambda rows: [replace(rows[0], link=0), *rows], 0, ("order",),
                             "A row is out of order: at the beginning comes audit seq 1 (link 0)."),
    "another event": (changed(2, key=7), 2, ("seq",),
                      f"Event 2 should come, and after {SECOND} comes audit seq 7 (link 3)."),
    "another first event": (changed(0, key=0), 0, ("seq",),
                            "Event 1 should come, and at the beginning comes audit seq 0 (link 1)."),
    "another id": (changed(1, key=7), 1, ("id",),
                   "The id of redrives id 7 (order 'o2', token 3, link 2) is not its link."),
    "another before": (changed(2, prev=OTHER), 2, ("prev",),
                       f"The hash that {THIRD} names as the one before is not that of the row before."),
    "another version": (changed(2, version=2), 2, ("version",),
                        f"The version of {THIRD} is not the one that it was written with."),
    "another content": (changed(2, record={"seq": 9}), 2, ("hash",),
                        f"The content of {THIRD} is not what was written: its hash is another."),
    "the last has another content": (changed(4, hash=OTHER), 4, ("hash",), "The content of redrives id 5 (order 'o5', "
                                     "token 3, link 5) is not what was written: its hash is another."),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 1_000])
@pytest.mark.parametrize("case", PLACES.values(), ids=list(PLACES))
def test_the_first_row_that_does_not_fit_is_named_with_its_neighbours(
    record: Make, case: tuple[Callable[[list[Link]], list[Link]], int, tuple[str, ...], str], size: int
) -> None:
    tamper, at, what, sentence = case
    made = record()
    made.rows = tamper(made.rows)
    before, row = made.rows[at - 1] if at else None, made.rows[at]
    after = made.rows[at + 1] if at + 1 < len(made.rows) else None
    events = sum(right.table == "audit" for right in made.rows[:at])
    head = Anchor(events, str(before.hash) if before else GENESIS)
    broken = Broken(row.table, what, sentence, row, before, after)
    for expect in (None, Anchor(0, OTHER), Anchor(9, OTHER)):  # an anchor is not looked at then
        assert verify(expect, bite=size) == Report(events, at - events, head, broken)
    assert not verify(bite=size).whole


# --- a row that cannot be read ------------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_read_is_found_one_by_one(record: Make) -> None:
    made = record()
    made.unreadable = lambda after, upto: after < 3 <= upto
    sentence = f"The row after {SECOND} cannot be read."
    broken = Broken("unknown", ("unreadable",), sentence, None, made.rows[1], None)
    report = Report(1, 1, Anchor(1, str(made.rows[1].hash)), broken)
    assert verify() == report
    assert made.asked == [(None, 5, 1_000), (0, 1, 1), (1, 2, 1), (2, 3, 1)]
    made.asked.clear()
    made.unreadable = lambda after, upto: after < 3 <= min(upto, after + 2)
    assert verify(bite=2) == report
    assert made.asked == [(None, 5, 2), (2, 5, 2), (2, 3, 1)]


def test_the_first_row_of_all_cannot_be_read(record: Make) -> None:
    made = record()
    made.unreadable = lambda after, _upto: after == 0
    broken = Broken("unknown", ("unreadable",), "The row after the beginning cannot be read.", None, None, None)
    assert verify() == Report(0, 0, Anchor(0, GENESIS), broken)


def test_a_broken_row_is_named_rather_than_the_one_behind_it_that_cannot_be_read(record: Make) -> None:
    made = record()
    made.rows[1] = replace(made.rows[1], hash=OTHER)
    made.unreadable = lambda after, upto: after < 3 <= upto
    broken = verify().broken
    assert broken is not None
    assert (broken.what, broken.row, broken.before, broken.after) == (("hash",), made.rows[1], made.rows[0], None)


def test_what_could_be_read_after_all_is_whole(record: Make) -> None:
    made = record()
    made.unreadable = lambda after, upto: upto - after > 1
    assert verify() == Report(3, 2, Anchor(3, str(made.rows[-1].hash)), None)
    assert made.asked == [(None, 5, 1_000), *((link, link + 1, 1) for link in range(5))]


# --- the head row -------------------------------------------------------------------------------------------------------


TYPE = Broken("heads", ("type",), "The head row of the chain holds a value of a wrong type.")
MISSING = Broken("heads", ("missing",), "The head row of the chain is missing.")


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        (None, MISSING),
        ({"seq": True}, TYPE), ({"seq": "3"}, TYPE), ({"link": 5.0}, TYPE), ({"link": None}, TYPE),
        ({"hash": None}, TYPE), ({"hash": b"f"}, TYPE),
    ],
    ids=str,
)  # fmt: skip
def test_without_a_head_row_that_can_be_read_nothing_is_looked_at(
    record: Make, values: dict[str, object] | None, broken: Broken
) -> None:
    made = record()
    made.head = None if values is None else replace(made.head, **values)
    assert verify(Anchor(9, OTHER)) == Report(0, 0, Anchor(0, GENESIS), broken)
    assert made.asked == []


BEYOND = "A row of {} has the link {}, beyond the head row's 5."
CUT = "The chain ends at link 5, and its head row says {}: its tail is cut off."
NOT_LAST = "The head row does not say what the last row is."


@pytest.mark.parametrize(
    ("values", "what", "sentence"),
    [
        ({"audit_top": 6}, ("beyond",), BEYOND.format("audit", "6")),
        ({"redrives_top": 6}, ("beyond",), BEYOND.format("redrives", "6")),
        ({"audit_top": "4"}, ("beyond",), BEYOND.format("audit", "'4'")),
        ({"redrives_top": 5.0}, ("beyond",), BEYOND.format("redrives", "5.0")),
        ({"audit_top": 7, "redrives_top": 8}, ("beyond",), BEYOND.format("audit", "7")),
        ({"audit_top": 5}, (), ""),
        ({"audit_top": None, "redrives_top": None}, (), ""),
        ({"link": 6}, ("cut",), CUT.format(6)),
        ({"link": 9, "seq": 4, "hash": OTHER}, ("cut",), CUT.format(9)),
        ({"seq": 4}, ("seq",), NOT_LAST),
        ({"seq": 2}, ("seq",), NOT_LAST),
        ({"hash": OTHER}, ("hash",), NOT_LAST),
        ({"seq": 4, "hash": OTHER}, ("seq", "hash"), NOT_LAST),
    ],
    ids=str,
)
def test_the_tables_end_where_the_head_row_says(
    record: Make, values: dict[str, object], what: tuple[str, ...], sentence: str
) -> None:
    made = record()
    made.head = replace(made.head, **values)
    broken = Broken("heads", what, sentence, None, made.rows[-1], None) if what else None
    report = Report(3, 2, Anchor(3, str(made.rows[-1].hash)), broken)
    assert verify() == report
    assert verify(Anchor(9, OTHER)).broken == broken or not what


def test_a_row_beyond_the_head_of_an_empty_record_has_nothing_before_it(record: Make) -> None:
    made = record("")
    made.head = replace(made.head, audit_top=1)
    sentence = "A row of audit has the link 1, beyond the head row's 0."
    assert verify().broken == Broken("heads", ("beyond",), sentence, None, None, None)


def test_a_head_row_that_goes_while_we_look_is_missing(record: Make) -> None:
    made = record()
    made.heads = [made.head, None, None]
    assert verify() == Report(3, 2, Anchor(3, str(made.rows[-1].hash)), MISSING)


def test_rows_that_keep_coming_are_followed_for_a_hundred_rounds(record: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = record("A")
    looks = 0

    def growing() -> Ends:
        nonlocal looks
        looks += 1
        made.add("A")
        return replace(made.ends_of_rows(), seq=0)  # what it says of the last row is not looked at while rows come

    monkeypatch.setattr(made, "ends", growing)
    report = verify(Anchor(200, str(made.rows[0].hash)))
    assert looks == 200
    assert report.head == Anchor(200, str(made.rows[199].hash))
    assert report.broken is not None
    assert (report.broken.table, report.broken.what, report.broken.row) == ("anchor", ("hash",), made.rows[199])


# --- the anchor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "good"), [("ARAAR", [(1, 1), (1, 2), (2, 3), (3, 4), (3, 5)]), ("RRA", [(0, 1), (0, 2), (1, 3)])]
)
def test_an_anchor_of_any_place_is_in_a_whole_record(record: Make, kinds: str, good: list[tuple[int, int]]) -> None:
    made = record(kinds)
    for seq, link in [*good, (0, 0)]:
        anchor = Anchor(seq, str(made.rows[link - 1].hash) if link else GENESIS)
        assert verify(anchor).broken is None
        assert verify(anchor, bite=1).whole


AHEAD = ("The anchor is ahead of the record: it is of event {}, and the record ends at event 3. "
         "Its tail was cut off, or this is an old backup.")  # fmt: skip
ANEW = "Event {} has another hash than the anchor: the record was written anew at or before it."


@pytest.mark.parametrize(("seq", "link"), [(0, None), (1, 1), (2, 3), (3, 4), (4, 5), (9, 5)])
def test_an_anchor_that_is_not_in_the_record_is_told_with_its_place(record: Make, seq: int, link: int | None) -> None:
    made = record()
    row = made.rows[link - 1] if link else None
    broken = (
        Broken("anchor", ("ahead",), AHEAD.format(seq), None, row, None)
        if seq > 3
        else Broken("anchor", ("hash",), ANEW.format(seq), row, None, None)
    )
    assert verify(Anchor(seq, OTHER)) == Report(3, 2, Anchor(3, str(made.rows[-1].hash)), broken)
    assert verify(Anchor(seq, str(made.rows[1].hash))).broken == (None if seq == 1 else broken)
