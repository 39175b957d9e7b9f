"""The first page: is something wrong, what, and is anybody on it (DESIGN sections 7 and 12)."""

import hashlib
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from queue_app import conf
from queue_app.policy.figures import Figures
from queue_app.policy.headlines import headline, needs
from queue_app.reads import plans
from queue_app.reads.figures import figures
from queue_app.services.people import actor_of, require
from queue_app.store import database
from queue_app.views.charts import flow_chart

MINUTE_MS = 60_000
NEEDS_SHOWN = 6
CAUSES_SHOWN = 8


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    return render(request, "overview/page.html", _context(request))


@require_safe
def overview_live(request: HttpRequest) -> HttpResponse:
    """Its living part, for polling: only the as-of line while nothing but the time has changed."""
    context = _context(request)
    if request.GET.get("seen") == context["seen"]:
        response = render(request, "overview/_unchanged.html", context)
        response["HX-Reswap"] = "none"
        return response
    return render(request, "overview/_live.html", context)


def _context(request: HttpRequest) -> dict[str, Any]:
    actor = actor_of(request.user)
    require(actor, "read")
    found = figures(database.now_ms())
    wanted = needs(found)
    deciding = plans.waiting_for(actor.id, actor.roles, solo=conf.solo_approval(), limit=NEEDS_SHOWN)
    return {
        "f": found,
        "headline": headline(found),
        "needs": wanted[:NEEDS_SHOWN],
        "deciding": deciding,
        "needs_left": len(wanted) - NEEDS_SHOWN,
        "causes": found.groups[:CAUSES_SHOWN],
        "causes_left": max(0, len(found.groups) - CAUSES_SHOWN),
        "chart": flow_chart(found.day),
        "may_investigate": actor.may("investigate"),
        "as_of_ms": found.as_of_ms,
        "seen": _digest(found, deciding),
        "section": "overview",
    }


def _digest(found: Figures, deciding: list[plans.Line]) -> str:
    """What the page shows but its as-of time, to the minute: ages are part of the picture."""
    processes = tuple(replace(process, seen_at_ms=0) for process in found.processes)
    still = replace(found, as_of_ms=found.as_of_ms // MINUTE_MS, processes=processes, minutes=())
    return hashlib.sha256(repr((still, deciding)).encode()).hexdigest()[:16]
