"""Which orders of the quarantine are meant: one value for the address, the list, the count, a plan and an export.

Pure: nothing here asks a database or a clock. A filter is about dead jobs only; `reads.dead` turns it into SQL.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, tzinfo
from typing import Any

from queue_app.policy.answers import effect_possible
from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.errors import gettext_noop
from queue_app.policy.filter_words import (
    FIELDS,
    NAMES,
    NO_CODE,
    REASONS,
    SHAPES,
    FilterError,
    Problem,
    Refused,
    one_of,
    read,
    written,
)
from queue_app.policy.orders import MAX_ATTEMPTS, MAX_INSTANT_MS

__all__ = ["NO_CODE", "PAGE_NAMES", "REASONS", "Filter", "FilterError", "Problem", "from_canonical", "parse"]

MAX_NAMES = 50
PAGE_NAMES = frozenset({"cursor", "sort", "size", "as_of", "window", "view", "page", "saved", "partial"})


@dataclass(frozen=True, slots=True)
class Filter:
    """None means any. Times are ms: `died_from_ms` <= dead since < `died_to_ms`; ages count back from the as-of time.

    `code` '' means that no code was given. `effect`: the code says that the order may have had its effect at the
    receiver. `looked`: somebody investigated the job, or its group, after its death.
    """

    queue: str | None = None
    reason: str | None = None
    code: str | None = None
    effect: bool | None = None
    died_from_ms: int | None = None
    died_to_ms: int | None = None
    min_age_ms: int | None = None
    max_age_ms: int | None = None
    id_prefix: str | None = None
    attempts_min: int | None = None
    attempts_max: int | None = None
    redriven: bool | None = None
    looked: bool | None = None

    @property
    def by_group(self) -> bool:
        """Whether it asks for some of the groups (queue + reason + code) only."""
        return (self.queue, self.reason, self.code, self.effect) != (None, None, None, None)

    @property
    def by_time(self) -> bool:
        """Whether it asks for a time of death."""
        return (self.died_from_ms, self.died_to_ms, self.min_age_ms, self.max_age_ms) != (None, None, None, None)

    @property
    def by_row(self) -> bool:
        """Whether it asks what only the job's own row can tell, so that no counter helps."""
        wanted = (self.id_prefix, self.attempts_min, self.attempts_max, self.redriven, self.looked)
        return wanted != (None, None, None, None, None)

    @property
    def active(self) -> bool:
        """Whether it asks for anything at all."""
        return self.by_group or self.by_time or self.by_row

    def admits_group(self, queue: str, reason: str, code: str) -> bool:
        """Whether jobs of this group can match."""
        return (
            (self.queue is None or self.queue == queue)
            and (self.reason is None or self.reason == reason)
            and (self.code is None or self.code == code)
            and (self.effect is None or self.effect == effect_possible(code))
        )

    def span(self, as_of_ms: int) -> tuple[int, int]:
        """Dead since within [from, to): always before the as-of time; from >= to when nothing can match."""
        low, high = self.died_from_ms or 0, as_of_ms
        if self.died_to_ms is not None:
            high = min(high, self.died_to_ms)
        if self.max_age_ms is not None:
            low = max(low, as_of_ms - self.max_age_ms)
        if self.min_age_ms is not None:
            high = min(high, as_of_ms - self.min_age_ms + 1)
        return low, high

    def canonical(self) -> str:
        """One text per filter: ASCII JSON with sorted names, without the fields that mean any."""
        return canonical_ascii({name: value for name, value in _values(self) if value is not None})

    def digest(self) -> str:
        """16 hex digits that tell filters apart: a cursor is bound to it."""
        return hashlib.sha256(self.canonical().encode("ascii")).hexdigest()[:16]

    def query(self) -> list[tuple[str, str]]:
        """Name and value pairs of the address; `parse` reads them back to an equal filter."""
        return [(NAMES[name], written(name, value)) for name, value in _values(self) if value is not None]


def parse(
    given: Mapping[str, Sequence[str]],
    *,
    queues: Collection[str] | None = None,
    zone: tzinfo = UTC,
    passed_over: Collection[str] = PAGE_NAMES,
) -> Filter:
    """The filter that an address or a form asks for, or FilterError with a sentence for each field that is wrong.

    `given` maps each name to all its values; a name with two values is refused, because either would be a guess. An
    empty value means any. `queues` are the declared ones (None: any name). `zone` reads local times. Names in
    `passed_over` belong to the page; any other unknown name is refused, or a slip would show more than was asked for.
    """
    problems: list[Problem] = []
    found: dict[str, Any] = {}
    asked = [name for name in given if name not in passed_over]
    if len(asked) > MAX_NAMES:
        raise FilterError(
            [Problem("", "unknown", f"There are {len(asked)} filters; at most {MAX_NAMES} can be given.")]
        )
    for name in asked:
        try:
            value = one_of(name, given[name])
            if value is not None and name != "state":
                found[FIELDS[name]] = read(name, value, queues, zone)
        except Refused as refused:
            problems.append(refused.problem)
    problems += _contradictions(found)
    if problems:
        raise FilterError(problems)
    return Filter(**found)


def from_canonical(text: str) -> Filter:
    """The filter whose `canonical` this is. FilterError unless it is exactly that: stored text is checked like any."""
    try:
        stored = json.loads(text)
        if type(stored) is dict and all(_stored_well(name, value) for name, value in stored.items()):
            found = Filter(**stored)
            if found.canonical() == text and not _contradictions(stored):
                return found
    except (ValueError, TypeError, RecursionError):
        pass
    raise FilterError([Problem("", "shape", gettext_noop("The stored filter cannot be read."))])


# --- checks ---------------------------------------------------------------------------------------------------------


_ORDERED = (
    (
        "died_from_ms",
        "died_to_ms",
        "died_to",
        gettext_noop("The end of the time of death must be after its beginning."),
    ),
    ("attempts_min", "attempts_max", "attempts_max", gettext_noop("The most tries must not be below the fewest.")),
    ("min_age_ms", "max_age_ms", "max_age", gettext_noop("The greatest age must not be below the smallest.")),
)


def _contradictions(found: Mapping[str, Any]) -> list[Problem]:
    wrong = []
    for low, high, field, template in _ORDERED:
        if found.get(low) is not None and found.get(high) is not None:
            bad = found[low] >= found[high] if low == "died_from_ms" else found[low] > found[high]
            if bad:
                wrong.append(Problem(field, "order", template))
    return wrong


# --- writing --------------------------------------------------------------------------------------------------------


def _values(wanted: Filter) -> list[tuple[str, Any]]:
    return [(field.name, getattr(wanted, field.name)) for field in fields(wanted)]


def _stored_well(name: str, value: object) -> bool:
    if name in ("effect", "redriven", "looked"):
        return type(value) is bool
    if name == "code" and value == "":
        return True
    if name == "reason":
        return value in REASONS
    if name in ("queue", "code", "id_prefix"):
        return isinstance(value, str) and bool(SHAPES[NAMES[name]][0].fullmatch(value))
    high = MAX_ATTEMPTS if name.startswith("attempts") else MAX_INSTANT_MS
    return isinstance(value, int) and type(value) is int and 0 <= value <= high
