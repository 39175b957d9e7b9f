"""The turn of frozen items: each is redriven as it was frozen, or skipped with its reason, never forced.

An item that fails in itself must not hold up the others: the whole bite goes in one savepoint, and when that fails, each
item in its own.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import InterfaceError, OperationalError, transaction

from queue_app.models import Plan
from queue_app.policy.plans import TRIES
from queue_app.policy.queues import QueuePolicy
from queue_app.services.redrives import Names, restart_batch
from queue_app.store import items, plans, queues, restarts
from queue_app.store.chain import RedriveRow
from queue_app.store.items import Group, Item
from queue_app.store.restarts import Candidate

AGAIN_MS = 1_000  # wait before the second try of an item; doubled for the third


@dataclass(slots=True)
class Outcome:
    """What became of some items. `passed_pos`: the furthest of those that never had a turn before. One that is tried again
    may lie far beyond the others' place (a trial draws from everywhere), and tells nothing of what lies between."""

    looked_at: int = 0
    passed_pos: int = 0
    failed: int = 0
    rows: list[RedriveRow] = field(default_factory=list)
    redriven: Counter[Group] = field(default_factory=Counter)
    skipped: Counter[Group] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)

    @property
    def n_redriven(self) -> int:
        """Orders back in the queue."""
        return self.redriven.total()

    @property
    def n_skipped(self) -> int:
        """Orders left as they are."""
        return self.skipped.total()


@dataclass(frozen=True, slots=True)
class _Terms:
    """What holds for every item of this tick."""

    plan: Plan
    names: Names
    horizon_ms: int
    alive_ms: int
    deadline: int
    gone: frozenset[Group]
    now: int


def left_out(plan: Plan) -> frozenset[Group]:
    """The causes that an approver left out."""
    return frozenset((reason, code) for reason, code in json.loads(plan.left_out))


def carry_out(plan: Plan, waiting: Sequence[Item], limit: int, now: int) -> Outcome:
    """Take the items in order until `limit` are redriven. Writes jobs, items and causes; the plan's row is the caller's."""
    outcome = Outcome()
    if not waiting:
        return outcome
    terms = _terms(plan, now)
    jobs, busy = restarts.candidates([item.job_id for item in waiting])
    chosen: list[tuple[Item, Candidate]] = []
    skipped: dict[str, list[Item]] = {}
    for item in waiting:
        if len(chosen) == limit:
            break
        outcome.looked_at += 1
        if not item.tries:
            outcome.passed_pos = max(outcome.passed_pos, item.pos)
        job = jobs.get(item.job_id)
        if item.job_id in busy:
            _fail(terms, item, outcome, "locked")
            continue
        why = _why_not(terms, item, job)
        if why:
            skipped.setdefault(why, []).append(item)
        elif job is not None:
            chosen.append((item, job))
    for why, them in sorted(skipped.items()):
        _skip(terms, them, why, outcome)
    _redrive(terms, chosen, outcome)
    items.count_turns(plan.pk, outcome.redriven, outcome.skipped)
    return outcome


def _terms(plan: Plan, now: int) -> _Terms:
    policy = queues.policy_of(plan.queue) or QueuePolicy(plan.queue)
    decision = plans.decision_of(plan.pk, plan.round)
    if decision is None or decision.decision != "approve":
        raise RuntimeError(f"R-{plan.pk} runs without an approval of round {plan.round}.")
    return _Terms(
        plan,
        Names(plan.requested_by_id, decision.by_id, decision.solo),
        now - policy.redrive_horizon_ms,
        0 if plan.max_dead_ms is None else now - plan.max_dead_ms,
        now + (policy.budget_ms if plan.budget_ms is None else plan.budget_ms),
        left_out(plan),
        now,
    )


def _why_not(terms: _Terms, item: Item, job: Candidate | None) -> str:
    """Why this item is skipped, or ''."""
    if job is None:
        return "gone"
    if item.group in terms.gone:
        return "left_out"
    if job.state != "dead":
        return "not_dead"
    if job.token != item.token:
        return "newer_token"
    if item.held_by != terms.plan.pk:
        return "held"
    if job.changed_at_ms < terms.horizon_ms:
        return "beyond_horizon"
    return "too_old" if job.changed_at_ms < terms.alive_ms else ""


def _redrive(terms: _Terms, chosen: Sequence[tuple[Item, Candidate]], outcome: Outcome) -> None:
    if not chosen:
        return
    try:
        with transaction.atomic():
            rows: list[RedriveRow] | None = _restarted(terms, chosen)
    except (OperationalError, InterfaceError):
        raise  # the database's trouble, not an item's
    except Exception:
        rows = None
    if rows is not None:
        outcome.rows += rows
        outcome.redriven.update(item.group for item, _ in chosen)
    elif len(chosen) == 1:
        _fail(terms, chosen[0][0], outcome, "error")
    else:
        for pair in chosen:
            _redrive(terms, [pair], outcome)


def _restarted(terms: _Terms, chosen: Sequence[tuple[Item, Candidate]]) -> list[RedriveRow]:
    """The rows to chain. Raises when one item did not go, so that the savepoint takes all of them back."""
    plan = terms.plan
    rows = restart_batch(
        [job for _, job in chosen],
        plan.note,
        terms.names,
        batch=plan.pk,
        max_attempts=plan.max_attempts,
        deadline=terms.deadline,
        now=terms.now,
    )
    positions = [item.pos for item, _ in chosen]
    if rows is None or items.set_redriven(plan.pk, positions, terms.now) != len(positions):
        raise ValueError("An item did not go.")
    return rows


def _skip(terms: _Terms, them: Sequence[Item], why: str, outcome: Outcome) -> None:
    moved = items.set_skipped(terms.plan.pk, [item.pos for item in them], why, terms.now)
    if moved != len(them):
        raise RuntimeError("An item moved inside the transaction that holds its plan.")
    outcome.skipped.update(item.group for item in them)
    outcome.skips[why] += len(them)


def _fail(terms: _Terms, item: Item, outcome: Outcome, why: str) -> None:
    """One more try failed in the item itself: it waits, or is skipped after TRIES."""
    if item.tries + 1 >= TRIES:
        _skip(terms, [item], why, outcome)
        return
    outcome.failed += 1
    items.set_failed(terms.plan.pk, item.pos, terms.now + AGAIN_MS * 2**item.tries)
