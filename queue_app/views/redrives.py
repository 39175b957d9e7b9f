"""One redrive, from its list to what came of it: the page, its living part, the decision and the steering."""

import hashlib
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from queue_app import conf
from queue_app.policy.errors import InvalidNote, NotAllowed, SnackOpsError, gettext_noop
from queue_app.policy.filters import Filter
from queue_app.policy.plans import InvalidPlan, PlanMoved
from queue_app.policy.selections import from_text
from queue_app.policy.steps import steps
from queue_app.policy.terms import parse_rate, rate_text
from queue_app.reads import plan_story
from queue_app.reads import plans as reads
from queue_app.reads.latecomers import died_since
from queue_app.reads.plans import Detail
from queue_app.reads.previews import changes_since
from queue_app.services import approvals, batches
from queue_app.services import plans as asking
from queue_app.services.people import Actor
from queue_app.services.receipts import Receipt
from queue_app.store import database
from queue_app.templatetags.plan_words import plan_state, sentences_of
from queue_app.views.decision_forms import DecisionForm
from queue_app.views.filters import chips
from queue_app.views.living import living
from queue_app.views.reading import reader_of
from queue_app.views.refusals import sentence_of

NO_STEP = gettext_noop("There is no such step.")
SECOND_MS = 1_000
# the step of a person or of the redriver that a state follows from
STOOD_BY = {
    "paused": ("batch.pause",),
    "halted": ("batch.halt", "plan.lapse"),
    "stopped": ("batch.stop",),
    "rejected": ("plan.reject",),
    "withdrawn": ("plan.withdraw",),
    "cancelled": ("plan.cancel", "plan.empty"),
    "expired": ("plan.expire",),
}


@require_safe
def redrive(request: HttpRequest, plan_id: int) -> HttpResponse:
    """The page of one redrive."""
    actor = reader_of(request)
    return _page(request, _context(actor, plan_id))


@require_safe
def redrive_live(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Its living part, for polling: only the as-of line while nothing but the time has changed. In a final state it asks
    for no more. In another state than the page was made for (`state`), other steps are possible, so the whole page comes
    in its place; the script keeps what somebody has typed, and leaves the rest alone while somebody types."""
    actor = reader_of(request)
    context = _context(actor, plan_id)
    if request.GET.get("state", context["shown"]) == context["shown"]:
        return living(request, "redrives", context)
    # it asks once more, also in a final state: whoever types now takes the living part alone, and the page afterwards
    answer = _page(request, context | {"final": False, "seen": "", "messages": ()})
    answer["HX-Retarget"] = "#main"
    return answer


def _page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    found = context["d"]
    story, more = plan_story.story(found.line.id, found.decisions)
    return render(request, "redrives/detail.html", context | {"story": story, "story_goes_back": more})


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def redrive_decide(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Approve or reject: what is decided on, what changed since, identity proved again; 422 with the input kept. POST with
    `recalculate` decides nothing and only shows what would be recorded, so that no comment ever stands in an address."""
    actor = reader_of(request)
    context = _context(actor, plan_id)
    deciding = "recalculate" not in request.POST
    sent = request.POST if request.method == "POST" else None  # an empty one, too, is an answer with faults
    form = DecisionForm(sent, detail=context["d"], deciding=deciding)
    if request.method == "POST" and deciding:
        receipt = _decided(request, plan_id, form)
        if receipt is not None:
            _say(request, receipt)
            return redirect("redrive", plan_id)
    context |= {"form": form, "grant": form.grant()}
    status = 422 if form.errors else 200
    if request.headers.get("HX-Target") == "sentence":
        return render(request, "redrives/_sentence.html", context, status=status)
    context |= {
        "changes": changes_since(plan_id, context["as_of_ms"], context["died"]),
        "rejecting": _rejecting(context["d"]),
    }
    return render(request, "redrives/decide.html", context, status=status)


@require_POST
def redrive_move(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Pause, resume, slow down, stop, withdraw or cancel."""
    move = request.POST.get("move", "")
    moves = {
        "pause": batches.pause,
        "resume": batches.resume,
        "stop": batches.stop,
        "withdraw": asking.withdraw,
        "cancel": asking.cancel,
    }
    try:
        if move == "slow":
            rate = parse_rate(request.POST.get("rate", "").strip())
            receipt = batches.set_pace(request.user, plan_id, rate)  # type: ignore[arg-type]
        elif move in moves:
            receipt = moves[move](request.user, plan_id)  # type: ignore[arg-type]
        else:
            raise InvalidPlan(NO_STEP)
    except (InvalidPlan, PlanMoved) as error:
        messages.error(request, sentence_of(error))
    else:
        _say(request, receipt)
    return redirect("redrive", plan_id)


def _decided(request: HttpRequest, plan_id: int, form: DecisionForm) -> Receipt | None:
    if not form.is_valid():
        return None
    user, data = request.user, form.cleaned_data
    given = {name: data[name] for name in ("round", "digest", "note", "comment")}
    try:
        proof = approvals.confirm_identity(user, data["password"])  # type: ignore[arg-type]
        if request.POST.get("decision") == "reject":
            return approvals.reject(user, plan_id, proof=proof, **given)  # type: ignore[arg-type]
        return approvals.approve(
            user,  # type: ignore[arg-type]
            plan_id,
            proof=proof,
            typed=data["typed"] or None,
            tightening=form.tightening(),
            **given,
        )
    except (InvalidPlan, InvalidNote, PlanMoved, NotAllowed) as error:
        form.refuse(error)
        return None


def _rejecting(found: Detail) -> approvals.Grant:
    return approvals.Grant(found.line.id, "reject", found.line.planned, found.terms.rate_mj, found.canary)


def _context(actor: Actor, plan_id: int) -> dict[str, Any]:
    now_ms = database.now_ms()
    found = reads.detail(plan_id, now_ms)
    state, why = found.line.state, found.line.why
    solo = conf.solo_approval()
    may = steps(plan_id, state, why, own=found.line.requested_by == actor.id, roles=actor.roles, solo=solo)
    context = {
        "d": found,
        "shown": f"{state}.{why}.{found.round}",
        "moves": [move for move, refusal in may.items() if refusal is None],
        "reasons": _reasons(may, found),
        "pace_now": rate_text(found.line.rate_mj),
        "final": reads.is_final(state) and not found.results.waiting,
        "stood_by": plan_story.last_step(plan_id, STOOD_BY[state]) if state in STOOD_BY else None,
        "died": died_since(plan_id, found.line.queue, found.as_of_ms, found.ended_at_ms, now_ms),
        "chips": _chips(found),
        "solo_allowed": solo,
        "section": "redrive",
    }
    return context | {"seen": _seen(context, now_ms), "as_of_ms": now_ms}


def _seen(context: dict[str, Any], now_ms: int) -> str:
    """A digest of what the living part shows; the second counts while it runs, for then the time left is part of it."""
    running = context["d"].line.state == "running"
    still = {name: value for name, value in context.items() if name != "d"}
    moving = {"ends_at_ms": 0} if not running else {}
    picture = [still, {**_fields(context["d"]), **moving}, now_ms // SECOND_MS if running else 0]
    return hashlib.sha256(repr(picture).encode()).hexdigest()[:16]


def _fields(found: Detail) -> dict[str, Any]:
    return {
        name: getattr(found, name) for name in Detail.__slots__ if name != "warnings"
    }  # ages that grow are not shown


def _chips(found: Detail) -> list[Any]:
    """What the list was made from, in words; for ticked orders how many there were."""
    try:
        chosen = from_text(found.selection)
    except InvalidPlan:  # of a later version
        return []
    return chips(chosen.filter) if isinstance(chosen.filter, Filter) else []


def _reasons(may: dict[str, SnackOpsError | None], found: Detail) -> list[str]:
    """Why this person cannot take the steps that one would look for here: each sentence once."""
    looked_for = {
        "proposed": ("approve", "withdraw"),
        "freezing": ("cancel",),
        "approved": ("pause", "stop"),
        "running": ("pause", "slow", "stop"),
        "paused": ("resume", "continue", "stop"),
        "halted": ("continue", "stop"),
    }.get(found.line.state, ())
    refused = [sentence_of(why) for move in looked_for if (why := may[move]) is not None]
    return list(dict.fromkeys(refused))


def _say(request: HttpRequest, receipt: Receipt) -> None:
    values = {"plan": receipt.plan, "state": plan_state(receipt.state), "by": receipt.by}
    if receipt.first:
        said = [_("R-%(plan)s: %(state)s.") % values]
    elif receipt.by:
        said = [_("%(by)s was first. R-%(plan)s: %(state)s.") % values]
    else:
        said = [_("Nothing had to be done. R-%(plan)s: %(state)s.") % values]
    if receipt.grant:
        said += sentences_of(receipt.grant, receipt.by)
    tell = messages.success if receipt.first else messages.info
    tell(request, " ".join(said))
