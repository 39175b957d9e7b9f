"""Asking for a redrive, and taking the wish back (DESIGN section 8, "Plan")."""

import json
import re

from django.contrib.auth.models import User
from django.db import IntegrityError

from queue_app.models import Plan
from queue_app.policy.errors import NotAllowed, gettext_noop
from queue_app.policy.notes import check_comment, check_note
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, NothingToRedrive, not_now
from queue_app.policy.selections import EMPTY_DIGEST, Selection
from queue_app.policy.terms import Terms, check_terms
from queue_app.reads import dead, selected
from queue_app.services import freezing
from queue_app.services.asking import allowed, digest_of, let_run_out, locked, receipt, recorded
from queue_app.services.people import Actor, actor_of, require
from queue_app.services.receipts import Receipt
from queue_app.store import chain, database, plans, queues

IN_REQUEST = 2_000  # more orders are frozen by the redriver, not while the person waits
_FORM_KEY = re.compile(r"[A-Za-z0-9_-]{16,64}")


def ask(
    user: User,
    selection: Selection,
    terms: Terms,
    *,
    note: str,
    comment: str = "",
    form_key: str | None = None,
    channel: str = "console",
    proof: str = "session",
    now_ms: int | None = None,
) -> Receipt:
    """Ask for a redrive and freeze its list: whole when it holds up to 2,000 orders, else the redriver goes on.

    A second submit of the same form (`form_key`) changes nothing and gives the first's receipt. Raises InvalidNote and
    InvalidPlan before any write, NothingToRedrive, NotAllowed (recorded).
    """
    check_note(note)
    comment = check_comment(comment)
    check_terms(terms)
    _check_form_key(form_key)
    with recorded(user, "plan", "plan:new", channel=channel, proof=proof):
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, "plan")
        known = _known(form_key, actor)
        if known is not None:
            return known
        now = database.now_ms() if now_ms is None else now_ms
        queue, expected = _measured(selection, now)

        @database.retried
        def write() -> Plan:
            with database.write():
                require(actor_of(user, channel=channel, proof=proof), "plan")
                return _written(actor, selection, terms, queue, expected, note, comment, form_key, now)

        try:
            plan = write()
        except IntegrityError:  # the same form, submitted twice at the same moment
            known = _known(form_key, actor)
            if known is None:
                raise
            return known
    _begin_freezing(plan, now_ms)
    plan.refresh_from_db(fields=["state"])
    return receipt(plan, "ask", first=True, by=actor.name, at_ms=plan.created_at_ms, note=note)


def may_ask(user: User, *, channel: str = "console", proof: str = "session") -> None:
    """Raise NotAllowed (recorded) unless the person may ask for a redrive: asked before input is looked at."""
    allowed(user, "plan", "plan:new", channel=channel, proof=proof)


def withdraw(user: User, plan_id: int, *, note: str = "", channel: str = "console", proof: str = "session") -> Receipt:
    """Take back an own plan that nobody decided yet. Raises UnknownPlan, NotAllowed, PlanMoved."""
    return _take_back(user, plan_id, "withdraw", note, channel, proof)


def cancel(user: User, plan_id: int, *, note: str = "", channel: str = "console", proof: str = "session") -> Receipt:
    """Stop the making of a list; also another person's, for nothing is lost. Raises UnknownPlan, NotAllowed, PlanMoved."""
    return _take_back(user, plan_id, "cancel", note, channel, proof)


@database.retried
def _take_back(user: User, plan_id: int, move: str, note: str, channel: str, proof: str) -> Receipt:
    if note:
        check_note(note)
    let_run_out(plan_id)
    with recorded(user, move, f"plan:{plan_id}", channel=channel, proof=proof), database.write():
        actor = actor_of(user, channel=channel, proof=proof)
        require(actor, "withdraw")  # for both, as policy.plans.MOVES says
        plan = locked(plan_id)
        if move == "withdraw" and plan.requested_by_id != actor.id:
            raise NotAllowed(gettext_noop("A redrive is withdrawn by the person who asked for it."))
        done = {"withdraw": "withdrawn", "cancel": "cancelled"}[move]
        if plan.state == done:
            return receipt(plan, move, first=False, by=plan.requested_name, at_ms=plan.changed_at_ms)
        if plan.state != {"withdraw": "proposed", "cancel": "freezing"}[move]:
            raise not_now(move, plan.pk, plan.state)
        now = database.now_ms()
        plans.move(plan, move, now)
        chain.append([actor.event(f"plan.{move}", f"plan:{plan.pk}", now, note=note, planned=plan.planned)])
        return receipt(plan, move, first=True, by=actor.name, at_ms=now, note=note)


# --- asking ---------------------------------------------------------------------------------------------------------


def _check_form_key(form_key: object) -> None:
    if form_key is not None and not (type(form_key) is str and _FORM_KEY.fullmatch(form_key)):
        raise InvalidPlan(gettext_noop("This form is damaged: load the page again."), field="form_key")


def _known(form_key: str | None, actor: Actor) -> Receipt | None:
    plan = plans.by_form_key(form_key) if form_key else None
    if plan is None:
        return None
    if plan.requested_by_id != actor.id:
        raise InvalidPlan(gettext_noop("This form is damaged: load the page again."), field="form_key")
    return receipt(plan, "ask", first=False, by=actor.name, at_ms=plan.created_at_ms, note=plan.note)


def _measured(selection: Selection, now: int) -> tuple[str, int]:
    """The one queue of the selection and about how many orders it holds; NothingToRedrive when there are none."""
    if selection.filter is None:
        found = selected.queues_of(selection.ids)
        if len(found) > 1:
            raise InvalidPlan(
                gettext_noop("The ticked orders are of several queues, and a redrive is of one."), field="ids"
            )
        queue = found[0] if found else ""
        expected = len(selected.by_ids(selection.ids, now + 1, (-1, -1), len(selection.ids)))
    else:
        queue = selection.filter.queue or ""
        found_some = dead.count(selection.filter, now + 1)
        expected = found_some.n if found_some.exact else max(found_some.n, IN_REQUEST + 1)  # the redriver looks on
    if queue and queues.policy_of(queue) is None:
        raise InvalidPlan(gettext_noop("No queue %(queue)s is declared."), field="queue", queue=queue)
    if not expected:
        raise NothingToRedrive(gettext_noop("No order in quarantine is selected."), field="selection")
    return queue, expected


def _written(
    actor: Actor,
    selection: Selection,
    terms: Terms,
    queue: str,
    expected: int,
    note: str,
    comment: str,
    form_key: str | None,
    now: int,
) -> Plan:
    plan = plans.add(
        queue=queue,
        selection=selection.canonical(),
        as_of_ms=now + 1,  # what died in this very millisecond belongs, as in a list that is opened now
        note=note,
        comment=comment,
        requested_by_id=actor.id,
        requested_name=actor.name,
        form_key=form_key,
        created_at_ms=now,
        changed_at_ms=now,
        expires_at_ms=now + EXPIRY_MS,
        digest=EMPTY_DIGEST,
        expected=expected if terms.cap is None else min(expected, terms.cap),
        asked_rate_mj=terms.rate_mj,
        rate_mj=terms.rate_mj,
        steps=json.dumps(terms.steps),
        cap=terms.cap,
        canary=terms.canary,
        canary_wait_ms=terms.canary_wait_ms,
        stop_permille=terms.stop_permille,
        max_dead_ms=terms.max_dead_ms,
        max_attempts=terms.max_attempts,
        budget_ms=terms.budget_ms,
    )
    detail = {name: getattr(terms, name) for name in _RECORDED}
    chain.append(
        [
            actor.event(
                "plan.ask",
                f"plan:{plan.pk}",
                now,
                note=note,
                queue=queue,
                selection=plan.selection if selection.filter is not None else f"{len(selection.ids)} ids",
                steps=plan.steps,
                comment=digest_of(comment),
                **detail,
            )
        ]
    )
    return plan


_RECORDED = (
    "rate_mj",
    "cap",
    "canary",
    "stop_permille",
    "canary_wait_ms",
    "max_dead_ms",
    "max_attempts",
    "budget_ms",
)


def _begin_freezing(plan: Plan, now_ms: int | None) -> None:
    """Freeze a small list at once. A crash in between leaves it `freezing`, and the redriver goes on."""
    if plan.expected > IN_REQUEST:
        return
    size, looked_at = IN_REQUEST // 4, 0
    while looked_at <= IN_REQUEST:
        progress = freezing.step(plan.pk, size, now_ms=now_ms)
        if progress is None or progress.done:
            return
        size, looked_at = progress.size, progress.looked_at
