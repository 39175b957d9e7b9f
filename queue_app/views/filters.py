"""The filter of an address as a form and as chips: what was asked for, in words, and how to take each part away."""

from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from queue_app.policy.filter_words import FIELDS
from queue_app.policy.filters import PAGE_NAMES, Filter, FilterError, parse
from queue_app.policy.windows import DAY_MS, MINUTE_MS, local_instant_ms
from queue_app.store import queues
from queue_app.templatetags.words import age, local_time, reason_word, zone_name

LABELS = {
    "queue": _("Queue"),
    "reason": _("Why it stopped"),
    "code": _("Code"),
    "effect": _("May already have been delivered"),
    "died_from": _("Died from"),
    "died_to": _("Died before"),
    "min_age": _("In quarantine for at least"),
    "max_age": _("In quarantine for at most"),
    "id": _("Id begins with"),
    "attempts_min": _("At least so many tries"),
    "attempts_max": _("At most so many tries"),
    "redriven": _("Redriven before"),
    "looked": _("Looked at"),
}
_END: dict[str, Literal["from", "to"]] = {"died_from": "from", "died_to": "to"}
RARE = ("died_from", "died_to", "min_age", "max_age", "attempts_min", "attempts_max", "effect")


@dataclass(frozen=True, slots=True)
class Chip:
    """One part of the filter: its label, its value in people's words, and the list without it. `raw`: a name as it is."""

    name: str
    label: str
    value: str
    without: str
    raw: bool


def zone_of() -> tzinfo:
    """The zone in which typed times are meant: the person's."""
    return timezone.get_current_timezone() or ZoneInfo("UTC")


def filter_of(request: HttpRequest, *, also: tuple[str, ...] = ()) -> Filter:
    """The filter of the address; names in `also` belong to the page that asks. Raises FilterError."""
    return parse(
        dict(request.GET.lists()),
        queues=list(queues.policies()),
        zone=zone_of(),
        passed_over=PAGE_NAMES.union(also),
    )


def typed(request: HttpRequest) -> dict[str, str]:
    """The fields as they were typed, to be shown again; cut where nobody would read on, ms as the time they mean."""
    values = {name: request.GET.get(name, "")[:200] for name in LABELS}
    for name in ("died_from", "died_to"):
        values[name] = _as_typed(name, values[name])
    return values


def chips(wanted: Filter) -> list[Chip]:
    """The parts of a filter."""
    pairs = wanted.query()
    return [
        Chip(
            name,
            str(LABELS.get(name, name)),
            _said(name, value, getattr(wanted, FIELDS[name])),
            urlencode([pair for pair in pairs if pair[0] != name]),
            raw=name in ("queue", "id") or (name == "code" and bool(wanted.code)),
        )
        for name, value in pairs
    ]


def problems(error: FilterError) -> list[tuple[str, str]]:
    """(label, sentence) for each field that cannot be meant, in the person's language."""
    found = []
    for problem in error.problems:
        sentence = gettext(problem.template) % problem.values
        if problem.offered:
            sentence = gettext("%(sentence)s In half-width: %(offered)s") % {
                "sentence": sentence,
                "offered": problem.offered,
            }
        found.append((str(LABELS.get(problem.field, problem.field)), sentence))
    return found


def _said(name: str, written: str, value: object) -> str:
    """The value of one part in people's words; an id, a code or a queue's name stays as it is."""
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if name == "reason":
        return reason_word(written)
    if name == "code" and not value:
        return gettext("no code")
    if name in ("died_from", "died_to") and isinstance(value, int):
        at = local_time(value)
        return f"{at:%Y-%m-%d %H:%M:%S} {zone_name(at)}" if at else f"{value} ms"
    if name in ("min_age", "max_age") and isinstance(value, int):
        exact = value % MINUTE_MS == 0 and (value < DAY_MS or value % DAY_MS == 0)
        return age(value) if exact else written
    return written


def _as_typed(name: str, text: str) -> str:
    """A link's milliseconds as a local time, where that reads back to the same instant; else the text as it is."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        return text
    at = local_time(int(text))
    local = f"{at:%Y-%m-%dT%H:%M:%S}".removesuffix(":00") if at else ""
    local += f".{int(text) % 1000:03d}" if int(text) % 1000 else ""
    return local if local and local_instant_ms(local, zone_of(), _END[name]) == int(text) else text
