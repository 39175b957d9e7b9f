"""Redrives as pages and commands show them: one in full, lists, what waits for a person, and single orders of a list."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.models import Approval, Plan, PlanGroup
from queue_app.policy import buckets
from queue_app.policy.answers import effect_possible
from queue_app.policy.approvals import Warned, must_type_count
from queue_app.policy.errors import gettext_noop
from queue_app.policy.figures import Results
from queue_app.policy.plans import CLOSED, OPEN, UnknownPlan
from queue_app.policy.terms import Terms
from queue_app.reads import outcomes, warnings
from queue_app.reads.groups import results_by_batch, results_by_group

RATE_SPAN_MS = 10_000
RATE_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class CauseLine:
    """One cause of a list. `again`: redriven before; `results`: of this batch; `before`: of all batches of this cause.

    `left_out`: an approver left it out. `effect_possible`: these orders may already have been delivered.
    """

    reason: str
    code: str
    planned: int
    redriven: int
    skipped: int
    again: int
    oldest_ms: int
    newest_ms: int
    left_out: bool
    effect_possible: bool
    results: Results
    before: Results

    @property
    def waiting(self) -> int:
        """Orders without a turn so far."""
        return self.planned - self.redriven - self.skipped


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
class Decision:
    """Approve or reject, by whom (name of that moment), and on what terms."""

    round: int
    decision: str
    by_id: int
    by_name: str
    at_ms: int
    note: str
    comment: str
    digest: str
    rate_mj: int
    canary: int
    left_out: tuple[tuple[str, str], ...]
    proof: str
    solo: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A redrive in a list. `waiting` orders have had no turn; `results` tell of the redriven ones."""

    id: int
    queue: str
    state: str
    why: str
    note: str
    requested_by: int | None
    requested_name: str
    created_at_ms: int
    changed_at_ms: int
    expires_at_ms: int
    planned: int
    redriven: int
    skipped: int
    rate_mj: int
    solo: bool
    results: Results

    @property
    def waiting(self) -> int:
        """Orders without a turn so far."""
        return self.planned - self.redriven - self.skipped

    @property
    def open(self) -> bool:
        """Whether anything can still become of it."""
        return self.state in OPEN


@dataclass(frozen=True, slots=True)
class Detail:
    """A redrive in full. `digest` and `deciding_round` go back with a decision; `terms` are as asked.

    `left_ms` and `ends_at_ms`: how long what waits takes at the pace of now, and until when if it ran from now on;
    `rate_seen_mj`: measured over the last ten seconds; `turn_after`: the batch of the queue that this one waits for.
    """

    line: Line
    comment: str
    selection: str
    as_of_ms: int
    terms: Terms
    approved_rate_mj: int
    canary: int
    left_out: tuple[tuple[str, str], ...]
    looked_at: int
    expected: int
    beyond_horizon: int
    too_old: int
    held_elsewhere: int
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
    def results(self) -> Results:
        """What came of the redriven orders."""
        return self.line.results


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One order of a list. `outcome`: '', waiting, done, dead_same or dead_other; `trial`: the round it was tried in."""

    pos: int
    job_id: str
    token: int
    reason: str
    code: str
    dead_since_ms: int
    state: str
    why: str
    tries: int
    trial: int
    at_ms: int | None
    outcome: str


def detail(plan_id: int, now_ms: int) -> Detail:
    """Everything about one redrive. Raises UnknownPlan. The number of queries does not depend on how many orders it has."""
    plan = Plan.objects.filter(pk=plan_id).first()
    if plan is None:
        raise UnknownPlan(gettext_noop("There is no such redrive."))
    line = _line(plan, results_by_batch([plan.pk]).get(plan.pk, Results()))
    gone = _pairs(plan.left_out)
    warned = warnings.of_plan(plan, now_ms)
    steps = _pairs_of_int(plan.steps)
    left_ms = buckets.duration_ms(line.waiting, max(plan.rate_mj, 1), _rest_of(steps, plan.ran_ms))
    return Detail(
        line=line,
        comment=plan.comment,
        selection=plan.selection,
        as_of_ms=plan.as_of_ms,
        terms=terms_of(plan),
        approved_rate_mj=plan.approved_rate_mj,
        canary=plan.canary,
        left_out=gone,
        looked_at=plan.looked_at,
        expected=plan.expected,
        beyond_horizon=plan.beyond_horizon,
        too_old=plan.too_old,
        held_elsewhere=plan.held_elsewhere,
        held_by={int(held): n for held, n in json.loads(plan.held_by).items()},
        digest=plan.digest,
        round=plan.round,
        skips=json.loads(plan.skips),
        causes=_causes(plan, gone),
        trial=_trial(plan),
        decisions=tuple(_decision(row) for row in Approval.objects.filter(plan_id=plan.pk).order_by("round")),
        warnings=warned,
        must_type=must_type_count(line.waiting, warned),
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


def plans(
    *,
    before: int | None = None,
    states: Collection[str] | None = None,
    queue: str | None = None,
    limit: int = 50,
) -> list[Line]:
    """Redrives, the newest first; `before` is the number of the last one seen. Two queries."""
    rows = Plan.objects.order_by("-id")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    if states is not None:
        rows = rows.filter(state__in=list(states))
    if queue is not None:
        rows = rows.filter(queue=queue)
    return _lines(list(rows[:limit]))


def waiting_for(user_id: int, roles: Collection[str], *, solo: bool = False, limit: int = 50) -> list[Line]:
    """Redrives that wait for this person: a lead decides on what others proposed and on what stopped by itself."""
    if "team_lead" not in roles:
        return []
    rows = Plan.objects.filter(state__in=("proposed", "halted", "paused")).exclude(state="paused", why="person")
    if not solo:
        rows = rows.exclude(requested_by_id=user_id)
    return _lines(list(rows.order_by("id")[:limit]))


def of_group(queue: str, reason: str, code: str, limit: int = 5) -> list[Line]:
    """The last redrives that had orders of this cause, the newest first."""
    ids = PlanGroup.objects.filter(plan__queue=queue, reason=reason, code=code).order_by("-plan_id")
    return _lines(list(Plan.objects.filter(pk__in=list(ids.values_list("plan_id", flat=True)[:limit])).order_by("-id")))


def plan_items(
    plan_id: int,
    *,
    after_pos: int = 0,
    states: Collection[str] | None = None,
    outcome: str | None = None,
    limit: int = 50,
) -> list[ItemLine]:
    """Orders of a list by position, after one; `states` of the items, or an `outcome` of redriven ones (a field of
    `Results`, else AttributeError)."""
    conditions, values = ["i.plan_id = %s", "i.pos > %s"], [plan_id, after_pos]
    more: list[Any] = []
    if states:
        # word for word, because the partial index of the skipped ones serves a state only if it is seen in the text
        known = [state for state in ("waiting", "redriven", "skipped") if state in states]
        conditions.append(f"({' OR '.join(f'i.state = {state!r}' for state in known) or '1 = 0'})")
    if outcome is not None:
        if not getattr(results_by_batch([plan_id]).get(plan_id, Results()), outcome):
            return []  # known from the counters, or a million orders would be searched in vain
        conditions.append("i.state = 'redriven' AND coalesce(o.outcome, 'waiting') = %s")
        more.append(outcome)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.pos, i.job_id, i.token, i.reason, i.code, i.dead_since_ms, i.state, i.why, i.tries, i.canary, "
            "i.at_ms, CASE WHEN i.state = 'redriven' THEN coalesce(o.outcome, 'waiting') ELSE '' END "
            "FROM plan_items AS i LEFT JOIN redrive_outcomes AS o ON o.job_id = i.job_id AND o.token = i.token "
            f"AND o.batch = i.plan_id WHERE {' AND '.join(conditions)} ORDER BY i.pos LIMIT %s",
            [*values, *more, limit],
        )
        return [ItemLine(*row) for row in cursor.fetchall()]


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


def _lines(rows: Sequence[Plan]) -> list[Line]:
    results = results_by_batch([plan.pk for plan in rows])
    return [_line(plan, results.get(plan.pk, Results())) for plan in rows]


def _line(plan: Plan, results: Results) -> Line:
    return Line(
        plan.pk,
        plan.queue,
        plan.state,
        plan.why,
        plan.note,
        plan.requested_by_id,
        plan.requested_name,
        plan.created_at_ms,
        plan.changed_at_ms,
        plan.expires_at_ms,
        plan.planned,
        plan.redriven,
        plan.skipped,
        plan.rate_mj,
        plan.solo,
        results,
    )


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


def _causes(plan: Plan, gone: Collection[tuple[str, str]]) -> tuple[CauseLine, ...]:
    of_batch = _results_by_cause(plan.pk)
    before = results_by_group()
    rows = PlanGroup.objects.filter(plan_id=plan.pk).order_by("-planned", "reason", "code")
    return tuple(
        CauseLine(
            row.reason,
            row.code,
            row.planned,
            row.redriven,
            row.skipped,
            row.again,
            row.oldest_ms,
            row.newest_ms,
            (row.reason, row.code) in gone,
            effect_possible(row.code),
            of_batch.get((row.reason, row.code), Results()),
            before.get((plan.queue, row.reason, row.code), Results()),
        )
        for row in rows
    )


def _results_by_cause(plan_id: int) -> dict[tuple[str, str], Results]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT reason, code, outcome, sum(n) FROM results WHERE batch = %s GROUP BY reason, code, outcome",
            [plan_id],
        )
        for reason, code, outcome, n in cursor.fetchall():
            found.setdefault((reason, code), {})[outcome] = int(n)
    return {cause: Results(**outcomes) for cause, outcomes in found.items()}


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


def _decision(row: Approval) -> Decision:
    return Decision(
        row.round,
        row.decision,
        row.by_id,
        row.by_name,
        row.at_ms,
        row.note,
        row.comment,
        row.digest,
        row.rate_mj,
        row.canary,
        _pairs(row.left_out),
        row.proof,
        row.solo,
    )


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


def is_final(state: str) -> bool:
    """Whether nothing can become of it any more, so that a page need not ask again."""
    return state in CLOSED
