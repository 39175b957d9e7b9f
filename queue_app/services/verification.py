"""Is the record whole? The chain over audit and redrives, its head row, and an anchor kept elsewhere (DESIGN section 9).

Without an anchor a changed, removed, inserted or swapped row is found, and a tail cut without mending the head row.
With one also a mended cut, a tail chained anew, and an old backup put in place of the database.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError

from queue_app.policy.chain import GENESIS, Anchor, Link, faults
from queue_app.policy.refusals import shown
from queue_app.reads import chain
from queue_app.reads.chain import Ends

BITE = 1_000
MAX_ROUNDS = 100  # rows keep coming while we look; each round looks at what came during the one before


@dataclass(frozen=True, slots=True)
class Broken:
    """The first place that does not fit. `table` is audit, redrives, heads or anchor; `row` None where there is none."""

    table: str
    what: tuple[str, ...]
    sentence: str
    row: Link | None = None
    before: Link | None = None
    after: Link | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at and found. `head` is the last event and hash that proved right."""

    events: int
    redrives: int
    head: Anchor
    broken: Broken | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is broken."""
        return self.broken is None


class _Walk:
    """The chain so far: one row after the other, in constant memory."""

    def __init__(self, expect: Anchor | None) -> None:
        self.expect = expect
        self.link = self.seq = self.redrives = 0
        self.hash = GENESIS
        self.last: Link | None = None
        self.at_anchor: Link | None = None
        self.met = expect is not None and self._meets(expect)
        self.broken: Broken | None = None

    def _meets(self, expect: Anchor) -> bool:
        return (self.seq, self.hash) == (expect.seq, expect.hash)

    def take(self, row: Link) -> None:
        what = faults(row, link=self.link, seq=self.seq, prev=self.hash)
        if what:
            self.broken = Broken(row.table, what, _sentence(what[0], row, self), row, self.last)
            return
        self.link += 1
        self.seq += row.table == "audit"
        self.redrives += row.table == "redrives"
        self.hash, self.last = str(row.hash), row
        if self.expect is not None and self.seq == self.expect.seq:
            # Redrives rows that follow the event belong to its anchor too: a head may stand on one of them.
            self.at_anchor = self.at_anchor or row
            self.met = self.met or self._meets(self.expect)

    def report(self) -> Report:
        return Report(self.seq, self.redrives, Anchor(self.seq, self.hash), self.broken)


def verify(expect: Anchor | None = None, *, bite: int = BITE) -> Report:
    """Prove the record whole or find the first place where it is broken. Reads only; rows may be added meanwhile.

    Raises DatabaseError when the database itself cannot be asked.
    """
    walk = _Walk(expect)
    for _round in range(MAX_ROUNDS):
        ends = chain.ends()
        walk.broken = _bad_head(ends)
        if walk.broken or ends is None:
            return walk.report()
        for row in _rows(walk, ends.link, bite):
            if walk.broken:  # this row is the broken one's neighbour
                walk.broken = _with_neighbour(walk.broken, row)
                return walk.report()
            walk.take(row)
        if walk.broken:
            return walk.report()
        now = chain.ends()
        if now is not None and now.link == ends.link:
            walk.broken = _bad_end(walk, now)
            break
    if walk.broken is None and expect is not None and not walk.met:
        walk.broken = _bad_anchor(walk, expect)
    return walk.report()


def _rows(walk: _Walk, upto: int, bite: int) -> Iterator[Link]:
    """The rows from where the walk stands up to a link; it goes on past a broken row for as long as it is asked."""
    after = walk.link or None  # from before every link, also those that should not be there
    while True:
        try:
            rows = chain.bite(after, upto, bite)
        except DatabaseError:
            yield from _one_by_one(walk, after or 0, upto)
            return
        if not rows:
            return
        yield from rows
        after = int(rows[-1].link)  # type: ignore[call-overload]


def _one_by_one(walk: _Walk, after: int, upto: int) -> Iterator[Link]:
    """One of the next rows cannot be read: find which. Ends there, and breaks the walk unless it is broken already."""
    for link in range(after, upto):
        try:
            rows = chain.bite(link, link + 1, 1)
        except DatabaseError:
            where = walk.last.title if walk.last else "the beginning"
            sentence = f"The row after {where} cannot be read."
            walk.broken = walk.broken or Broken("unknown", ("unreadable",), sentence, before=walk.last)
            return
        yield from rows


def _bad_head(ends: Ends | None) -> Broken | None:
    if ends is None:
        return Broken("heads", ("missing",), "The head row of the chain is missing.")
    if type(ends.seq) is not int or type(ends.link) is not int or type(ends.hash) is not str:
        return Broken("heads", ("type",), "The head row of the chain holds a value of a wrong type.")
    return None


def _bad_end(walk: _Walk, ends: Ends) -> Broken | None:
    """Whether the tables end where the head row says."""
    for table, top in (("audit", ends.audit_top), ("redrives", ends.redrives_top)):
        if top is not None and (type(top) is not int or top > ends.link):
            sentence = f"A row of {table} has the link {shown(top)}, beyond the head row's {ends.link}."
            return Broken("heads", ("beyond",), sentence, before=walk.last)
    if walk.link < ends.link:
        sentence = f"The chain ends at link {walk.link}, and its head row says {ends.link}: its tail is cut off."
        return Broken("heads", ("cut",), sentence, before=walk.last)
    what = tuple(name for name, differs in (("seq", ends.seq != walk.seq), ("hash", ends.hash != walk.hash)) if differs)
    if what:
        return Broken("heads", what, "The head row does not say what the last row is.", before=walk.last)
    return None


def _bad_anchor(walk: _Walk, expect: Anchor) -> Broken:
    if expect.seq > walk.seq:
        sentence = (
            f"The anchor is ahead of the record: it is of event {expect.seq}, and the record ends at event {walk.seq}. "
            "Its tail was cut off, or this is an old backup."
        )
        return Broken("anchor", ("ahead",), sentence, before=walk.last)
    sentence = f"Event {expect.seq} has another hash than the anchor: the record was written anew at or before it."
    return Broken("anchor", ("hash",), sentence, row=walk.at_anchor)


def _with_neighbour(broken: Broken, after: Link) -> Broken:
    return Broken(broken.table, broken.what, broken.sentence, broken.row, broken.before, after)


def _sentence(what: str, row: Link, walk: _Walk) -> str:
    after = f"after {walk.last.title}" if walk.last else "at the beginning"
    return {
        "gap": f"Link {walk.link + 1} is missing: {after} comes {row.title}.",
        "repeated": f"Link {walk.link} occurs twice: {after} comes {row.title}.",
        "order": f"A row is out of order: {after} comes {row.title}.",
        "seq": f"Event {walk.seq + 1} should come, and {after} comes {row.title}.",
        "id": f"The id of {row.title} is not its link.",
        "prev": f"The hash that {row.title} names as the one before is not that of the row before.",
        "version": f"The version of {row.title} is not the one that it was written with.",
        "hash": f"The content of {row.title} is not what was written: its hash is another.",
    }[what]
