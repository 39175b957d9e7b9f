"""Plans: a frozen selection that waits for approval, and its batch once approved. For people one thing: Redrive R-12."""

from django.db import models
from django.db.models import F, Q

from queue_app.models.fields import AsciiField
from queue_app.policy.plans import STATES


class Plan(models.Model):
    """A plan of one queue and, after approval, the batch that carries it out. `policy.plans.MOVES` says what may follow.

    Orders that wait for their turn are planned - redriven - skipped; no column repeats it.
    """

    queue = AsciiField(max_length=32)
    state = AsciiField(max_length=12)
    why = AsciiField(max_length=24, default="", db_default="")  # why paused, halted, expired or cancelled
    selection = models.TextField()  # canonical JSON of what was selected
    as_of_ms = models.BigIntegerField()  # the freeze began; jobs dead since before belong
    note = AsciiField(max_length=64)
    comment = models.TextField(default="", db_default="")
    requested_by = models.ForeignKey("auth.User", null=True, on_delete=models.PROTECT, related_name="+")
    requested_name = models.CharField(max_length=150, default="", db_default="")  # of that moment
    form_key = AsciiField(max_length=64, null=True, unique=True)  # one form, one plan: a second submit finds it
    created_at_ms = models.BigIntegerField()
    changed_at_ms = models.BigIntegerField()  # last change of state
    expires_at_ms = models.BigIntegerField()  # decide, or begin, before
    # the terms
    asked_rate_mj = models.BigIntegerField()  # thousandths of a job per second; no approval goes above
    approved_rate_mj = models.BigIntegerField(default=0, db_default=0)  # of the last approval; nobody goes above
    rate_mj = models.BigIntegerField()  # now
    steps = models.TextField(default="[]", db_default="[]")  # [[rate_mj, seconds], ...]
    cap = models.BigIntegerField(null=True)
    canary = models.IntegerField(default=0, db_default=0)  # as asked, or as made larger by the last approval
    canary_wait_ms = models.BigIntegerField(default=600_000, db_default=600_000)
    stop_permille = models.IntegerField(default=500, db_default=500)
    max_dead_ms = models.BigIntegerField(null=True)  # "not if dead for longer than"
    max_attempts = models.IntegerField(null=True)
    budget_ms = models.BigIntegerField(null=True)
    left_out = models.TextField(default="[]", db_default="[]")  # [[reason, code], ...] by an approver
    # the freeze
    looked_at = models.BigIntegerField(default=0, db_default=0)  # orders looked at so far
    expected = models.BigIntegerField(default=0, db_default=0)  # orders the selection held when it began, for progress
    frozen_after_ms = models.BigIntegerField(default=-1, db_default=-1)
    frozen_after_seq = models.BigIntegerField(default=-1, db_default=-1)
    planned = models.BigIntegerField(default=0, db_default=0)
    beyond_horizon = models.BigIntegerField(default=0, db_default=0)
    too_old = models.BigIntegerField(default=0, db_default=0)
    held_elsewhere = models.BigIntegerField(default=0, db_default=0)
    held_by = models.TextField(default="{}", db_default="{}")  # {plan: how many} of the orders held elsewhere
    digest = AsciiField(max_length=64, default="", db_default="")  # grows with the list until it is frozen
    # the batch
    round = models.IntegerField(default=0, db_default=0)  # approvals so far
    round_at_ms = models.BigIntegerField(default=0, db_default=0)
    round_outcome = models.BigIntegerField(default=0, db_default=0)  # the last outcome before this round
    canary_passed = models.BooleanField(default=False, db_default=False)
    canary_drawn = models.BooleanField(default=False, db_default=False)  # no order is left to draw for this trial
    canary_sent_at_ms = models.BigIntegerField(null=True)  # the whole trial was started
    redriven = models.BigIntegerField(default=0, db_default=0)
    skipped = models.BigIntegerField(default=0, db_default=0)
    skips = models.TextField(default="{}", db_default="{}")  # {why: how many} of the skipped
    next_pos = models.BigIntegerField(default=1, db_default=1)  # all before were looked at, but for those tried again
    level_uj = models.BigIntegerField(default=0, db_default=0)  # bucket: millionths of a job
    level_at_ms = models.BigIntegerField(default=0, db_default=0)
    ran_ms = models.BigIntegerField(default=0, db_default=0)  # running time since the trial, for the steps
    started_at_ms = models.BigIntegerField(null=True)
    ended_at_ms = models.BigIntegerField(null=True)  # closed, however
    sealed_pos = models.BigIntegerField(default=0, db_default=0)  # outcomes are in the digest up to here
    outcome_digest = AsciiField(max_length=64, default="", db_default="")
    sealed_at_ms = models.BigIntegerField(null=True)  # the last outcome is in and the digest is in the record
    solo = models.BooleanField(default=False, db_default=False)  # decided by the one who asked, under the setting

    class Meta:
        db_table = "plans"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=STATES), name="plans_state_known"),
            models.CheckConstraint(
                condition=Q(redriven__gte=0, skipped__gte=0, planned__gte=F("redriven") + F("skipped")),
                name="plans_numbers",
            ),
            models.CheckConstraint(
                condition=~Q(state="ended") | Q(planned=F("redriven") + F("skipped")), name="plans_end"
            ),
            models.CheckConstraint(
                condition=Q(approved_rate_mj=0)
                | Q(rate_mj__lte=F("approved_rate_mj"), approved_rate_mj__lte=F("asked_rate_mj")),
                name="plans_rate",
            ),
            models.UniqueConstraint(fields=["queue"], condition=Q(state="running"), name="plans_one_running"),
        ]
        indexes = [
            models.Index(fields=["state", "id"], name="plans_state"),
            models.Index(
                fields=["id"], condition=Q(sealed_at_ms=None, state__in=["ended", "stopped"]), name="plans_unsealed"
            ),
        ]

    def __str__(self) -> str:
        return f"R-{self.id}"


class PlanGroup(models.Model):
    """How many frozen orders of a plan are of one cause, and how many of them had their turn."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="groups")
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    planned = models.BigIntegerField(default=0, db_default=0)
    again = models.BigIntegerField(default=0, db_default=0)  # of the planned: redriven before
    redriven = models.BigIntegerField(default=0, db_default=0)
    skipped = models.BigIntegerField(default=0, db_default=0)
    oldest_ms = models.BigIntegerField()  # dead since
    newest_ms = models.BigIntegerField()

    class Meta:
        db_table = "plan_groups"
        constraints = [
            models.UniqueConstraint(fields=["plan", "reason", "code"], name="plan_groups_key"),
            models.CheckConstraint(
                condition=Q(redriven__gte=0, skipped__gte=0, planned__gte=F("redriven") + F("skipped")),
                name="plan_groups_numbers",
            ),
        ]

    def __str__(self) -> str:
        return f"R-{self.plan_id} {self.reason} {self.code} {self.planned}"


class PlanItem(models.Model):
    """One frozen job of a plan. What was frozen never changes; `state` goes from waiting to redriven or skipped once."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="items", db_index=False)
    pos = models.BigIntegerField()  # oldest first, from 1
    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    dead_since_ms = models.BigIntegerField()
    state = AsciiField(max_length=8, default="waiting", db_default="waiting")
    why = AsciiField(max_length=24, default="", db_default="")  # why skipped
    canary = models.IntegerField(default=0, db_default=0)  # the round whose trial it was drawn for
    tries = models.IntegerField(default=0, db_default=0)  # turns that failed in this item itself
    at_ms = models.BigIntegerField(null=True)  # while waiting, after a failed turn: not tried again before
    # Redriven or skipped at; up to 0003 `at_ms` said so. No index has a column that a redriven item changes: on PostgreSQL
    # its new version then stays in its page and touches none of them, which is most of what an item costs.
    left_at_ms = models.BigIntegerField(null=True)

    class Meta:
        db_table = "plan_items"
        constraints = [
            models.UniqueConstraint(fields=["plan", "pos"], name="plan_items_pos"),
            models.UniqueConstraint(fields=["job_id", "plan"], name="plan_items_job"),
            models.CheckConstraint(condition=Q(state__in=["waiting", "redriven", "skipped"]), name="plan_items_state"),
            models.CheckConstraint(
                condition=(Q(state="skipped") & ~Q(why="")) | (~Q(state="skipped") & Q(why="")), name="plan_items_why"
            ),
        ]
        indexes = [
            models.Index(fields=["plan", "reason", "code", "pos"], name="plan_items_group"),  # a trial draws from all
            models.Index(fields=["plan", "canary", "pos"], condition=Q(canary__gt=0), name="plan_items_canary"),
            models.Index(
                fields=["plan", "at_ms"], condition=Q(at_ms__isnull=False, tries__gt=0), name="plan_items_again"
            ),
            models.Index(fields=["plan", "pos"], condition=Q(why__gt=""), name="plan_items_skipped"),
        ]

    def __str__(self) -> str:
        return f"R-{self.plan_id}/{self.pos} {self.job_id}"


class Hold(models.Model):
    """Which plan a job is held by. The hold of a closed plan may be taken over, so closing costs one row."""

    job_id = AsciiField(primary_key=True, max_length=64)
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        db_table = "holds"

    def __str__(self) -> str:
        return f"{self.job_id} by R-{self.plan_id}"


class Approval(models.Model):
    """A decision on a round of a plan (insert-only): one per round."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="approvals")
    round = models.IntegerField()
    decision = AsciiField(max_length=8)  # approve or reject
    by = models.ForeignKey("auth.User", on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=150)
    at_ms = models.BigIntegerField()
    note = AsciiField(max_length=64)
    comment = models.TextField(default="", db_default="")
    digest = AsciiField(max_length=64)  # what the approver saw
    rate_mj = models.BigIntegerField()
    canary = models.IntegerField()
    left_out = models.TextField(default="[]", db_default="[]")
    proof = AsciiField(max_length=24)
    solo = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "approvals"
        constraints = [models.UniqueConstraint(fields=["plan", "round"], name="approvals_round")]

    def __str__(self) -> str:
        return f"R-{self.plan_id} round {self.round} {self.decision}"
