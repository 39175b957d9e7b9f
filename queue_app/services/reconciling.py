"""Comparing our orders with the receiver's ledger, and keeping what was found (DESIGN section 6, issue "Receiver check").

Both sides are walked page by page in bytewise order of id, as the two strands of a merge, in constant memory. What looks
like a difference is looked at again before it is called one: the order is read anew, and where it was delivered meanwhile
the receiver is asked for that id alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from django.contrib.auth.models import User

from queue_app.policy.ledgers import Entry, LedgerPage, Totals, before
from queue_app.policy.reconciling import FORGOTTEN, IN_FLIGHT, Ours, differences, of_totals
from queue_app.reads import comparisons
from queue_app.services import people
from queue_app.services.asking import recorded
from queue_app.services.people import Actor
from queue_app.store import chain, database, reconciliations
from queue_app.store.chain import Event

BITE = 400
EXAMPLES_PER_KIND, EXAMPLES_MAX = 10, 100
SUSPECTS = 200  # looked at again together
STATES = ("done", "dead", "pending", "leased", "pruned")


class Ledger(Protocol):
    """Whoever gives pages of the receiver's ledger (delivery/ledger.py does so over HTTP)."""

    def page(self, after: str | None, limit: int) -> LedgerPage: ...


@dataclass(frozen=True, slots=True)
class Result:
    """What one comparison found: `differing` orders of `compared` ids, counted by `kinds` (one may be of several).

    `here`: orders by state, and the pieces of the done ones; `there`: the receiver's totals and the rows of its list;
    `passing`: orders whose delivery runs just now, and done ones so old that the receiver may have forgotten them.
    """

    started_at_ms: int
    ended_at_ms: int
    compared: int
    differing: int
    kinds: dict[str, int]
    here: dict[str, int]
    there: dict[str, int]
    passing: dict[str, int]
    examples: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _There:
    """The receiver's side of the walk, and the sums over it."""

    ledger: Ledger
    bite: int
    first: Totals | None = None
    last: Totals = field(default_factory=lambda: Totals(0, 0, 0, 0))
    rows: int = 0
    keys: int = 0
    stock: int = 0

    def walk(self) -> Iterator[Entry]:
        after: str | None = None
        while True:
            page = self.ledger.page(after, self.bite)
            self.first, self.last = self.first or page.totals, page.totals
            for entry in page.entries:
                self.rows += 1
                self.keys += entry.applied
                self.stock += entry.quantity if entry.applied else 0
                yield entry
            if page.next is None:
                return
            after = page.next

    def one(self, job_id: str) -> Entry | None:
        """That id alone, as the receiver knows it now."""
        found = self.ledger.page(before(job_id), 1).entries
        return found[0] if found and found[0].id == job_id else None


@dataclass(slots=True)
class _Found:
    """What was found so far."""

    per_kind: int
    differing: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    passing: dict[str, int] = field(default_factory=lambda: {IN_FLIGHT: 0, FORGOTTEN: 0})
    examples: list[tuple[str, str]] = field(default_factory=list)

    def take(self, job_id: str, kinds: tuple[str, ...]) -> None:
        real = [kind for kind in kinds if kind not in self.passing]
        self.differing += bool(real)
        for kind in kinds:
            if kind in self.passing:
                self.passing[kind] += 1
                continue
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            if self.kinds[kind] <= self.per_kind and len(self.examples) < EXAMPLES_MAX:
                self.examples.append((kind, job_id))


def compare(ledger: Ledger, *, examples: int = EXAMPLES_PER_KIND, bite: int = BITE) -> Result:
    """Hold every order against the receiver's ledger. Reads only, on both sides; workers may go on meanwhile.

    `examples`: ids kept of each kind, 100 in all. Call it outside a transaction. Raises what `ledger.page` raises.
    """
    started_at_ms = database.now_ms()
    there, found = _There(ledger, bite), _Found(examples)
    here = dict.fromkeys((*STATES, "done_pieces"), 0)
    compared = 0
    suspects: list[tuple[str, Entry | None]] = []
    for ours, theirs in _merged(_here(bite), there.walk()):
        compared += 1
        if ours is not None:
            here[ours.state] += 1
            here["done_pieces"] += ours.quantity if ours.done else 0
        if differences(ours, theirs, started_at_ms):
            suspects.append((_id_of(ours, theirs), theirs))
            if len(suspects) == SUSPECTS:
                _settle(suspects, there, found, started_at_ms)
                suspects.clear()
    _settle(suspects, there, found, started_at_ms)
    sums = of_totals(there.first or there.last, there.last, there.keys, there.stock)
    found.kinds.update({kind: n for kind, n in sums.items() if n})
    return Result(
        started_at_ms=started_at_ms,
        ended_at_ms=database.now_ms(),
        compared=compared,
        differing=found.differing + sum(sums.values()),
        kinds=found.kinds,
        here=here,
        there={name: getattr(there.last, name) for name in Totals.__slots__} | {"rows": there.rows},
        passing=found.passing,
        examples=tuple(found.examples),
    )


@database.retried
def record(result: Result, user: User | None = None) -> int:
    """Keep a comparison with its audit event, in one transaction; returns its number. `user` None: a program made it.

    Raises NotAllowed for somebody who may not read (the attempt is recorded).
    """
    actor = may_compare(user) if user is not None else None
    with database.write():
        number = reconciliations.insert(
            started_at_ms=result.started_at_ms,
            ended_at_ms=result.ended_at_ms,
            actor=actor.id if actor else None,
            source="cli",
            compared=result.compared,
            differing=result.differing,
            numbers={name: getattr(result, name) for name in ("kinds", "here", "there", "passing")},
            examples=[list(example) for example in result.examples],
        )
        chain.append([_event(result, number, actor)])
    return number


def may_compare(user: User) -> Actor:
    """The person, who may read. Raises NotAllowed (recorded)."""
    with recorded(user, "read", "receiver", channel="cli", proof="shell"):
        actor = people.actor_of(user, channel="cli", proof="shell")
        people.require(actor, "read")
        return actor


def _event(result: Result, number: int, actor: Actor | None) -> Event:
    at_ms, compared, differing = database.now_ms(), result.compared, result.differing
    if actor is not None:
        return actor.event("reconcile", "receiver", at_ms, number=number, compared=compared, differing=differing)
    detail: dict[str, object] = {"number": number, "compared": compared, "differing": differing}
    return Event(at_ms=at_ms, action="reconcile", target="receiver", name="reconcile", source="cli", detail=detail)


def _here(bite: int) -> Iterator[Ours]:
    after: str | None = None
    while rows := comparisons.bite(after, bite):
        yield from rows
        after = rows[-1].id


def _merged(here: Iterator[Ours], there: Iterator[Entry]) -> Iterator[tuple[Ours | None, Entry | None]]:
    """Both sides side by side, in order of id: whoever lacks an id gives None."""
    ours, theirs = next(here, None), next(there, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and ours.id < theirs.id):
            yield ours, None
            ours = next(here, None)
        elif ours is None or theirs.id < ours.id:
            yield None, theirs
            theirs = next(there, None)
        else:
            yield ours, theirs
            ours, theirs = next(here, None), next(there, None)


def _id_of(ours: Ours | None, theirs: Entry | None) -> str:
    return ours.id if ours is not None else theirs.id if theirs is not None else ""


def _settle(suspects: list[tuple[str, Entry | None]], there: _There, found: _Found, started_at_ms: int) -> None:
    """Read the orders anew, and judge. A done order is held against an entry that was read after it was done."""
    again = comparisons.orders([job_id for job_id, _theirs in suspects])
    now_ms = database.now_ms()
    for job_id, theirs in suspects:
        ours, entry = again.get(job_id), theirs
        if ours is not None and ours.done and ours.changed_at_ms >= started_at_ms:
            entry = there.one(job_id)
        found.take(job_id, differences(ours, entry, now_ms))
