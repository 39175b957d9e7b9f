"""Which orders of the quarantine are meant: one value for the address, the list, the count, a plan and an export.

Pure: nothing here asks a database or a clock. A filter is about dead jobs only; `reads.dead` turns it into SQL.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, tzinfo
from typing import Any, NoReturn

from queue_app.policy.answers import effect_possible
from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.orders import MAX_ATTEMPTS, MAX_INSTANT_MS
from queue_app.policy.refusals import offer, shown
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS, local_instant_ms

REASONS = ("permanent", "exhausted", "deadline")
NO_CODE = "-"  # in an address: the failure gave no code; an empty field of a form means any
MAX_VALUE = 200
MAX_NAMES = 50
PAGE_NAMES = frozenset({"cursor", "sort", "size", "as_of", "window", "view", "page", "saved", "partial"})

_QUEUE = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_CODE = re.compile(r"[a-z0-9][a-z0-9_]{0,47}")
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_SPAN = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_UNITS = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one field is refused. `kind`: unknown, twice, shape, range, order; `offered`: its half-width form or ''."""

    field: str
    kind: str
    sentence: str
    offered: str = ""


class FilterError(SnackOpsError, ValueError):
    """A filter that cannot be meant; `problems` holds one sentence for each field that is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = tuple(problems)


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
        return [(_NAMES[name], _written(name, value)) for name, value in _values(self) if value is not None]


_NAMES = {
    "queue": "queue",
    "reason": "reason",
    "code": "code",
    "effect": "effect",
    "died_from_ms": "died_from",
    "died_to_ms": "died_to",
    "min_age_ms": "min_age",
    "max_age_ms": "max_age",
    "id_prefix": "id",
    "attempts_min": "attempts_min",
    "attempts_max": "attempts_max",
    "redriven": "redriven",
    "looked": "looked",
}
_FIELDS = {name: field for field, name in _NAMES.items()}


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
            value = _one(name, given[name])
            if value is not None and name != "state":
                found[_FIELDS[name]] = _read(name, value, queues, zone)
        except _Refused as refused:
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
    raise FilterError([Problem("", "shape", "The stored filter cannot be read.")])


# --- reading one value ----------------------------------------------------------------------------------------------


class _Refused(Exception):
    def __init__(self, field: str, kind: str, sentence: str, offered: str = "") -> None:
        super().__init__(sentence)
        self.problem = Problem(field, kind, sentence, offered)


def _refuse(field: str, kind: str, sentence: str, offered: str = "") -> NoReturn:
    raise _Refused(field, kind, sentence, offered)


def _one(name: str, values: Sequence[str]) -> str | None:
    if name != "state" and name not in _FIELDS:
        _refuse("", "unknown", f"There is no filter {shown(name)}.")
    if len(values) > 1:
        _refuse(name, "twice", f"The filter {name} is given {len(values)} times; give it once.")
    value = values[0] if values else ""
    if type(value) is not str or len(value) > MAX_VALUE:
        _refuse(name, "shape", f"The filter {name} is too long or no text.")
    value = value.strip(" ")
    if name == "state" and value not in ("", "dead"):
        _refuse(name, "unknown", f"Only orders in quarantine are listed here, state dead, not {shown(value)}.")
    return value or None


def _read(name: str, value: str, queues: Collection[str] | None, zone: tzinfo) -> object:
    if name in ("queue", "reason", "code", "id"):
        return _read_word(name, value, queues)
    if name in ("died_from", "died_to"):
        return _read_instant(name, value, zone)
    if name in ("min_age", "max_age"):
        return _read_span(name, value)
    if name in ("attempts_min", "attempts_max"):
        return _read_whole(name, value)
    if value not in ("yes", "no"):
        _refuse(name, "unknown", f"The filter {name} is yes or no, and this is {shown(value)}.")
    return value == "yes"


def _read_word(name: str, value: str, queues: Collection[str] | None) -> str:
    if name == "reason":
        if value not in REASONS:
            _refuse(name, "unknown", f"The reason is {', '.join(REASONS[:-1])} or {REASONS[-1]}, not {shown(value)}.")
        return value
    if name == "code" and value == NO_CODE:
        return ""
    shape = {"queue": _QUEUE, "code": _CODE, "id": _PREFIX}[name]
    if not shape.fullmatch(value):
        hint = offer(value, shape)
        what = {"queue": "A queue's name", "code": "A code", "id": "The beginning of an order's id"}[name]
        _refuse(name, "shape", f"{what} does not look like {shown(value)}{hint}.", hint.rpartition(": ")[2])
    if name == "queue" and queues is not None and value not in queues:
        _refuse(name, "unknown", f"No queue {shown(value)} is declared.")
    return value


def _read_instant(name: str, value: str, zone: tzinfo) -> int:
    if value.isascii() and value.isdigit():
        at_ms = int(value) if len(value) <= 15 else MAX_INSTANT_MS + 1
        if at_ms <= MAX_INSTANT_MS:
            return at_ms
    else:
        local = local_instant_ms(value, zone, "from" if name == "died_from" else "to")
        if local is not None:
            return local
    _refuse(
        name, "shape", f"A time is written like 2026-11-29T02:30, within the years 1970 to 9999, not {shown(value)}."
    )


def _read_span(name: str, value: str) -> int:
    match = _SPAN.fullmatch(value)
    span = int(match[1]) * _UNITS[match[2]] if match else MAX_INSTANT_MS + 1
    if span > MAX_INSTANT_MS:
        _refuse(name, "shape", f"An age is written like 90m, 2h or 3d, not {shown(value)}.")
    return span


def _read_whole(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 4 and int(value) <= MAX_ATTEMPTS):
        hint = offer(value, re.compile("[0-9]{1,3}"))
        sentence = f"Tries are a whole number from 0 to {MAX_ATTEMPTS}, and this is {shown(value)}{hint}."
        _refuse(name, "range", sentence, hint.rpartition(": ")[2])
    return int(value)


_ORDERED = (
    ("died_from_ms", "died_to_ms", "died_to", "The end of the time of death must be after its beginning."),
    ("attempts_min", "attempts_max", "attempts_max", "The most tries must not be below the fewest."),
    ("min_age_ms", "max_age_ms", "max_age", "The greatest age must not be below the smallest."),
)


def _contradictions(found: Mapping[str, Any]) -> list[Problem]:
    wrong = []
    for low, high, field, sentence in _ORDERED:
        if found.get(low) is not None and found.get(high) is not None:
            bad = found[low] >= found[high] if low == "died_from_ms" else found[low] > found[high]
            if bad:
                wrong.append(Problem(field, "order", sentence))
    return wrong


# --- writing --------------------------------------------------------------------------------------------------------


def _values(wanted: Filter) -> list[tuple[str, Any]]:
    return [(field.name, getattr(wanted, field.name)) for field in fields(wanted)]


def _written(name: str, value: Any) -> str:
    if type(value) is bool:
        return "yes" if value else "no"
    if name == "code":
        return value or NO_CODE
    if name in ("min_age_ms", "max_age_ms"):
        unit = next(unit for unit, length in _UNITS.items() if value % length == 0)
        return f"{value // _UNITS[unit]}{unit}"
    return str(value)


def _stored_well(name: str, value: object) -> bool:
    if name in ("effect", "redriven", "looked"):
        return type(value) is bool
    if name == "code" and value == "":
        return True
    shapes = {"queue": _QUEUE, "code": _CODE, "id_prefix": _PREFIX}
    if name in shapes or name == "reason":
        return isinstance(value, str) and (
            value in REASONS if name == "reason" else bool(shapes[name].fullmatch(value))
        )
    high = MAX_ATTEMPTS if name.startswith("attempts") else MAX_INSTANT_MS
    return isinstance(value, int) and type(value) is int and 0 <= value <= high
