"""Carrying out approved plans, tick by tick (DESIGN section 8, "Carry out").

A tick is one short write transaction: the bucket, the trial, the jobs, the items, the numbers, the record. Whoever
makes it finds everything in the database, so any number of redrivers may, and after a crash the next tick goes on.
"""

import json
from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction

from queue_app import clock
from queue_app.models import Plan
from queue_app.policy import buckets, canaries
from queue_app.policy.buckets import Bucket
from queue_app.policy.canaries import Trial, Verdict
from queue_app.policy.plans import BREAKER, TRIAL_FAILED, TRIAL_SILENT
from queue_app.reads import outcomes
from queue_app.services import programs, turns
from queue_app.services.turns import Outcome
from queue_app.store import chain, database, items, plans

MAX_BITE = buckets.BITE[1]
LOOK = 32  # items looked at even for one job, so that a row of skipped ones is passed at once
POLL_MS = 250  # between looks at a trial's results


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did. `due_ms`: how long until the next is worth it, None: this batch is not running (any more);
    `held_ms`: how long the write lock was held."""

    state: str
    redriven: int = 0
    skipped: int = 0
    failed: int = 0
    due_ms: int | None = None
    held_ms: int = 0


@database.retried
def begin(plan_id: int, *, now_ms: int | None = None) -> bool:
    """Begin, or go on with, an approved plan if it is its turn in its queue; whether it runs now."""
    try:
        with database.write():
            plan = plans.read(plan_id, lock=True, pass_over=True)
            if plan is None or plan.state != "approved" or plans.next_in_turn(plan.queue) != plan_id:
                return False
            return begin_now(plan, database.now_ms() if now_ms is None else now_ms)
    except IntegrityError:  # another redriver began another plan of the queue at the same moment
        return False


def begin_now(plan: Plan, now: int) -> bool:
    """Approved -> running inside the caller's transaction, unless a batch of the queue runs or the approval ran out."""
    if plans.another_runs(plan.queue) or now >= plan.expires_at_ms:
        return False
    bucket = Bucket(plan.level_uj, plan.level_at_ms)
    bucket = buckets.fresh(now) if plan.started_at_ms is None else buckets.resumed(bucket, now)
    first = plan.started_at_ms is None
    with transaction.atomic():
        moved = plans.move(
            plan,
            "begin",
            now,
            started_at_ms=now if first else plan.started_at_ms,
            level_uj=bucket.level_uj,
            level_at_ms=bucket.at_ms,
        )
    if moved:
        chain.append([programs.event("batch.begin", plan.pk, now, round=plan.round, rate_mj=plan.rate_mj, first=first)])
    return moved


@database.retried
def tick(plan_id: int, *, bite: int = MAX_BITE, unlimited: bool = False, now_ms: int | None = None) -> Tick:
    """Do what is due of a running batch, at most `bite` items. `unlimited` is for benchmarks: no rate, no trial's wait."""
    with database.write():
        began_ms = clock.monotonic_ms()  # the wait for the lock tells nothing about the bite
        done = _ticked(plan_id, bite, unlimited, now_ms)
    return replace(done, held_ms=clock.monotonic_ms() - began_ms)


def _ticked(plan_id: int, bite: int, unlimited: bool, now_ms: int | None) -> Tick:
    plan = plans.read(plan_id, lock=True, pass_over=True)
    if plan is None:
        return Tick("busy", due_ms=buckets.TICK_MS)
    if plan.state != "running":
        return Tick(plan.state)
    return _Turn(plan, database.now_ms() if now_ms is None else now_ms, bite, unlimited).take()


class _Turn:
    """One tick of one batch, inside its transaction."""

    def __init__(self, plan: Plan, now: int, bite: int, unlimited: bool) -> None:
        self._plan = plan
        self._now = now
        self._bite = bite
        self._unlimited = unlimited
        self._rate = self._current_rate()
        seen = Bucket(plan.level_uj, plan.level_at_ms)
        self._elapsed = min(max(now - seen.at_ms, 0), buckets.window_ms(self._rate))
        self._bucket = buckets.refilled(seen, self._rate, now)
        if unlimited:
            self._bucket = Bucket(bite * buckets.JOB_UJ, now)
        self._due_ms = buckets.due_in_ms(seen, self._rate, now)

    def take(self) -> Tick:
        plan = self._plan
        trial: Verdict | None = None
        if not plan.canary_passed:
            trial = self._judged()
            if trial in ("failed", "silent"):
                return self._give_way(trial)
            if trial == "waiting":
                return Tick("running", due_ms=POLL_MS)
        elif self._tripped():
            return self._hold_up("halt", BREAKER)
        if self._bucket.jobs < 1 or (self._due_ms > 0 and not self._unlimited):
            if trial == "passed" or self._now < plan.level_at_ms:  # a clock set back is noted, or it would block
                self._keep({"canary_passed": True} if trial == "passed" else {})
            return Tick("running", due_ms=max(self._due_ms, 1))
        return self._work(in_trial=trial == "sending", passed=trial == "passed")

    # --- the trial and the breaker ---

    def _judged(self) -> Verdict:
        plan = self._plan
        sent, left, done, died = outcomes.trial_numbers(plan.pk, plan.round)
        if left == 0 and plan.canary_sent_at_ms is None:
            left = self._draw(plan.canary - sent)
            if left == 0:  # all of it was started, or nothing more is there to be drawn
                plans.change(plan, canary_drawn=True, canary_sent_at_ms=self._now)
        trial = Trial(sent, left, done, died, plan.canary_sent_at_ms, plan.canary_wait_ms, plan.stop_permille)
        verdict = canaries.judge(trial, self._now)
        return "passed" if verdict == "waiting" and self._unlimited else verdict

    def _draw(self, missing: int) -> int:
        """Draw orders for the trial from every cause that still waits; how many were found."""
        plan = self._plan
        gone = turns.left_out(plan)
        waiting = {
            group: row.planned - row.redriven - row.skipped
            for group, row in plans.groups(plan.pk).items()
            if group not in gone
        }
        if missing <= 0:
            return 0
        return items.draw(plan.pk, plan.round, canaries.allot(waiting, missing), plan.next_pos)

    def _tripped(self) -> bool:
        plan = self._plan
        died = outcomes.deaths_among_last(plan.pk, plan.round_outcome, plan.round_at_ms, canaries.WINDOW)
        return canaries.tripped(died, plan.stop_permille)

    def _give_way(self, verdict: Verdict) -> Tick:
        if verdict == "failed":
            return self._hold_up("halt", TRIAL_FAILED)
        return self._hold_up("fall_silent", TRIAL_SILENT)

    def _hold_up(self, move: str, why: str) -> Tick:
        plan = self._plan
        plans.move(plan, move, self._now, why=why)
        left = plan.planned - plan.redriven - plan.skipped
        chain.append(
            [
                programs.event(
                    f"batch.{'halt' if move == 'halt' else 'pause'}",
                    plan.pk,
                    self._now,
                    why=why,
                    round=plan.round,
                    redriven=plan.redriven,
                    skipped=plan.skipped,
                    left=left,
                )
            ]
        )
        return Tick(plan.state)

    # --- the work ---

    def _work(self, *, in_trial: bool, passed: bool) -> Tick:
        plan = self._plan
        jobs = min(self._bucket.jobs, self._bite)
        limit = min(self._bite, max(jobs, LOOK))
        if in_trial:
            waiting = items.of_trial(plan.pk, plan.round, self._now, limit)
        else:
            waiting = items.again(plan.pk, self._now, limit)
            waiting += items.fresh(plan.pk, plan.next_pos, plan.planned, limit - len(waiting))
        outcome = turns.carry_out(plan, waiting, jobs, self._now)
        self._keep(self._changes(outcome, in_trial=in_trial, passed=passed), outcome)
        ended = plan.planned == plan.redriven + plan.skipped
        if ended:
            plans.move(plan, "end", self._now)
        self._record(outcome, in_trial=in_trial, ended=ended)
        due_ms = None if ended else self._next_due(outcome)
        return Tick(plan.state, outcome.n_redriven, outcome.n_skipped, outcome.failed, due_ms)

    def _changes(self, outcome: Outcome, *, in_trial: bool, passed: bool) -> dict[str, object]:
        plan = self._plan
        skips = json.loads(plan.skips)
        for why, n in outcome.skips.items():
            skips[why] = skips.get(why, 0) + n
        changes: dict[str, object] = {
            "redriven": plan.redriven + outcome.n_redriven,
            "skipped": plan.skipped + outcome.n_skipped,
            "skips": json.dumps(skips, sort_keys=True),
        }
        if passed:
            changes["canary_passed"] = True
        if not in_trial:
            changes["next_pos"] = max(plan.next_pos, outcome.passed_pos + 1)
        return changes

    def _keep(self, changes: dict[str, object], outcome: Outcome | None = None) -> None:
        """Write the plan's row; the bucket is charged for what was redriven."""
        plan = self._plan
        bucket = buckets.spent(self._bucket, outcome.n_redriven if outcome else 0)
        ran = plan.ran_ms + (self._elapsed if plan.canary_passed else 0)
        if not plans.change(plan, level_uj=bucket.level_uj, level_at_ms=bucket.at_ms, ran_ms=ran, **changes):
            raise RuntimeError("A batch moved inside the transaction that holds it.")
        self._bucket = bucket

    def _record(self, outcome: Outcome, *, in_trial: bool, ended: bool) -> None:
        plan = self._plan
        events = []
        if outcome.n_redriven or outcome.n_skipped or outcome.failed:
            events.append(
                programs.event(
                    "batch.tick",
                    plan.pk,
                    self._now,
                    round=plan.round,
                    redriven=outcome.n_redriven,
                    skipped=outcome.n_skipped,
                    failed=outcome.failed,
                    trial=in_trial,
                )
            )
        if ended:
            events.append(
                programs.event(
                    "batch.end",
                    plan.pk,
                    self._now,
                    planned=plan.planned,
                    redriven=plan.redriven,
                    skipped=plan.skipped,
                    skips=plan.skips,
                )
            )
        if events:
            chain.append(events, outcome.rows)

    def _next_due(self, outcome: Outcome) -> int:
        if outcome.looked_at == 0:  # only items that failed before are left, or the trial waits for one of them
            again = items.next_again_ms(self._plan.pk)
            return max(1, min(1_000, (again or self._now) - self._now)) if again else buckets.TICK_MS
        if outcome.n_redriven == 0:
            return 1
        return max(1, buckets.due_in_ms(self._bucket, self._rate, self._now))

    def _current_rate(self) -> int:
        plan = self._plan
        steps = [(rate, seconds) for rate, seconds in json.loads(plan.steps)]
        return buckets.rate_at(plan.rate_mj, steps, plan.ran_ms if plan.canary_passed else 0)
