"""The words of a filter: each field's name in an address, how its value is read, and how it is written.

Pure. A value that cannot be meant is refused with one sentence.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from datetime import tzinfo
from typing import Any, NoReturn

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.orders import MAX_ATTEMPTS, MAX_INSTANT_MS
from queue_app.policy.refusals import half_width, shown
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS, local_instant_ms

REASONS = ("permanent", "exhausted", "deadline")
NO_CODE = "-"  # in an address: the failure gave no code; an empty field of a form means any
MAX_VALUE = 200

_QUEUE = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_CODE = re.compile(r"[a-z0-9][a-z0-9_]{0,47}")
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
SHAPES = {
    "queue": (_QUEUE, gettext_noop("A queue's name does not look like %(value)s.")),
    "code": (_CODE, gettext_noop("A code does not look like %(value)s.")),
    "id": (_PREFIX, gettext_noop("The beginning of an order's id does not look like %(value)s.")),
}
_SPAN = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_UNITS = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one field is refused. `kind`: unknown, twice, shape, range, order; `offered`: its half-width form or ''.

    The sentence is kept as template and values, as in `policy.errors`, so that a page can say it in its language.
    """

    field: str
    kind: str
    template: str
    values: Mapping[str, object] = _field(default_factory=dict)
    offered: str = ""

    @property
    def sentence(self) -> str:
        """The English sentence, ASCII only, with the half-width form offered at its end."""
        said = self.template % self.values
        return f"{said[:-1]}; in half-width: {self.offered}." if self.offered else said


class FilterError(SnackOpsError, ValueError):
    """A filter that cannot be meant; `problems` holds one sentence for each field that is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = tuple(problems)


NAMES = {
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
FIELDS = {name: field for field, name in NAMES.items()}


class Refused(Exception):
    """One field is refused; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.field)
        self.problem = problem


def _refuse(field: str, kind: str, template: str, *, offered: str | None = None, **values: object) -> NoReturn:
    raise Refused(Problem(field, kind, template, values, offered or ""))


def one_of(name: str, values: Sequence[str]) -> str | None:
    """The one value given for a name, or None for an empty one. Raises Refused."""
    if name != "state" and name not in FIELDS:
        _refuse("", "unknown", gettext_noop("There is no filter %(value)s."), value=shown(name))
    if len(values) > 1:
        template = gettext_noop("The filter %(name)s is given %(count)s times; give it once.")
        _refuse(name, "twice", template, name=name, count=len(values))
    value = values[0] if values else ""
    if type(value) is not str or len(value) > MAX_VALUE:
        _refuse(name, "shape", gettext_noop("The filter %(name)s is too long or no text."), name=name)
    value = value.strip(" ")
    if name == "state" and value not in ("", "dead"):
        template = gettext_noop("Only orders in quarantine are listed here, state dead, not %(value)s.")
        _refuse(name, "unknown", template, value=shown(value))
    return value or None


def read(name: str, value: str, queues: Collection[str] | None, zone: tzinfo) -> object:
    """What the value of this field means. Raises Refused."""
    if name in ("queue", "reason", "code", "id"):
        return _read_word(name, value, queues)
    if name in ("died_from", "died_to"):
        return _read_instant(name, value, zone)
    if name in ("min_age", "max_age"):
        return _read_span(name, value)
    if name in ("attempts_min", "attempts_max"):
        return _read_whole(name, value)
    if value not in ("yes", "no"):
        template = gettext_noop("The filter %(name)s is yes or no, and this is %(value)s.")
        _refuse(name, "unknown", template, name=name, value=shown(value))
    return value == "yes"


def _read_word(name: str, value: str, queues: Collection[str] | None) -> str:
    if name == "reason":
        if value not in REASONS:
            template = gettext_noop("The reason is permanent, exhausted or deadline, not %(value)s.")
            _refuse(name, "unknown", template, value=shown(value))
        return value
    if name == "code" and value == NO_CODE:
        return ""
    shape, template = SHAPES[name]
    if not shape.fullmatch(value):
        _refuse(name, "shape", template, offered=half_width(value, shape), value=shown(value))
    if name == "queue" and queues is not None and value not in queues:
        _refuse(name, "unknown", gettext_noop("No queue %(value)s is declared."), value=shown(value))
    return value


def _read_instant(name: str, value: str, zone: tzinfo) -> int:
    if value.isascii() and value.isdigit():
        if len(value) <= 15 and int(value) <= MAX_INSTANT_MS:
            return int(value)
    else:
        local = local_instant_ms(value, zone, "from" if name == "died_from" else "to")
        if local is not None:
            return local
    template = gettext_noop("A time is written like 2026-11-29T02:30, in the years 1970 to 9999, not %(value)s.")
    _refuse(name, "shape", template, value=shown(value))


def _read_span(name: str, value: str) -> int:
    match = _SPAN.fullmatch(value)
    if match and (span := int(match[1]) * _UNITS[match[2]]) <= MAX_INSTANT_MS:
        return span
    _refuse(name, "shape", gettext_noop("An age is written like 90m, 2h or 3d, not %(value)s."), value=shown(value))


def _read_whole(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 4 and int(value) <= MAX_ATTEMPTS):
        template = gettext_noop("Tries are a whole number from 0 to %(most)s, and this is %(value)s.")
        form = half_width(value, re.compile("[0-9]{1,3}"))
        _refuse(name, "range", template, offered=form, most=MAX_ATTEMPTS, value=shown(value))
    return int(value)


def written(name: str, value: Any) -> str:
    """How the value of this field of a filter stands in an address."""
    if type(value) is bool:
        return "yes" if value else "no"
    if name == "code":
        return value or NO_CODE
    if name in ("min_age_ms", "max_age_ms"):
        unit = next(unit for unit, length in _UNITS.items() if value % length == 0)
        return f"{value // _UNITS[unit]}{unit}"
    return str(value)
