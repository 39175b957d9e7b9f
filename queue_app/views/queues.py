"""Every queue's policy in one place, and the moves of a team lead: pause, resume, close, open, limit (DESIGN sections 4
and 9)."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from queue_app import conf
from queue_app.policy.errors import InvalidOrder, gettext_noop
from queue_app.policy.queues import InvalidLimit, QueuePolicy, UnknownQueue, check_retention, check_times
from queue_app.reads import queues as reads
from queue_app.reads.queues import QueueLine
from queue_app.services import queues
from queue_app.services.people import Actor
from queue_app.services.queues import QueueReceipt
from queue_app.store import database
from queue_app.views.limit_forms import QueueLimitsForm
from queue_app.views.queue_forms import QueueMoveForm
from queue_app.views.reading import reader_of

NO_STEP = gettext_noop("There is no such step.")
MOVES: dict[str, Callable[..., QueueReceipt]] = {
    "pause": queues.pause,
    "resume": queues.resume,
    "close": queues.close,
    "reopen": queues.reopen,
}
DONE = {
    "pause": gettext_noop("%(queue)s: nothing is handed out until somebody resumes it."),
    "resume": gettext_noop("%(queue)s: orders are handed out again."),
    "close": gettext_noop("%(queue)s: no new orders are taken. What is in it goes on."),
    "reopen": gettext_noop("%(queue)s: new orders are taken again."),
}
STOOD_SO = gettext_noop("Nothing had to be done: %(queue)s stood so already.")
NO_QUEUE = gettext_noop("No queue %(queue)s is declared.")
BACK = ("queue_list", "process_list")


@require_safe
def queue_list(request: HttpRequest) -> HttpResponse:
    """All queues."""
    return _page(request)


@require_POST
def queue_move(request: HttpRequest, queue: str) -> HttpResponse:
    """Pause, resume, close or open one queue; 422 with the input kept when the ticket cannot be meant."""
    move = request.POST.get("move", "")
    if move not in MOVES:
        raise InvalidOrder(NO_STEP)
    form = QueueMoveForm(request.POST, auto_id=f"id-{queue}-%s")
    if not form.is_valid():
        return _page(request, queue, form)
    receipt = MOVES[move](request.user, queue, note=form.cleaned_data["note"])
    if receipt.first:
        messages.success(request, _(DONE[move]) % {"queue": queue})
    else:
        messages.info(request, _(STOOD_SO) % {"queue": queue})
    back = request.POST.get("back", "")
    return redirect(f"{reverse(back if back in BACK else BACK[0])}#queue-{queue}")


@require_POST
def queue_limits(request: HttpRequest, queue: str) -> HttpResponse:
    """Change some of one queue's limits; 422 with the input kept when one cannot be meant. The service decides who may."""
    line = next((line for line in reads.lines(database.now_ms()) if line.name == queue), None)
    form = QueueLimitsForm(request.POST, policy=line.policy) if line else None
    if form is None or not form.is_valid():
        queues.may_limit(request.user, queue)  # type: ignore[arg-type]
        if form is None:
            raise UnknownQueue(NO_QUEUE, queue=queue)
        return _page(request, queue, limits=form)
    try:
        receipt = queues.set_limits(request.user, queue, note=form.cleaned_data["note"], **form.changes)  # type: ignore[arg-type]
    except InvalidLimit as error:
        form.refuse(error)
        return _page(request, queue, limits=form)
    if receipt.first:
        messages.success(
            request, _("%(queue)s: the new limits hold for every worker within a second.") % {"queue": queue}
        )
    else:
        messages.info(request, _(STOOD_SO) % {"queue": queue})
    return redirect(f"{reverse('queue_list')}#queue-{queue}")


def _page(
    request: HttpRequest,
    given: str = "",
    form: QueueMoveForm | None = None,
    limits: QueueLimitsForm | None = None,
) -> HttpResponse:
    actor, as_of_ms = reader_of(request), database.now_ms()
    found = reads.lines(as_of_ms)
    total_ms = conf.delivery_times_ms()[2]
    context = {
        "queues": [
            (
                line,
                faults(line.policy, total_ms),
                form_of(line, given, form),
                limits if limits and line.name == given else QueueLimitsForm(policy=line.policy),
            )
            for line in found
        ],
        "total_ms": total_ms,
        "back": BACK[0],
        "as_of_ms": as_of_ms,
        "may_limit": actor.may("limit_queue"),
        **rights_of(actor),
    }
    return render(request, "queues/list.html", context, status=422 if form or limits else 200)


def rights_of(actor: Actor) -> dict[str, Any]:
    """What this person may do with a queue, for the templates of its moves."""
    return {"may_pause": actor.may("pause_queue"), "may_close": actor.may("close_queue")}


def form_of(line: QueueLine, given: str = "", form: QueueMoveForm | None = None) -> QueueMoveForm:
    """The form of this queue: the one that was sent, or an empty one with ids of its own."""
    return form if form and line.name == given else QueueMoveForm(auto_id=f"id-{line.name}-%s")


def faults(policy: QueuePolicy, total_ms: int) -> tuple[str, ...]:
    """What in a policy would send an order twice: `lease`, `retention`. A worker refuses to start with either."""
    found = []
    try:
        check_times(total_ms, policy.lease_ms)
    except ValueError:
        found.append("lease")
    try:
        check_retention(policy)
    except InvalidLimit:
        found.append("retention")
    return tuple(found)
