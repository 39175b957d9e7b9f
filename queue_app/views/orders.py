"""One order: its whole life, what comes next by itself, and what a person can do."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from queue_app.policy.bodies import parsed
from queue_app.policy.canonical import canonical_json
from queue_app.reads import queues as queue_reads
from queue_app.reads.behind import behind
from queue_app.reads.life import Life, life, removed
from queue_app.reads.life_steps import Part
from queue_app.services import payloads, unblocks
from queue_app.services.people import Actor, may_see_payload
from queue_app.store import database
from queue_app.views.order_places import place_of
from queue_app.views.queue_forms import UnblockForm
from queue_app.views.reading import reader_of
from queue_app.views.words import step_mark, step_sentence

MAX_DIGITS = 18  # of a token in an address


@require_safe
def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """The page of one order."""
    actor = reader_of(request)
    context = _context(request, actor, job_id)
    if context is None:
        return _removed(request, job_id)
    return render(request, "orders/detail.html", context)


def _removed(request: HttpRequest, job_id: str) -> HttpResponse:
    """The page of an order of which only the tombstone is left."""
    found = removed(job_id)
    if found is None:
        raise Http404(_("No order has this id."))
    context = {"order": found, "as_of_ms": database.now_ms(), "section": "quarantine"}
    return render(request, "orders/removed.html", context)


@require_POST
def job_unblock(request: HttpRequest, job_id: str) -> HttpResponse:
    """Let the later orders of its key pass this one; 422 with the input kept when the ticket cannot be meant."""
    form = UnblockForm(request.POST)
    if not form.is_valid():
        context = _context(request, reader_of(request), job_id)
        if context is None:
            raise Http404(_("No order has this id."))
        return render(request, "orders/detail.html", context | {"unblock_form": form}, status=422)
    data = form.cleaned_data
    receipt = unblocks.unblock(request.user, job_id, token=data["token"], note=data["note"])  # type: ignore[arg-type]
    if receipt.first:
        messages.success(request, _("%(job)s is passed: the later orders of its key go on.") % {"job": job_id})
    else:
        messages.info(request, _("%(by)s was first: %(job)s is passed.") % {"by": receipt.by, "job": job_id})
    query = request.GET.urlencode()
    return redirect(reverse("job", args=[job_id]) + (f"?{query}" if query else ""))


@require_POST
def job_payload(request: HttpRequest, job_id: str) -> HttpResponse:
    """The page with what the order contains; the look is recorded before anything is shown."""
    contents = parsed(payloads.look(request.user, job_id))  # type: ignore[arg-type]
    context = _context(request, reader_of(request), job_id)
    if context is None:
        raise Http404(_("No order has this id."))
    context["contents"] = [(key, _shown(value)) for key, value in contents.items()]
    context["contents_shown"] = True
    return render(request, "orders/detail.html", context)


def _context(request: HttpRequest, actor: Actor, job_id: str) -> dict[str, Any] | None:
    as_of_ms = database.now_ms()
    found = life(job_id, as_of_ms, _part(request))
    if found is None:
        return None
    return {
        "job": found,
        "steps": [(step, *step_mark(step), step_sentence(step)) for step in found.steps],
        "older_query": _query_of(request, before=found.older),
        "newer_query": _query_of(request, after=found.newer),
        "may_investigate": actor.may("investigate"),
        "may_plan": actor.may("plan"),
        "may_see_payload": may_see_payload(request.user),  # type: ignore[arg-type]
        "as_of_ms": as_of_ms,
        "section": "quarantine",
        **_waiting(found, actor),
        **place_of(request),
    }


def _waiting(found: Life, actor: Actor) -> dict[str, Any]:
    """What waits behind an order in quarantine, with the form to let it pass; or that its receiver is left alone."""
    if found.state == "pending":
        return {"left_alone": dict(queue_reads.left_alone()).get(found.queue)}
    if found.state != "dead" or not (found.blocks or found.unblocked):
        return {}
    form = UnblockForm(initial={"token": found.token})
    return {"behind": behind(found.id), "unblock_form": form, "may_unblock": actor.may("unblock")}


def _part(request: HttpRequest) -> Part:
    """Which steps the address asks for; what cannot be meant is the newest ones."""
    for name in ("after", "before"):
        given = request.GET.get(name, "")
        if given.isascii() and given.isdigit() and len(given) <= MAX_DIGITS:
            return Part(**{name: int(given)})
    return Part()


def _query_of(request: HttpRequest, **token: int | None) -> str:
    """The address of other steps of the same order, from the same list; '' when there are none."""
    query = request.GET.copy()
    for name in ("after", "before"):
        query.pop(name, None)
    for name, value in token.items():
        if value is None:
            return ""
        query[name] = str(value)
    return query.urlencode()


def _shown(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value)
