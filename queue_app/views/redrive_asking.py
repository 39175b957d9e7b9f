"""Asking for a redrive: what would be fixed, before it is, and the form; and the list of all redrives."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.request import QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from queue_app import conf
from queue_app.policy.errors import gettext_noop
from queue_app.policy.filters import PAGE_NAMES, Filter, parse
from queue_app.policy.plans import CLOSED, OPEN, STATES, InvalidPlan
from queue_app.policy.queues import QueuePolicy
from queue_app.policy.selections import Selection, by_filter, by_ids
from queue_app.reads import dead, figures, plans, previews, selected
from queue_app.services import plans as asking
from queue_app.services.receipts import Receipt
from queue_app.store import database, queues
from queue_app.templatetags.words import clock_of, number
from queue_app.views import filters
from queue_app.views.reading import reader_of
from queue_app.views.redrive_forms import TERMS, WORDS, RedriveForm

OWN_NAMES = frozenset({*TERMS, *WORDS, "ids", "form_key", "recalculate", "csrfmiddlewaretoken"})
PAGE_SIZE = 50
GROUPS_OF_STATES = {"open": OPEN, "closed": CLOSED}


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen: a filter or ids. `selection` is None while it is of no single queue; `parts` then are its queues."""

    filter: Filter | None = None
    ids: tuple[str, ...] = ()
    selection: Selection | None = None
    queue: str = ""
    parts: tuple[tuple[str, int, bool, str], ...] = ()  # queue, orders, exact, value of the fields that choose it

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Hidden fields that name it. Ids go in one field: a form may not hold a thousand."""
        if self.filter is not None:
            return self.filter.query()
        return [("ids", " ".join(self.ids))] if self.ids else []


@require_safe
def redrive_list(request: HttpRequest) -> HttpResponse:
    """What waits for this person, then all redrives, the newest first; 400 when the address cannot be meant."""
    actor = reader_of(request)
    as_of_ms = database.now_ms()
    names = list(queues.policies())
    typed = {name: request.GET.get(name, "")[:64] for name in ("state", "queue", "before")}
    context: dict[str, Any] = {"typed": typed, "queues": names, "states": STATES, "as_of_ms": as_of_ms}
    problem = _problem(request.GET, names)
    if problem:
        return render(request, "redrives/list.html", context | {"problem": problem}, status=400)
    state = typed["state"]
    lines = plans.plans(
        before=int(typed["before"]) if typed["before"] else None,
        states=GROUPS_OF_STATES.get(state, (state,)) if state else None,
        queue=typed["queue"] or None,
        limit=PAGE_SIZE + 1,
    )
    kept = [(name, typed[name]) for name in ("state", "queue") if typed[name]]
    first = not kept and not typed["before"]
    waiting = plans.waiting_for(actor.id, actor.roles, solo=conf.solo_approval()) if first else []
    above = {line.id for line in waiting}
    redrivers = [process for process in figures.processes(as_of_ms) if process.kind == "redriver"]
    context |= {
        "lines": lines[:PAGE_SIZE],
        "others": [line for line in lines[:PAGE_SIZE] if line.id not in above],
        "older_query": urlencode([*kept, ("before", lines[PAGE_SIZE - 1].id)]) if len(lines) > PAGE_SIZE else "",
        "newest_query": urlencode(kept),
        "decides": actor.may("approve"),
        "first": first,
        "waiting": waiting,
        "redriver_alive": any(process.state == "alive" for process in redrivers),
        "redriver_seen_ms": max((process.seen_at_ms for process in redrivers), default=None),
        "filtered": bool(kept),
        "solo_allowed": conf.solo_approval(),
    }
    return render(request, "redrives/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def redrive_new(request: HttpRequest) -> HttpResponse:
    """What would be fixed, and the form that asks for it. POST asks; POST with `recalculate` only shows the figures of
    another pace, so that neither comment nor a thousand ids ever stand in an address. 422 with the input kept."""
    actor = reader_of(request)
    given = request.POST if request.method == "POST" else request.GET
    choice = choice_of(given, database.now_ms())
    if choice.selection is None:
        return render(request, "redrives/new.html", {"choice": choice, "may_plan": actor.may("plan")})
    bound = request.method == "POST" or any(name in given for name in TERMS)
    wanted = request.method == "POST" and "recalculate" not in given
    form = RedriveForm(given if bound else None, policy=_policy(choice.queue), asking=wanted)
    if wanted:
        asking.may_ask(request.user)  # type: ignore[arg-type]
    if bound and form.is_valid() and wanted:
        receipt = _asked(request, choice.selection, form)
        if receipt is not None:
            return redirect("redrive", receipt.plan)
    context = _context(request, choice, form) | {
        "may_plan": actor.may("plan"),
        "solo_allowed": conf.solo_approval(),
    }
    fragment = request.headers.get("HX-Target") == "preview"
    template = "redrives/_preview.html" if fragment else "redrives/new.html"
    return render(request, template, context, status=422 if form.errors else 200)


def choice_of(given: QueryDict, now_ms: int) -> Choice:
    """What the fields choose. FilterError, InvalidPlan or InvalidOrder, each with its sentence.

    Nothing at all chosen is no choice, never everything.
    """
    ids = [part for text in given.getlist("ids") for part in text.split(" ") if part]
    named = {name: given.getlist(name) for name in given if name not in OWN_NAMES}
    policies = queues.policies()
    wanted = parse(named, queues=list(policies), zone=filters.zone_of(), passed_over=PAGE_NAMES)
    if "ids" in given:
        if wanted.active:
            raise InvalidPlan(gettext_noop("Orders are chosen one by one or by a filter, not both."), field="ids")
        return _by_ids(by_ids(ids), now_ms)
    if not wanted.active:
        return Choice()
    if wanted.queue is None and len(policies) == 1:
        wanted = replace(wanted, queue=next(iter(policies)))
    if wanted.queue is not None:
        return Choice(filter=wanted, selection=by_filter(wanted), queue=wanted.queue)
    counted = [(name, dead.count(replace(wanted, queue=name), now_ms + 1)) for name in policies]
    parts = tuple(
        (name, count.n, count.exact, urlencode(replace(wanted, queue=name).query()))
        for name, count in counted
        if count.n
    )
    return Choice(filter=wanted, parts=parts)


def _by_ids(selection: Selection, now_ms: int) -> Choice:
    found = selected.queues_of(selection.ids)
    if len(found) <= 1:
        return Choice(ids=selection.ids, selection=selection, queue=found[0] if found else "")
    rows = selected.by_ids(selection.ids, now_ms + 1, (-1, -1), len(selection.ids))
    by_queue = {queue: [row.id for row in rows if row.queue == queue] for queue in found}
    return Choice(
        ids=selection.ids,
        parts=tuple((queue, len(ids), True, " ".join(ids)) for queue, ids in by_queue.items() if ids),
    )


def _policy(queue: str) -> QueuePolicy:
    return queues.policy_of(queue) or QueuePolicy(queue)


def _context(request: HttpRequest, choice: Choice, form: RedriveForm) -> dict[str, Any]:
    selection = choice.selection or Selection()
    found = previews.preview(selection, form.terms, database.now_ms())
    sent = request.POST.get("form_key", "") if request.method == "POST" else ""
    return {
        "choice": choice,
        "form": form,
        "p": found,
        "left": found.n.n - found.beyond_horizon - found.too_old - sum(found.held.values()) > 0 or not found.n.exact,
        "trial": min(form.terms.canary, found.eligible) if found.n.exact else form.terms.canary,
        "not_there": len(choice.ids) - found.n.n if choice.ids else 0,
        "chips": filters.chips(choice.filter) if choice.filter else [],
        "form_key": sent if sent and "form_key" not in form.refused else secrets.token_urlsafe(24),
    }


def _asked(request: HttpRequest, selection: Selection, form: RedriveForm) -> Receipt | None:
    """The receipt, with a flash that says what happened to how many; None when it was refused in the form."""
    data = form.cleaned_data
    try:
        receipt = asking.ask(
            request.user,  # type: ignore[arg-type]
            selection,
            form.terms,
            note=data["note"],
            comment=data["comment"],
            form_key=request.POST.get("form_key", ""),
        )
    except InvalidPlan as error:
        form.refuse(error)
        return None
    _tell(request, receipt)
    return receipt


def _tell(request: HttpRequest, receipt: Receipt) -> None:
    line = plans.detail(receipt.plan, database.now_ms())
    values = {"plan": receipt.plan, "n": number(line.line.planned), "expected": number(line.expected)}
    if not receipt.first:
        sentence = _("R-%(plan)s was asked for already, by this same form at %(time)s. Nothing was done twice.")
        messages.info(request, sentence % {**values, "time": clock_of(receipt.at_ms)})
    elif receipt.state == "freezing":
        sentence = _("R-%(plan)s is asked for. Its list of about %(expected)s orders is being made.")
        messages.success(request, sentence % values)
    elif receipt.state == "cancelled":
        messages.warning(
            request, _("R-%(plan)s is closed again: no order of the selection could be put on its list.") % values
        )
    else:
        sentence = ngettext(
            "R-%(plan)s is asked for: %(n)s order is on its list. A team lead decides.",
            "R-%(plan)s is asked for: %(n)s orders are on its list. A team lead decides.",
            line.line.planned,
        )
        messages.success(request, sentence % values)


def _problem(given: QueryDict, names: Sequence[str]) -> str:
    """Why the address of the list cannot be meant, or ''."""
    before = given.get("before", "")
    if any(len(given.getlist(name)) > 1 for name in given) or set(given) - {"state", "queue", "before"}:
        return _("The list of redrives is asked for by state, queue and before, each once.")
    if given.get("state", "") not in ("", *GROUPS_OF_STATES, *STATES):
        return _("There is no such state of a redrive.")
    if given.get("queue", "") not in ("", *names):
        return _("There is no such queue.")
    if before and not (before.isascii() and before.isdigit() and len(before) < 19):
        return _("This page of the list does not exist.")
    return ""
