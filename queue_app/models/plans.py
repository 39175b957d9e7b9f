"""Plans: a frozen selection that waits for approval, and its batch once approved. For people one thing: Redrive R-12."""

from django.db import models

from queue_app.models.fields import AsciiField


class Plan(models.Model):
    """A plan of one queue and, after approval, the batch that carries it out.

    States: freezing -> proposed -> approved -> running <-> paused, running -> halted -> (new approval round) running;
    ends: ended, stopped, rejected, withdrawn, expired, cancelled. `policy.plans` holds the table of legal moves.
    """

    queue = AsciiField(max_length=32)
    state = AsciiField(max_length=12)
    selection = models.TextField()  # canonical JSON of what was selected
    as_of_ms = models.BigIntegerField()  # the freeze began; jobs dead since before belong
    note = AsciiField(max_length=64)
    comment = models.TextField(default="", db_default="")
    requested_by = models.ForeignKey("auth.User", null=True, on_delete=models.PROTECT, related_name="+")
    form_key = AsciiField(max_length=64, null=True, unique=True)  # one form, one plan: a second submit finds it
    created_at_ms = models.BigIntegerField()
    changed_at_ms = models.BigIntegerField()
    expires_at_ms = models.BigIntegerField()  # decide, or begin, before
    rate_mj = models.BigIntegerField()  # thousandths of a job per second, as asked or tightened
    approved_rate_mj = models.BigIntegerField(default=0, db_default=0)  # never above this without a new approval
    steps = models.TextField(default="[]", db_default="[]")  # [[rate_mj, seconds], ...]
    cap = models.BigIntegerField(null=True)
    canary = models.IntegerField(default=0, db_default=0)
    canary_wait_ms = models.BigIntegerField(default=600_000, db_default=600_000)
    stop_permille = models.IntegerField(default=500, db_default=500)
    max_dead_ms = models.BigIntegerField(null=True)  # "not if dead for longer than"
    max_attempts = models.IntegerField(null=True)
    budget_ms = models.BigIntegerField(null=True)
    # the freeze
    frozen_after_ms = models.BigIntegerField(default=-1, db_default=-1)
    frozen_after_seq = models.BigIntegerField(default=-1, db_default=-1)
    planned = models.BigIntegerField(default=0, db_default=0)
    beyond_horizon = models.BigIntegerField(default=0, db_default=0)
    held_elsewhere = models.BigIntegerField(default=0, db_default=0)
    digest = AsciiField(max_length=64, default="", db_default="")
    # the batch
    round = models.IntegerField(default=0, db_default=0)
    canary_from = models.BigIntegerField(default=0, db_default=0)  # redriven + skipped when this round began
    canary_passed = models.BooleanField(default=False, db_default=False)
    canary_sent_at_ms = models.BigIntegerField(null=True)
    redriven = models.BigIntegerField(default=0, db_default=0)
    skipped = models.BigIntegerField(default=0, db_default=0)
    next_pos = models.BigIntegerField(default=1, db_default=1)
    level_uj = models.BigIntegerField(default=0, db_default=0)  # bucket: millionths of a job
    level_at_ms = models.BigIntegerField(default=0, db_default=0)
    started_at_ms = models.BigIntegerField(null=True)
    ended_at_ms = models.BigIntegerField(null=True)
    why = AsciiField(max_length=24, default="", db_default="")  # why paused, halted or stopped
    outcome_digest = AsciiField(max_length=64, default="", db_default="")
    solo = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "plans"
        indexes = [models.Index(fields=["state", "id"], name="plans_state")]

    def __str__(self) -> str:
        return f"R-{self.id}"


class PlanItem(models.Model):
    """One frozen job of a plan. What was frozen never changes; `state` goes from waiting to redriven or skipped once."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="items")
    pos = models.BigIntegerField()  # oldest first, from 1
    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    dead_since_ms = models.BigIntegerField()
    state = AsciiField(max_length=8, default="waiting", db_default="waiting")
    why = AsciiField(max_length=24, default="", db_default="")
    tries = models.IntegerField(default=0, db_default=0)
    at_ms = models.BigIntegerField(null=True)

    class Meta:
        db_table = "plan_items"
        constraints = [
            models.UniqueConstraint(fields=["plan", "pos"], name="plan_items_pos"),
            models.UniqueConstraint(fields=["plan", "job_id"], name="plan_items_job"),
        ]

    def __str__(self) -> str:
        return f"R-{self.plan_id}/{self.pos} {self.job_id}"


class Hold(models.Model):
    """Which plan a job is held by. The hold of a closed plan may be taken over, so closing costs one row."""

    job_id = AsciiField(primary_key=True, max_length=64)
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="+")

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
    proof = AsciiField(max_length=24)
    solo = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "approvals"
        constraints = [models.UniqueConstraint(fields=["plan", "round"], name="approvals_round")]

    def __str__(self) -> str:
        return f"R-{self.plan_id} round {self.round} {self.decision}"
