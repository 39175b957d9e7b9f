"""One order: its whole life, what comes next by itself, and what a person can do."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_app import clock
from queue_app.policy.answers import effect_possible
from queue_app.reads.life import Life, life
from queue_app.services.people import actor_of, require
from queue_app.views.words import step_sentence

TONES = {
    "delivered": ("ok", "check"),
    "quarantined": ("bad", "stop"),
    "permanent": ("bad", "x"),
    "retry": ("warn", "again"),
    "lease_expired": ("warn", "clock"),
    "unknown": ("warn", "alert"),
    "deadline_passed": ("warn", "clock"),
    "late_finish": ("warn", "alert"),
    "redriven": ("info", "again"),
    "investigated": ("info", "search"),
    "unblocked": ("info", "key"),
    "leased": ("info", "play"),
    "accepted": ("quiet", "box"),
}


@require_safe
def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """The page of one order."""
    require(actor_of(request.user), "read")
    found = life(job_id)
    if found is None:
        raise Http404(_("No order has this id."))
    context = {
        "job": found,
        "steps": [(step, *TONES[step.kind], step_sentence(step)) for step in found.steps],
        "now_ms": clock.now_ms(),
        "maybe_delivered": _maybe_delivered(found),
        "section": "quarantine",
    }
    return render(request, "orders/detail.html", context)


def _maybe_delivered(found: Life) -> bool:
    """Whether the receiver may have had an effect although we never learned so."""
    if found.state == "done":
        return False
    return any(
        step.kind in {"lease_expired", "unknown"} or (step.kind == "retry" and effect_possible(step.code))
        for step in found.steps
    )
