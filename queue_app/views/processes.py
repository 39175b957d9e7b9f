"""Who works: workers and redrivers on all hosts, what each holds, and what limits them (DESIGN section 12)."""

import hashlib
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from queue_app.policy.figures import SILENT_MS
from queue_app.reads import processes as reads
from queue_app.reads import queues
from queue_app.services import workers
from queue_app.store import database
from queue_app.views.living import living
from queue_app.views.queues import form_of, rights_of
from queue_app.views.reading import reader_of
from queue_app.views.refusals import sentence_of
from queue_app.views.worker_forms import WorkerDrainForm

MINUTE_MS = 60_000


@require_safe
def process_list(request: HttpRequest) -> HttpResponse:
    """The whole page; `worker` of the address is chosen in the form that lets one end."""
    context = _context(request)
    form = WorkerDrainForm(lines=context["roll"].lines, wanted=request.GET.get("worker", ""))
    return render(request, "processes/list.html", context | {"drain_form": form})


@require_safe
def process_live(request: HttpRequest) -> HttpResponse:
    """Its living part, for polling: only the as-of line while nothing but the time has changed."""
    context = _context(request)
    return living(request, "processes", context)


@require_POST
def process_drain(request: HttpRequest) -> HttpResponse:
    """Let one worker finish and end; 422 with the input kept when it cannot be meant."""
    form = WorkerDrainForm(request.POST)
    if not form.is_valid():
        context = _context(request)
        form = WorkerDrainForm(request.POST, lines=context["roll"].lines)
        return render(request, "processes/list.html", context | {"drain_form": form}, status=422)
    started_at_ms, name = form.cleaned_data["worker"]
    try:
        receipt = workers.drain(request.user, name, started_at_ms=started_at_ms, note=form.cleaned_data["note"])  # type: ignore[arg-type]
    except workers.StartedAnew as error:
        messages.warning(request, sentence_of(error))
    else:
        _say(request, receipt)
    return redirect("process_list")


def _say(request: HttpRequest, receipt: workers.WorkerReceipt) -> None:
    if receipt.first:
        sentence = _("%(worker)s takes nothing new, finishes what it delivers, and ends.")
    elif receipt.stopped:
        sentence = _("Nothing had to be done: %(worker)s has ended already.")
    else:
        sentence = _("Nothing had to be done: %(worker)s was told so already.")
    (messages.success if receipt.first else messages.info)(request, sentence % {"worker": receipt.worker})


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
        "may_drain": actor.may("drain_worker"),
        **rights_of(actor),
    }
