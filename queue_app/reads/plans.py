"""A redrive in full, as pages and commands show it. Lists are in `plan_lists`, single orders in `plan_items`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from queue_app.models import Plan
from queue_app.policy import buckets
from queue_app.policy.approvals import Grant, Tightening, Warned, granted, least_trial, must_type_count
from queue_app.policy.canaries import Group
from queue_app.policy.errors import gettext_noop
from queue_app.policy.figures import Results
from queue_app.policy.plans import UnknownPlan
from queue_app.policy.terms import Terms
from queue_app.reads import outcomes, warnings
from queue_app.reads.groups import results_by_batch
from queue_app.reads.plan_causes import CauseLine, causes_of
from queue_app.reads.plan_items import ItemLine, plan_items
from queue_app.reads.plan_lists import Line, is_final, line_of, of_group, plans, waiting_for
from queue_app.reads.plan_story import Decision, decisions_of

__all__ = [
    "CauseLine",
    "Decision",
    "Detail",
    "ItemLine",
    "Line",
    "Trial",
    "detail",
    "is_final",
    "of_group",
    "plan_items",
    "plans",
    "terms_of",
    "waiting_for",
]

RATE_SPAN_MS = 10_000
RATE_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Trial:
    """The trial of the round at hand. `state`: none, sending, waiting (for results), passed, failed, silent."""

    state: str
    size: int
    sent: int = 0
    done: int = 0
    died: int = 0
    sent_at_ms: int | None = None
    ends_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """A redrive in full. `digest` and `deciding_round` go back with a decision; `terms` are as asked.

    `at_stake`: orders without a turn of the causes that no round left out, which is what a decision is about; `left_ms`
    and `ends_at_ms`: how long they take at the pace of now, and until when if it ran from now on;
    `rate_seen_mj`: measured over the last ten seconds; `turn_after`: the batch of the queue that this one waits for.
    """

    line: Line
    comment: str
    selection: str
    as_of_ms: int
    terms: Terms
    approved_rate_mj: int
    canary: int
    left_out: tuple[Group, ...]
    at_stake: int
    looked_at: int
    expected: int
    beyond_horizon: int
    too_old: int
    held_by: dict[int, int]
    digest: str
    round: int
    skips: dict[str, int]
    causes: tuple[CauseLine, ...]
    trial: Trial
    decisions: tuple[Decision, ...]
    warnings: tuple[Warned, ...]
    must_type: bool
    started_at_ms: int | None
    ended_at_ms: int | None
    sealed_at_ms: int | None
    outcome_digest: str
    rate_seen_mj: int
    left_ms: int
    ends_at_ms: int
    turn_after: int | None
    redriver_alive: bool

    @property
    def deciding_round(self) -> int:
        """The round that a decision made now is about."""
        return self.round + 1

    @property
    def next_canary(self) -> int:
        """The size of the trial in the round that would be decided on, unless the approver makes it larger."""
        return least_trial(self.canary, self.round)

    @property
    def next_left_ms(self) -> int:
        """How long what is at stake takes in the round that would be decided on: its slow start begins anew."""
        return buckets.duration_ms(self.at_stake, max(self.line.rate_mj, 1), self.terms.steps)

    @property
    def choices(self) -> tuple[CauseLine, ...]:
        """The causes that an approver may leave out now."""
        return tuple(cause for cause in self.causes if cause.at_stake)

    def granted(self, wish: Tightening) -> Grant:
        """What an approval with this wish would grant just now."""
        return granted(
            wish,
            plan=self.line.id,
            rate_mj=self.line.rate_mj,
            canary=self.next_canary,
            at_stake={(cause.reason, cause.code): cause.at_stake for cause in self.choices},
            left_out=self.left_out,
        )

    @property
    def results(self) -> Results:
        """What came of the redriven orders."""
        return self.line.results


def detail(plan_id: int, now_ms: int) -> Detail:
    """Everything about one redrive. Raises UnknownPlan. The number of queries does not depend on how many orders it has."""
    plan = Plan.objects.filter(pk=plan_id).first()
    if plan is None:
        raise UnknownPlan(gettext_noop("There is no such redrive."))
    line = line_of(plan, results_by_batch([plan.pk]).get(plan.pk, Results()))
    gone = _pairs(plan.left_out)
    warned = warnings.of_plan(plan, now_ms)
    causes = causes_of(plan, gone)
    at_stake = sum(cause.at_stake for cause in causes)
    steps = _pairs_of_int(plan.steps)
    left_ms = buckets.duration_ms(at_stake, max(plan.rate_mj, 1), _rest_of(steps, plan.ran_ms))
    return Detail(
        line=line,
        comment=plan.comment,
        selection=plan.selection,
        as_of_ms=plan.as_of_ms,
        terms=terms_of(plan),
        approved_rate_mj=plan.approved_rate_mj,
        canary=plan.canary,
        left_out=gone,
        at_stake=at_stake,
        looked_at=plan.looked_at,
        expected=plan.expected,
        beyond_horizon=plan.beyond_horizon,
        too_old=plan.too_old,
        held_by={int(held): n for held, n in json.loads(plan.held_by).items()},
        digest=plan.digest,
        round=plan.round,
        skips=json.loads(plan.skips),
        causes=causes,
        trial=_trial(plan),
        decisions=decisions_of(plan.pk),
        warnings=warned,
        must_type=must_type_count(at_stake, warned),
        started_at_ms=plan.started_at_ms,
        ended_at_ms=plan.ended_at_ms,
        sealed_at_ms=plan.sealed_at_ms,
        outcome_digest=plan.outcome_digest if plan.sealed_at_ms else "",
        rate_seen_mj=_rate_seen(plan, now_ms) if plan.state == "running" else 0,
        left_ms=left_ms,
        ends_at_ms=now_ms + left_ms,
        turn_after=_turn_after(plan),
        redriver_alive=warnings.redriver_alive(now_ms),
    )


def terms_of(plan: Plan) -> Terms:
    """The terms as they were asked for (the trial as it is now)."""
    return Terms(
        rate_mj=plan.asked_rate_mj,
        steps=_pairs_of_int(plan.steps),
        cap=plan.cap,
        canary=plan.canary,
        stop_permille=plan.stop_permille,
        canary_wait_ms=plan.canary_wait_ms,
        max_dead_ms=plan.max_dead_ms,
        max_attempts=plan.max_attempts,
        budget_ms=plan.budget_ms,
    )


# --- parts ----------------------------------------------------------------------------------------------------------


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((reason, code) for reason, code in json.loads(text))


def _pairs_of_int(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((rate, seconds) for rate, seconds in json.loads(text))


def _rest_of(steps: Sequence[tuple[int, int]], ran_ms: int) -> list[tuple[int, int]]:
    """What of the steps is still to come, to whole seconds."""
    rest: list[tuple[int, int]] = []
    for rate, seconds in steps:
        passed = min(ran_ms // 1_000, seconds)
        ran_ms -= passed * 1_000
        if passed < seconds:
            rest.append((rate, seconds - passed))
    return rest


def _trial(plan: Plan) -> Trial:
    if not plan.canary or not plan.round or plan.started_at_ms is None:
        return Trial("none", plan.canary)
    sent, left, done, died = outcomes.trial_numbers(plan.pk, plan.round)
    sent_at = plan.canary_sent_at_ms
    if plan.canary_passed:
        state = "passed"
    elif plan.why in ("canary_deaths", "canary_silent"):
        state = {"canary_deaths": "failed", "canary_silent": "silent"}[plan.why]
    else:
        state = "sending" if sent_at is None or left else "waiting"
    ends = None if sent_at is None else sent_at + plan.canary_wait_ms
    return Trial(state, plan.canary, sent, done, died, sent_at, ends)


def _rate_seen(plan: Plan, now_ms: int) -> int:
    """Thousandths of a job per second over the last ten seconds, or since it began; from a bounded number of rows."""
    since_ms = max(now_ms - RATE_SPAN_MS, plan.started_at_ms or 0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), min(at_ms) FROM (SELECT at_ms FROM redrives WHERE batch = %s ORDER BY id DESC LIMIT %s) AS r "
            "WHERE at_ms > %s",
            [plan.pk, RATE_ROWS, since_ms],
        )
        n, oldest_ms = cursor.fetchone()
    span_ms = now_ms - (oldest_ms if n == RATE_ROWS else since_ms)
    return n * 1_000_000 // max(span_ms, 1_000)


def _turn_after(plan: Plan) -> int | None:
    if plan.state != "approved":
        return None
    rows = Plan.objects.filter(queue=plan.queue, state="running").exclude(pk=plan.pk)
    return rows.values_list("id", flat=True).first()
