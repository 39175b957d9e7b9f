"""Who works: workers and redrivers on all hosts, what each holds, and what limits them (DESIGN section 12)."""

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from queue_app.policy.figures import SILENT_MS
from queue_app.reads import processes as reads
from queue_app.reads import queues
from queue_app.store import database
from queue_app.views.living import living
from queue_app.views.queues import form_of, rights_of
from queue_app.views.reading import reader_of

MINUTE_MS = 60_000


@require_safe
def process_list(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    return render(request, "processes/list.html", _context(request))


@require_safe
def process_live(request: HttpRequest) -> HttpResponse:
    """Its living part, for polling: only the as-of line while nothing but the time has changed."""
    context = _context(request)
    return living(request, "processes", context)


def _context(request: HttpRequest) -> dict[str, Any]:
    actor = reader_of(request)
    as_of_ms = database.now_ms()
    lines, roll = queues.lines(as_of_ms), reads.roll(as_of_ms)
    picture = (lines, roll, as_of_ms // MINUTE_MS)  # ages of lost ones are told to the minute
    return {
        "lines": lines,
        "roll": roll,
        "hosts": len({line.host for line in roll.lines if line.state == "alive" and line.host}),
        "idle": [line for line in lines if line.states.pending and not line.crew.workers and not line.policy.paused],
        "forms": [(line, form_of(line)) for line in lines],
        "silent_ms": SILENT_MS,
        "back": "process_list",
        "as_of_ms": as_of_ms,
        "seen": hashlib.sha256(repr(picture).encode()).hexdigest()[:16],
        **rights_of(actor),
    }
