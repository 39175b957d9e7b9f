"""What a plan was made from, and how its frozen list is sealed.

A selection is a filter of one queue or a few orders by id; a group is a filter and a single order is one id.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.errors import gettext_noop
from queue_app.policy.filters import Filter, FilterError, from_canonical
from queue_app.policy.orders import check_id
from queue_app.policy.plans import InvalidPlan

MAX_IDS = 1_000  # a form carries no more fields; more orders are chosen by a filter
EMPTY_DIGEST = "0" * 64
CHUNK = (50, 2_000)
CHUNK_MS = 15  # what one chunk of a freeze aims at, so that the lock is held 50 ms at p99


@dataclass(frozen=True, slots=True)
class Selection:
    """Either `filter` or `ids` (sorted, without repeats)."""

    filter: Filter | None = None
    ids: tuple[str, ...] = ()

    @property
    def queue(self) -> str | None:
        """The queue that a filter names; by ids the orders themselves tell."""
        return self.filter.queue if self.filter else None

    def canonical(self) -> str:
        """One text per selection, for the plan's row."""
        if self.filter is not None:
            return canonical_ascii({"filter": self.filter.canonical()})
        return canonical_ascii({"ids": list(self.ids)})


def by_filter(wanted: Filter) -> Selection:
    """The selection of a filter, which must name its queue: a redrive is of exactly one. InvalidPlan."""
    if wanted.queue is None:
        raise InvalidPlan(gettext_noop("A redrive is of one queue: choose the queue first."), field="queue")
    return Selection(filter=wanted)


def by_group(queue: str, reason: str, code: str) -> Selection:
    """The selection of one group."""
    return Selection(filter=Filter(queue=queue, reason=reason, code=code))


def by_ids(ids: Sequence[object]) -> Selection:
    """The selection of orders by id: 1 to 1,000, repeats count once. InvalidPlan, or InvalidOrder for a bad id."""
    if not ids:
        raise InvalidPlan(gettext_noop("No order is selected."), field="ids")
    if len(ids) > MAX_IDS:
        raise InvalidPlan(
            gettext_noop("At most %(most)s orders can be ticked; choose more by a filter."), field="ids", most=MAX_IDS
        )
    return Selection(ids=tuple(sorted({check_id(job_id) for job_id in ids})))


def from_text(text: str) -> Selection:
    """The selection whose `canonical` this is. InvalidPlan when the stored text cannot be read."""
    try:
        stored = json.loads(text)
        if set(stored) == {"filter"}:
            return Selection(filter=from_canonical(stored["filter"]))
        if set(stored) == {"ids"} and type(stored["ids"]) is list:
            return by_ids(stored["ids"])
    except (ValueError, TypeError, FilterError):
        pass
    raise InvalidPlan(gettext_noop("The stored selection cannot be read."))


def digest_on(digest: str, items: Iterable[tuple[int, str, int]]) -> str:
    """The seal of a list after more items (position, job, token): the same however the list is cut into chunks."""
    for pos, job_id, token in items:
        digest = hashlib.sha256(f"{digest}\n{pos}:{job_id}:{token}".encode("ascii")).hexdigest()
    return digest


def outcome_on(digest: str, items: Iterable[tuple[int, str, int, str]]) -> str:
    """The seal of what came of a list after more items (position, job, token, outcome)."""
    for pos, job_id, token, outcome in items:
        digest = hashlib.sha256(f"{digest}\n{pos}:{job_id}:{token}:{outcome}".encode("ascii")).hexdigest()
    return digest


def next_chunk(size: int, took_ms: int) -> int:
    """The size of the next chunk, so that it takes about CHUNK_MS: at most doubled, within CHUNK."""
    return max(CHUNK[0], min(CHUNK[1], size * 2, size * CHUNK_MS // max(took_ms, 1)))
