"""The filter of an address as a form and as chips: what was asked for, in words, and how to take each part away."""

from dataclasses import dataclass
from datetime import tzinfo
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from queue_app.policy.filters import Filter, FilterError, parse
from queue_app.store import queues

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
RARE = ("died_from", "died_to", "min_age", "max_age", "attempts_min", "attempts_max", "effect")


@dataclass(frozen=True, slots=True)
class Chip:
    """One part of the filter: its label, its value as typed in the address, and the list without it."""

    name: str
    label: str
    value: str
    without: str


def zone_of() -> tzinfo:
    """The zone in which typed times are meant: the person's."""
    return timezone.get_current_timezone() or ZoneInfo("UTC")


def filter_of(request: HttpRequest) -> Filter:
    """The filter of the address. Raises FilterError."""
    return parse(dict(request.GET.lists()), queues=list(queues.policies()), zone=zone_of())


def typed(request: HttpRequest) -> dict[str, str]:
    """The fields as they were typed, to be shown again; cut where nobody would read on."""
    return {name: request.GET.get(name, "")[:200] for name in LABELS}


def chips(wanted: Filter) -> list[Chip]:
    """The parts of a filter."""
    pairs = wanted.query()
    return [
        Chip(name, str(LABELS.get(name, name)), value, urlencode([pair for pair in pairs if pair[0] != name]))
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
