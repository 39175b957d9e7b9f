"""Which events of the record are meant: one value for the address, the list and the export.

Pure. Steps of the redriver (`batch.tick`) are many and say little, so they are shown only when asked for; they are
never left out when an action is named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.errors import gettext_noop
from queue_app.policy.filter_words import FilterError, Problem
from queue_app.policy.orders import MAX_INSTANT_MS
from queue_app.policy.refusals import half_width, shown
from queue_app.policy.windows import local_instant_ms

REFUSED = "refused"
STEP = "batch.tick"
NAMES = ("who", "action", "target", "from", "to", "outcome", "steps")
# what the targets of events begin with; other text is an order's id or the R-12 of a redrive
PREFIXES = frozenset(
    {"plan", "job", "group", "filter", "user", "export", "identity", "throttled", "queue", "worker", "page"}
)

_ACTION = re.compile(r"[a-z][a-z0-9._-]{0,47}")
_TARGET = re.compile(r"[!-~]{1,128}")
_REDRIVE = re.compile(r"[Rr]-([1-9][0-9]{0,17})")
_PLACE = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """None means any. `who`: a person's name, or a program's. Times are ms: from_ms <= at < to_ms.

    `target` is as stored (`plan:12`, `job:o12-1`), or what people say for it: `R-12`, an order's id.
    `refused`: only what was refused. `steps`: also the redriver's steps.
    """

    who: str | None = None
    action: str | None = None
    target: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    refused: bool = False
    steps: bool = False

    @property
    def active(self) -> bool:
        """Whether it leaves anything out that the plain list shows."""
        return self != AuditFilter(steps=self.steps)

    @property
    def stored_target(self) -> str | None:
        """The target as events hold it."""
        if self.target is None or self.target.partition(":")[0] in PREFIXES:
            return self.target
        match = _REDRIVE.fullmatch(self.target)
        return f"plan:{match[1]}" if match else f"job:{self.target}"

    def query(self) -> list[tuple[str, str]]:
        """Name and value pairs of the address; `parse` reads them back to an equal filter."""
        pairs = [
            ("who", self.who),
            ("action", self.action),
            ("target", self.target),
            ("from", self.from_ms),
            ("to", self.to_ms),
            ("outcome", REFUSED if self.refused else None),
            ("steps", "yes" if self.steps else None),
        ]
        return [(name, str(value)) for name, value in pairs if value is not None]

    def canonical(self) -> str:
        """One ASCII text per filter."""
        return canonical_ascii(dict(self.query()))


def parse(given: Mapping[str, Sequence[str]], *, zone: tzinfo, passed_over: Sequence[str] = ()) -> AuditFilter:
    """The filter that an address or a form asks for, or FilterError with a sentence for each field that is wrong.

    `zone` reads local times. A name given twice and an unknown name are refused, or a slip would show other events.
    """
    problems: list[Problem] = []
    values: dict[str, str] = {}
    for name, texts in given.items():
        if name in passed_over:
            continue
        if name not in NAMES:
            problems.append(_problem("", "unknown", gettext_noop("There is no filter %(value)s."), value=shown(name)))
        elif len(texts) > 1:
            problems.append(_problem(name, "twice", gettext_noop("It is given more than once; give it once.")))
        elif value := texts[0].strip(" ") if texts else "":
            values[name] = value
        if len(problems) > 10:
            break
    found = {name: _read(name, value, zone, problems) for name, value in values.items()}
    start, end = found.get("from"), found.get("to")
    if isinstance(start, int) and isinstance(end, int) and start >= end:
        problems.append(_problem("to", "order", gettext_noop("The end must be after the beginning.")))
    if problems:
        raise FilterError(problems)
    return AuditFilter(
        who=values.get("who"),
        action=values.get("action"),
        target=values.get("target"),
        from_ms=start if isinstance(start, int) else None,
        to_ms=end if isinstance(end, int) else None,
        refused="outcome" in values,
        steps="steps" in values,
    )


def place(text: str) -> int | None:
    """The seq that a page of the list begins at; None when the text is no such number."""
    return int(text) if _PLACE.fullmatch(text) else None


def _read(name: str, value: str, zone: tzinfo, problems: list[Problem]) -> int | str | None:
    if name in ("from", "to"):
        at_ms = _instant(name, value, zone)
        if at_ms is None:
            template = gettext_noop(
                "A time is written like 2026-11-29T02:30, within the years 1970 to 9999, not %(value)s."
            )
            problems.append(_problem(name, "shape", template, value=shown(value)))
        return at_ms
    if name == "who":
        if len(value) > 150 or not value.isprintable():
            problems.append(_problem(name, "shape", gettext_noop("A name has at most 150 characters.")))
        return value
    template, shape = {
        "action": (gettext_noop("An action does not look like %(value)s."), _ACTION),
        "target": (gettext_noop("What it was about does not look like %(value)s."), _TARGET),
        "outcome": (gettext_noop("The outcome is refused, not %(value)s."), re.compile(REFUSED)),
        "steps": (gettext_noop("It is yes or nothing, not %(value)s."), re.compile("yes")),
    }[name]
    if not shape.fullmatch(value):
        offered = half_width(value, shape) or ""
        problems.append(_problem(name, "shape", template, offered, value=shown(value)))
    return value


def _instant(name: str, value: str, zone: tzinfo) -> int | None:
    if value.isascii() and value.isdigit():
        return int(value) if len(value) <= 15 and int(value) <= MAX_INSTANT_MS else None
    return local_instant_ms(value, zone, "from" if name == "from" else "to")


def _problem(field: str, kind: str, template: str, offered: str = "", **values: object) -> Problem:
    return Problem(field, kind, template, values, offered)
