"""One redrive, from its list to what came of it: the page, its living part, the decision and the steering."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from queue_app import conf
from queue_app.policy.cells import Column, Row
from queue_app.policy.errors import InvalidNote, NotAllowed, SnackOpsError, gettext_noop
from queue_app.policy.plans import InvalidPlan, PlanMoved
from queue_app.policy.steps import steps
from queue_app.policy.terms import parse_rate, rate_text
from queue_app.reads import plans as reads
from queue_app.reads.plans import Detail, ItemLine
from queue_app.reads.previews import changes_since
from queue_app.services import approvals, batches, exports
from queue_app.services import plans as asking
from queue_app.services.people import Actor, actor_of, require
from queue_app.services.receipts import Receipt
from queue_app.store import database
from queue_app.templatetags.plan_words import plan_state
from queue_app.views.decision_forms import DecisionForm
from queue_app.views.downloads import answer
from queue_app.views.refusals import sentence_of

PAGE_SIZE = 50
NO_PART = gettext_noop("This part of the list does not exist.")
NO_STEP = gettext_noop("There is no such step.")
# part of the list -> states of its items and outcome, as reads.plans.plan_items takes them
PARTS: dict[str, dict[str, Any]] = {
    "": {},
    "waiting": {"states": ("waiting",)},
    "redriven": {"states": ("redriven",)},
    "skipped": {"states": ("skipped",)},
    "unended": {"outcome": "waiting"},
    "done": {"outcome": "done"},
    "dead_same": {"outcome": "dead_same"},
    "dead_other": {"outcome": "dead_other"},
}
COLUMNS = (
    Column("place", "number"),
    Column("id", "id"),
    Column("token", "number"),
    Column("reason"),
    Column("code"),
    Column("dead_since_ms", "number"),
    Column("state"),
    Column("skipped_because"),
    Column("outcome"),
    Column("trial_of_round", "number"),
    Column("at_ms", "number"),
)


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
    which, after = request.GET.get("which", ""), request.GET.get("after", "0")
    if which not in PARTS or not (after.isascii() and after.isdigit() and len(after) < 16):
        raise InvalidPlan(NO_PART)
    rows = reads.plan_items(plan_id, after_pos=int(after), limit=PAGE_SIZE + 1, **PARTS[which])
    context = {
        "d": found,
        "rows": rows[:PAGE_SIZE],
        "after": rows[PAGE_SIZE - 1].pos if len(rows) > PAGE_SIZE else None,
        "which": which,
        "as_of_ms": database.now_ms(),
        "section": "redrive",
    }
    return render(request, "redrives/items.html", context)


@require_POST
def redrive_export(request: HttpRequest, plan_id: int) -> HttpResponseBase:
    """The orders of its list, or of a part of it, as a file; recorded before the first byte."""
    which = request.POST.get("which", "")
    if which not in PARTS:
        raise InvalidPlan(NO_PART)
    actor = actor_of(request.user, channel="console", proof="session")
    require(actor, "read")
    now_ms = database.now_ms()
    found = reads.detail(plan_id, now_ms)
    line, results = found.line, found.results
    rows = {
        "": line.planned,
        "waiting": line.waiting,
        "redriven": line.redriven,
        "skipped": line.skipped,
        "unended": results.waiting,
        "done": results.done,
        "dead_same": results.dead_same,
        "dead_other": results.dead_other,
    }[which]
    made = exports.export(
        actor,
        "redrive",
        COLUMNS,
        _bites(plan_id, which),
        rows=rows,
        filter=f"plan:{plan_id} {which}".strip(),
        as_of_ms=now_ms,
        form=request.POST.get("format", "csv"),
    )
    return answer(made)


def _bites(plan_id: int, which: str) -> Iterator[Sequence[Row]]:
    def read(after: ItemLine | None, limit: int) -> list[ItemLine]:
        return reads.plan_items(plan_id, after_pos=after.pos if after else 0, limit=limit, **PARTS[which])

    for bite in exports.in_bites(read):
        yield [
            (
                row.pos,
                row.job_id,
                row.token,
                row.reason,
                row.code,
                row.dead_since_ms,
                row.state,
                row.why,
                row.outcome,
                row.trial,
                row.at_ms,
            )
            for row in bite
        ]


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
        receipt = _decided(request, plan_id, form)
        if receipt is not None:
            _say(request, receipt)
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


def _say(request: HttpRequest, receipt: Receipt) -> None:
    values = {"plan": receipt.plan, "state": plan_state(receipt.state), "by": receipt.by}
    if receipt.first:
        messages.success(request, _("R-%(plan)s: %(state)s.") % values)
    elif receipt.by:
        messages.info(request, _("%(by)s was first. R-%(plan)s: %(state)s.") % values)
    else:
        messages.info(request, _("Nothing had to be done. R-%(plan)s: %(state)s.") % values)
