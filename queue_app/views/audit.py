"""The audit trail: what people did and were refused, one event with its proof, and all of it as a file."""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from queue_app.policy.audit_actions import ACTIONS
from queue_app.policy.audit_filters import NAMES, REFUSED, AuditFilter, parse, place
from queue_app.policy.cells import Column, Row, utc
from queue_app.policy.errors import gettext_noop
from queue_app.policy.filters import FilterError, Problem
from queue_app.reads import audit, audit_story, chain
from queue_app.reads.audit import EventRow
from queue_app.services import exports
from queue_app.services.exports import Content
from queue_app.services.people import Actor
from queue_app.store import database
from queue_app.templatetags.audit_words import details
from queue_app.views import filters
from queue_app.views.downloads import answer
from queue_app.views.reading import reader_of

LABELS = {
    "who": _("Who"),
    "action": _("Event"),
    "target": _("Order or redrive"),
    "from": _("From"),
    "to": _("Before"),
    "outcome": _("Outcome"),
    "steps": _("With the steps of the redriver"),
    "before": _("Place in the list"),
    "after": _("Place in the list"),
}
COLUMNS = (
    Column("seq", "number"),
    Column("link", "number"),
    Column("at_ms", "number"),
    Column("at"),
    Column("actor_id", "number"),
    Column("name"),
    Column("roles"),
    Column("action"),
    Column("target", "id"),
    Column("note", "id"),
    Column("source"),
    Column("proof"),
    Column("detail"),
    Column("prev", "id"),
    Column("hash", "id"),
    Column("version", "number"),
)


@require_safe
def audit_list(request: HttpRequest) -> HttpResponse:
    """A page of events, the newest first; 400 with the input kept when the address cannot be meant."""
    actor = reader_of(request)
    context: dict[str, Any] = {
        "typed": {name: request.GET.get(name, "")[:200] for name in NAMES},
        "labels": LABELS,
        "actions": [action for action in ACTIONS if action != REFUSED or actor.may("read_refused")],
        "names": audit.known_names(),
        "may_see_refused": actor.may("read_refused"),
        "as_of_ms": database.now_ms(),
    }
    try:
        wanted = _filter_of(dict(request.GET.lists()), passed_over=("before", "after"))
        places = _places(request)
    except FilterError as error:
        context["problems"] = _problems(error)
        return render(request, "audit/list.html", context, status=400)
    if _looks_for_refused(wanted):  # whoever asks for them by name is told who may, rather than shown an empty list
        reader_of(request, "read_refused")
    pairs = wanted.query()
    context |= {
        "page": audit.page(
            wanted, with_refused=actor.may("read_refused"), before=places["before"], after=places["after"]
        ),
        "anchor": chain.anchor(),
        "chips": _chips(wanted),
        "filter_pairs": pairs,
        "query": urlencode(pairs),
        "may_export": actor.may("export"),
        "rare_open": wanted.from_ms is not None or wanted.to_ms is not None,
    }
    return render(request, "audit/list.html", context)


@require_safe
def audit_event(request: HttpRequest, seq: int) -> HttpResponse:
    """One event with everything that the record holds of it, its place in the chain, and its redrive's story."""
    reader_of(request)
    row = audit.event(seq)
    if row is None:
        raise Http404
    if row.action == REFUSED:
        reader_of(request, "read_refused")
    before, after = audit_story.neighbours(row.link)
    context = {
        "event": row,
        "details": [(name, _shown(value)) for name, value in sorted(details(row).items())],
        "before": before,
        "after": after,
        "newest": chain.anchor(),
        "story": _story(row),
        "as_of_ms": database.now_ms(),
    }
    return render(request, "audit/event.html", context)


@require_POST
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """CSV or JSON lines of the events that the filter in the form shows, oldest first, with their hashes."""
    wanted = _filter_of({name: request.POST.getlist(name) for name in NAMES if name in request.POST})
    made = exports.export(
        request.user,
        "audit",
        COLUMNS,
        lambda actor: _content(actor, wanted),
        filter=wanted.canonical(),
        form=request.POST.get("format", "csv"),
        rights=("read_refused",) if _looks_for_refused(wanted) else (),
    )
    return answer(made)


def _content(actor: Actor, wanted: AuditFilter) -> Content:
    with_refused, head = actor.may("read_refused"), chain.anchor()
    upto = head.seq if head else 0
    rows = audit.count(wanted, with_refused=with_refused, upto=upto, look=exports.LOOK, rest=exports.rest)
    return Content(rows, database.now_ms(), _bites(wanted, with_refused=with_refused, upto=upto))


def _bites(wanted: AuditFilter, *, with_refused: bool, upto: int) -> Iterator[Sequence[Row]]:
    def read(after: EventRow | None, limit: int) -> list[EventRow]:
        last = after.seq if after else 0
        return audit.stretch(
            wanted,
            with_refused=with_refused,
            upto=upto,
            after=last,
            limit=limit,
            look=exports.LOOK,
            rest=exports.rest,
        )

    for rows in exports.in_bites(read):
        yield [_cells(row) for row in rows]


def _cells(row: EventRow) -> Row:
    return (
        *(row.seq, row.link, row.at_ms, utc(row.at_ms), row.actor_id, row.name, row.roles, row.action, row.target),
        *(row.note, row.source, row.proof, row.detail, row.prev, row.hash, row.version),
    )


def _filter_of(given: dict[str, Any], passed_over: Sequence[str] = ()) -> AuditFilter:
    return parse(given, zone=timezone.get_current_timezone(), passed_over=passed_over)


def _looks_for_refused(wanted: AuditFilter) -> bool:
    return bool(wanted.refused) or wanted.action == REFUSED


def _places(request: HttpRequest) -> dict[str, int | None]:
    """`before` or `after` of the address. Raises FilterError."""
    places: dict[str, int | None] = {"before": None, "after": None}
    for name in tuple(places):
        texts = request.GET.getlist(name)
        if not texts:
            continue
        places[name] = place(texts[0]) if len(texts) == 1 else None
        if places[name] is None:
            raise FilterError([Problem(name, "shape", gettext_noop("This page of the list does not exist."))])
    return places


def _problems(error: FilterError) -> list[tuple[str, str]]:
    return [(str(LABELS.get(field, field)), sentence) for field, sentence in filters.problems(error)]


def _chips(wanted: AuditFilter) -> list[dict[str, object]]:
    """Each part of the filter with the list without it; instants also as ms."""
    pairs = wanted.query()
    return [
        {
            "name": name,
            "label": LABELS[name],
            "value": value,
            "at_ms": {"from": wanted.from_ms, "to": wanted.to_ms}.get(name),
            "without": urlencode([pair for pair in pairs if pair[0] != name]),
        }
        for name, value in pairs
    ]


def _story(row: EventRow) -> audit_story.RedriveStory | None:
    """The redrive that the event is about, or whose batch it belongs to."""
    kind, _colon, rest = row.target.partition(":")
    number = rest if kind == "plan" else str(details(row).get("batch") or "")
    return audit_story.redrive(int(number)) if number.isascii() and number.isdigit() and len(number) < 19 else None


def _shown(value: object) -> str:
    return "–" if value is None or value == "" else value if isinstance(value, str) else json.dumps(value)
