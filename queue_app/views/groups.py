"""Causes: queue, reason and code together. All of them, and the story of one."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_app.policy.cursors import NEWEST, PageRequest
from queue_app.policy.filters import Filter
from queue_app.reads import coverage, plan_lists, quarantine
from queue_app.reads.groups import group as one_group
from queue_app.reads.groups import groups
from queue_app.reads.looks import looks, present
from queue_app.store import database, queues
from queue_app.views.charts import sparkline
from queue_app.views.investigation_forms import InvestigationForm
from queue_app.views.investigations import Scope, form_context, now_after
from queue_app.views.reading import reader_of

ROWS_SHOWN = 8


@require_safe
def group_list(request: HttpRequest) -> HttpResponse:
    """All causes with orders in quarantine, the largest first."""
    reader_of(request)
    as_of_ms = database.now_ms()
    found = groups(as_of_ms)
    there = present(as_of_ms)
    context = {
        "causes": [
            (cause, sparkline(cause.trend), there.get((cause.queue, cause.reason, cause.code), ())) for cause in found
        ],
        "total": sum(cause.n for cause in found),
        "unseen": sum(1 for cause in found if cause.since_look),
        "as_of_ms": as_of_ms,
    }
    return render(request, "groups/list.html", context)


@require_safe
def group(request: HttpRequest, queue: str, reason: str, code: str) -> HttpResponse:
    """One cause: its story, its orders, who looked, and the form to record what was found."""
    actor = reader_of(request)
    wanted = (queue, reason, "" if code == "-" else code)
    if queue not in queues.policies() or not coverage.was_ever(wanted):
        raise Http404(_("No order ever stopped for this cause."))
    as_of_ms = database.now_ms()
    scope = Scope("group", filter=Filter(queue=wanted[0], reason=wanted[1], code=wanted[2]))
    cause = one_group(*wanted, as_of_ms)
    context = form_context(actor.may("investigate"), scope, InvestigationForm(initial={"as_of": now_after()}))
    context |= {
        "cause": cause,
        "wanted": wanted,
        "spark": sparkline(cause.trend, 240, 40) if cause else "",
        "page": quarantine.page(scope.filter, PageRequest(sort=NEWEST, size=ROWS_SHOWN), as_of_ms),
        "looks": looks(group=wanted, size=20),
        "others": present(as_of_ms, except_user=actor.id).get(wanted, ()),
        "may_plan": actor.may("plan"),
        "redrives": plan_lists.of_group(*wanted),
        "as_of_ms": as_of_ms,
        "section": "group",
    }
    return render(request, "groups/detail.html", context)
