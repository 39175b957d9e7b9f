"""One order: its whole life, what comes next by itself, and what a person can do."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_app.reads.life import life
from queue_app.services.people import actor_of, require
from queue_app.store import database
from queue_app.views.words import STEP_MARKS, step_sentence


@require_safe
def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """The page of one order."""
    require(actor_of(request.user), "read")
    as_of_ms = database.now_ms()
    found = life(job_id, as_of_ms)
    if found is None:
        raise Http404(_("No order has this id."))
    context = {
        "job": found,
        "steps": [(step, *STEP_MARKS[step.kind], step_sentence(step)) for step in found.steps],
        "as_of_ms": as_of_ms,
        "section": "quarantine",
    }
    return render(request, "orders/detail.html", context)
