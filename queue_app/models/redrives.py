"""Redrives and what came of them (insert-only)."""

from django.db import models

from queue_app.models.fields import AsciiField


class Redrive(models.Model):
    """One job restarted: who asked, who approved, why, and the budget before and after. Part of the hash chain."""

    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()  # the job's token before, which it keeps
    at_ms = models.BigIntegerField()
    note = AsciiField(max_length=64)
    queue = AsciiField(max_length=32)
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    old_attempts = models.IntegerField()
    old_max_attempts = models.IntegerField()
    old_deadline = models.BigIntegerField()
    new_max_attempts = models.IntegerField()
    new_deadline = models.BigIntegerField()
    requested_by = models.ForeignKey("auth.User", null=True, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey("auth.User", on_delete=models.PROTECT, related_name="+")
    batch = models.BigIntegerField(null=True)
    solo = models.BooleanField(default=False, db_default=False)  # approved under SNACKOPS_SOLO_APPROVAL
    link = models.BigIntegerField(unique=True)  # place in the chain, shared with audit
    hash = AsciiField(max_length=64)

    class Meta:
        db_table = "redrives"
        constraints = [models.UniqueConstraint(fields=["job_id", "token"], name="redrives_job_token")]
        indexes = [models.Index(fields=["batch", "id"], name="redrives_batch")]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.token}"


class RedriveOutcome(models.Model):
    """The first end after a redrive: done, dead again for the same reason and code, or for another."""

    class Outcome(models.TextChoices):
        DONE = "done"
        SAME = "dead_same"
        OTHER = "dead_other"

    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()  # of the redrive
    queue = AsciiField(max_length=32)
    batch = models.BigIntegerField(null=True)
    was_reason = AsciiField(max_length=12)
    was_code = AsciiField(max_length=48)
    outcome = AsciiField(max_length=12, choices=Outcome)
    reason = AsciiField(max_length=12, default="", db_default="")
    code = AsciiField(max_length=48, default="", db_default="")
    end_token = models.BigIntegerField()
    at_ms = models.BigIntegerField()

    class Meta:
        db_table = "redrive_outcomes"
        constraints = [models.UniqueConstraint(fields=["job_id", "token"], name="redrive_outcomes_job_token")]
        indexes = [models.Index(fields=["batch", "id"], name="redrive_outcomes_batch")]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.token} {self.outcome}"
