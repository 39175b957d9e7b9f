"""Investigations: all that were recorded, and recording one on an order, a cause or a filter."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.request import QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from queue_app.policy.errors import InvalidNote
from queue_app.policy.filters import Filter, FilterError, parse
from queue_app.policy.orders import check_id
from queue_app.reads import coverage, dead
from queue_app.reads.looks import looks
from queue_app.services import looks as looking
from queue_app.store import database, queues
from queue_app.templatetags.words import number
from queue_app.views import filters
from queue_app.views.investigation_forms import InvestigationForm
from queue_app.views.reading import reader_of
from queue_app.views.refusals import sentence_of

ANY = Filter()


@dataclass(frozen=True, slots=True)
class Scope:
    """What an investigation is of: an order, a whole cause, or a filter."""

    kind: str
    job_id: str = ""
    filter: Filter = ANY

    @property
    def group(self) -> tuple[str, str, str]:
        """Queue, reason and code of a whole cause."""
        return self.filter.queue or "", self.filter.reason or "", self.filter.code or ""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Hidden fields and address parts that name this scope."""
        return [("job", self.job_id)] if self.kind == "job" else self.filter.query()

    @property
    def page(self) -> str:
        """The page to go back to."""
        if self.kind == "job":
            return reverse("job", args=[self.job_id])
        if self.kind == "group":
            queue, reason, code = self.group
            return reverse("group", args=[queue, reason, code or "-"])
        query = QueryDict(mutable=True)
        for name, value in self.filter.query():
            query[name] = value
        return f"{reverse('quarantine_list')}?{query.urlencode()}"


def scope_of(given: QueryDict) -> Scope:
    """The scope that fields name. Raises FilterError or InvalidOrder."""
    if given.get("job"):
        return Scope("job", job_id=check_id(given["job"]))
    named = {name: given.getlist(name) for name in filters.LABELS if name in given}
    wanted = parse(named, queues=list(queues.policies()), zone=filters.zone_of())
    whole = wanted == Filter(queue=wanted.queue, reason=wanted.reason, code=wanted.code)
    if whole and wanted.queue and wanted.reason and wanted.code is not None:
        return Scope("group", filter=wanted)
    return Scope("filter", filter=wanted)


@require_safe
def investigation_list(request: HttpRequest) -> HttpResponse:
    """All investigations, the latest first."""
    reader_of(request)
    before = request.GET.get("before", "")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    if before and place is None:
        return render(request, "errors/refused.html", _refused(_("This page of the list does not exist.")), status=400)
    return render(request, "investigations/list.html", {"looks": looks(before=place), "as_of_ms": database.now_ms()})


@require_http_methods(["GET", "HEAD", "POST"])
def investigation_new(request: HttpRequest) -> HttpResponse:
    """Record what was found; 422 with the input kept when it cannot be recorded so."""
    actor = reader_of(request)
    given = request.POST if request.method == "POST" else request.GET
    scope = scope_of(given)
    form = InvestigationForm(request.POST if request.method == "POST" else None, initial={"as_of": now_after()})
    if request.method == "POST" and form.is_valid() and _recorded(request, scope, form):
        return redirect(scope.page)
    status = 422 if form.errors else 200
    return render(
        request, "investigations/new.html", form_context(actor.may("investigate"), scope, form), status=status
    )


@require_POST
def investigation_presence(request: HttpRequest) -> HttpResponse:
    """Say that this person has the form of a cause open; who else has."""
    scope = scope_of(request.POST)
    others = looking.seen(request.user, scope.group) if scope.kind == "group" else ()  # type: ignore[arg-type]
    return render(request, "investigations/_presence.html", {"others": others, "scope": scope})


def now_after() -> int:
    """The instant of a list that is opened now: what died in this very millisecond belongs to it."""
    return database.now_ms() + 1


def form_context(allowed: bool, scope: Scope, form: InvestigationForm) -> dict[str, Any]:
    """What the form's page and fragment need."""
    as_of_ms = now_after()
    found: dict[str, Any] = {"form": form, "scope": scope, "may_investigate": allowed, "section": "investigation"}
    if scope.kind == "filter":
        found["count"] = dead.count(scope.filter, as_of_ms)
        found["covered"] = coverage.covered(scope.filter, as_of_ms)
        found["chips"] = filters.chips(scope.filter)
    return found


def _recorded(request: HttpRequest, scope: Scope, form: InvestigationForm) -> bool:
    data = form.cleaned_data
    try:
        written = looking.record(
            request.user,  # type: ignore[arg-type]
            scope.kind,
            data["note"],
            data["finding"],
            comment=data["comment"],
            job_id=scope.job_id or None,
            group=scope.group if scope.kind == "group" else None,
            filter=scope.filter if scope.kind == "filter" else None,
            as_of_ms=data["as_of"],
        )
    except (InvalidNote, looking.InvalidLook, FilterError) as error:
        form.add_error(None, sentence_of(error))
        return False
    sentence = ngettext(
        "Recorded %(note)s: it counts for %(n)s order.", "Recorded %(note)s: it counts for %(n)s orders.", written.count
    )
    messages.success(request, sentence % {"note": data["note"], "n": number(written.count)})
    return True


def _refused(sentence: str) -> dict[str, str]:
    return {"layout": "base.html", "sentence": sentence}
