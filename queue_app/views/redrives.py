"""One redrive, from its list to what came of it: the page, its living part, the decision and the steering."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from queue_app import conf
from queue_app.policy.errors import InvalidNote, NotAllowed, SnackOpsError
from queue_app.policy.plans import InvalidPlan, PlanMoved
from queue_app.policy.steps import steps
from queue_app.policy.terms import parse_rate, rate_text
from queue_app.reads import plans as reads
from queue_app.reads.plans import Detail
from queue_app.reads.previews import changes_since
from queue_app.services import approvals, batches
from queue_app.services import plans as asking
from queue_app.services.people import Actor, actor_of, require
from queue_app.services.receipts import Receipt
from queue_app.store import database
from queue_app.templatetags.plan_words import plan_state
from queue_app.views.decision_forms import DecisionForm
from queue_app.views.refusals import sentence_of

PAGE_SIZE = 50
ITEM_STATES = {"waiting": ("waiting",), "redriven": ("redriven",), "skipped": ("skipped",)}
OUTCOMES = ("waiting", "done", "dead_same", "dead_other")


@require_safe
def redrive(request: HttpRequest, plan_id: int) -> HttpResponse:
    """The page of one redrive."""
    actor = actor_of(request.user)
    require(actor, "read")
    return render(request, "redrives/detail.html", _context(actor, plan_id))


@require_safe
def redrive_live(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Its living part, for polling; in a final state it asks for no more, and in another state the page is made anew:
    other steps are possible then, and nobody's typing is lost between two states."""
    actor = actor_of(request.user)
    require(actor, "read")
    context = _context(actor, plan_id)
    if request.GET.get("state", context["shown"]) != context["shown"]:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return render(request, "redrives/_live.html", context)


@require_safe
def redrive_items(request: HttpRequest, plan_id: int) -> HttpResponse:
    """The orders of its list, by what became of them."""
    require(actor_of(request.user), "read")
    found = reads.detail(plan_id, database.now_ms())
    which = request.GET.get("which", "")
    after = request.GET.get("after", "0")
    if which not in {"", *ITEM_STATES, *OUTCOMES} or not (after.isascii() and after.isdigit() and len(after) < 16):
        raise InvalidPlan(_("This part of the list does not exist."))
    rows = reads.plan_items(
        plan_id,
        after_pos=int(after),
        states=ITEM_STATES.get(which) if which != "waiting" else ("waiting",),
        outcome=which if which in OUTCOMES and which != "waiting" else None,
        limit=PAGE_SIZE + 1,
    )
    context = {
        "d": found,
        "rows": rows[:PAGE_SIZE],
        "after": rows[PAGE_SIZE - 1].pos if len(rows) > PAGE_SIZE else None,
        "which": which,
        "as_of_ms": database.now_ms(),
        "section": "redrive",
    }
    return render(request, "redrives/items.html", context)


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def redrive_decide(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Approve or reject: what is decided on, what changed since, identity proved again; 422 with the input kept."""
    actor = actor_of(request.user)
    require(actor, "read")
    context = _context(actor, plan_id)
    found: Detail = context["d"]
    form = DecisionForm(request.POST or None, detail=found)
    if request.method == "POST":
        answer = _decided(request, plan_id, form)
        if answer is not None:
            _say(request, answer)
            return redirect("redrive", plan_id)
        context["form"] = form
    context |= {"form": form, "changes": changes_since(plan_id, context["as_of_ms"])}
    return render(request, "redrives/decide.html", context, status=422 if form.errors else 200)


@require_POST
def redrive_move(request: HttpRequest, plan_id: int) -> HttpResponse:
    """Pause, resume, slow down, stop, withdraw or cancel."""
    actor = actor_of(request.user)
    require(actor, "read")
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
            answer = batches.set_pace(request.user, plan_id, rate)  # type: ignore[arg-type]
        elif move in moves:
            answer = moves[move](request.user, plan_id)  # type: ignore[arg-type]
        else:
            raise InvalidPlan(_("There is no such step."))
    except (InvalidPlan, PlanMoved) as error:
        messages.error(request, sentence_of(error))
    else:
        _say(request, answer)
    return redirect("redrive", plan_id)


def _decided(request: HttpRequest, plan_id: int, form: DecisionForm) -> Receipt | None:
    if not form.is_valid():
        return None
    user, data = request.user, form.cleaned_data
    try:
        proof = approvals.confirm_identity(user, data["password"])  # type: ignore[arg-type]
        if request.POST.get("decision") == "reject":
            return approvals.reject(
                user,  # type: ignore[arg-type]
                plan_id,
                round=data["round"],
                digest=data["digest"],
                note=data["note"],
                comment=data["comment"],
                proof=proof,
            )
        return approvals.approve(
            user,  # type: ignore[arg-type]
            plan_id,
            round=data["round"],
            digest=data["digest"],
            note=data["note"],
            comment=data["comment"],
            proof=proof,
            typed=data["typed"] or None,
            tightening=form.tightening(),
        )
    except (InvalidPlan, InvalidNote, PlanMoved, NotAllowed) as error:
        form.refuse(error)
        return None


def _context(actor: Actor, plan_id: int) -> dict[str, Any]:
    now_ms = database.now_ms()
    found = reads.detail(plan_id, now_ms)
    own = found.line.requested_by == actor.id
    may = steps(plan_id, found.line.state, found.line.why, own=own, roles=actor.roles, solo=conf.solo_approval())
    return {
        "d": found,
        "own": own,
        "shown": f"{found.line.state}.{found.line.why}.{found.round}",
        "moves": [move for move, why in may.items() if why is None],
        "reasons": _reasons(may, found),
        "pace_now": rate_text(found.line.rate_mj),
        "final": reads.is_final(found.line.state) and not found.results.waiting,
        "solo_allowed": conf.solo_approval(),
        "as_of_ms": now_ms,
        "section": "redrive",
    }


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


def _say(request: HttpRequest, answer: Receipt) -> None:
    values = {"plan": answer.plan, "state": plan_state(answer.state), "by": answer.by}
    if answer.first:
        messages.success(request, _("R-%(plan)s: %(state)s.") % values)
    elif answer.by:
        messages.info(request, _("%(by)s was first. R-%(plan)s: %(state)s.") % values)
    else:
        messages.info(request, _("Nothing had to be done. R-%(plan)s: %(state)s.") % values)
