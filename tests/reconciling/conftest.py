"""A ledger in memory, so that a test says in one line what the receiver knows, and orders in every state."""

from collections.abc import Callable, Iterable

import pytest

from queue_app.policy.ledgers import Entry, LedgerPage, Totals
from tests.conftest import START_MS


class Book:
    """What a receiver knows. `totals` None: those that its entries give. `between(after)` runs before each page."""

    def __init__(self, *entries: Entry, totals: Totals | None = None) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self.given = totals
        self.between: Callable[[str | None], object] = lambda _after: None
        self.asked: list[str | None] = []

    def put(self, *entries: Entry) -> None:
        self.entries |= {entry.id: entry for entry in entries}

    @property
    def totals(self) -> Totals:
        applied = [entry for entry in self.entries.values() if entry.applied]
        requests = sum(entry.requests for entry in self.entries.values())
        return self.given or Totals(len(applied), sum(entry.quantity for entry in applied), len(applied), requests)

    def page(self, after: str | None, limit: int) -> LedgerPage:
        self.asked.append(after)
        self.between(after)
        ids = [job_id for job_id in sorted(self.entries) if job_id > (after or "")]
        shown = tuple(self.entries[job_id] for job_id in ids[:limit])
        return LedgerPage(shown, shown[-1].id if len(ids) > limit else None, self.totals)


def applied(job_id: str, quantity: int = 1, *, at_ms: int = START_MS, requests: int = 1) -> Entry:
    """An entry with an effect."""
    return Entry(job_id, quantity, at_ms, requests)


def tried(job_id: str, quantity: int = 1, *, requests: int = 1) -> Entry:
    """An entry without an effect."""
    return Entry(job_id, quantity, None, requests)


def all_applied(ids: Iterable[str]) -> list[Entry]:
    """One effect of one piece for each."""
    return [applied(job_id) for job_id in ids]


@pytest.fixture
def book() -> Book:
    """A receiver that knows nothing yet."""
    return Book()
