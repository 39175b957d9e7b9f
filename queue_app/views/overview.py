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
from queue_app.policy.plans import BY_PERSON, OPEN
from queue_app.policy.windows import WINDOWS
from queue_app.reads import comparisons, plan_lists, queues
from queue_app.reads.figures import figures, why
from queue_app.reads.plan_lists import Line
from queue_app.store import database
from queue_app.views.charts import flow_chart
from queue_app.views.living import living
from queue_app.views.reading import reader_of

MINUTE_MS = 60_000
NEEDS_SHOWN = 6
CAUSES_SHOWN = 8
REDRIVES_SHOWN = 8
WINDOW = "all"  # of which the bars speak unless another is asked for


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    return render(request, "overview/page.html", _context(request))


@require_safe
def overview_live(request: HttpRequest) -> HttpResponse:
    """Its living part, for polling: only the as-of line while nothing but the time has changed."""
    context = _context(request)
    return living(request, "overview", context)


def _context(request: HttpRequest) -> dict[str, Any]:
    actor = reader_of(request)
    found = figures(database.now_ms())
    wanted = needs(found)
    open_redrives = plan_lists.plans(states=OPEN, limit=REDRIVES_SHOWN)
    left_alone = queues.left_alone()
    comparison = next(iter(comparisons.latest()), None)
    deciding = plan_lists.waiting_for(actor.id, actor.roles, solo=conf.solo_approval(), limit=NEEDS_SHOWN)
    return {
        "f": found,
        "why": why(_window(request), found),
        "headline": headline(found),
        "needs": wanted[:NEEDS_SHOWN],
        "deciding": deciding,
        "open_redrives": open_redrives,
        "standing": _standing(open_redrives, deciding),
        "needs_left": len(wanted) - NEEDS_SHOWN,
        "causes": found.groups[:CAUSES_SHOWN],
        "causes_left": max(0, len(found.groups) - CAUSES_SHOWN),
        "chart": flow_chart(found.day),
        "may_investigate": actor.may("investigate"),
        "left_alone": left_alone,
        "comparison": comparison,
        "as_of_ms": found.as_of_ms,
        "seen": _digest(found, [*deciding, *open_redrives, *left_alone, comparison], _window(request)),
        "section": "overview",
    }


def _standing(lines: list[Line], deciding: list[Line]) -> list[Line]:
    """Redrives that stopped by themselves and that somebody else must decide on."""
    mine = {line.id for line in deciding}
    stopped = [line for line in lines if line.state == "halted" or (line.state == "paused" and line.why != BY_PERSON)]
    return [line for line in stopped if line.id not in mine]


def _window(request: HttpRequest) -> str:
    """A window that nobody knows is the usual one: the overview is there at any address."""
    name = request.GET.get("window", "")
    return name if name in WINDOWS else WINDOW


def _digest(found: Figures, lines: list[object], window: str) -> str:
    """What the page shows but its as-of time, to the minute: ages are part of the picture."""
    processes = tuple(replace(process, seen_at_ms=0) for process in found.processes)
    still = replace(found, as_of_ms=found.as_of_ms // MINUTE_MS, processes=processes)
    return hashlib.sha256(repr((still, lines, window)).encode()).hexdigest()[:16]
