"""Evidence: what is only ever added (insert-only by triggers of the database)."""

from django.db import models

from queue_app.models.fields import AsciiField


class Failure(models.Model):
    """One failed or lost attempt: at most one row per job and token. Never a raw error or a response body."""

    class Outcome(models.TextChoices):
        RETRY = "retry"  # the worker asked for another try
        PERMANENT = "permanent"  # the receiver refused for good
        LEASE_EXPIRED = "lease_expired"  # the worker never said anything; somebody else took over
        UNKNOWN = "unknown"  # an answer that proves nothing, or an exception; the job stayed leased
        DEADLINE_PASSED = "deadline_passed"  # buried before another try

    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()
    attempt = models.IntegerField()
    at_ms = models.BigIntegerField()
    outcome = AsciiField(max_length=16, choices=Outcome)
    code = AsciiField(max_length=48, default="", db_default="")
    worker = AsciiField(max_length=128, default="", db_default="")

    class Meta:
        db_table = "failures"
        constraints = [models.UniqueConstraint(fields=["job_id", "token"], name="failures_job_token")]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.token} {self.outcome}"


class LateFinish(models.Model):
    """A finish that its token refused: the first for each job and token, as evidence on the order's page."""

    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()
    at_ms = models.BigIntegerField()
    outcome = AsciiField(max_length=16)

    class Meta:
        db_table = "late_finishes"
        constraints = [models.UniqueConstraint(fields=["job_id", "token"], name="late_finishes_job_token")]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.token} refused"


class Unblock(models.Model):
    """A team lead let the later orders of an ordered queue pass this one dead job, at this token."""

    job_id = AsciiField(max_length=64)
    token = models.BigIntegerField()
    at_ms = models.BigIntegerField()
    note = AsciiField(max_length=64)
    by = models.ForeignKey("auth.User", on_delete=models.PROTECT, related_name="+")

    class Meta:
        db_table = "unblocks"
        constraints = [models.UniqueConstraint(fields=["job_id", "token"], name="unblocks_job_token")]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.token} unblocked"


class Tombstone(models.Model):
    """What stays of a done job that housekeeping removed, so that its id is known for ever."""

    job_id = AsciiField(primary_key=True, max_length=64)
    body_digest = AsciiField(max_length=64)  # SHA-256 of the canonical body (policy.orders)
    quantity = models.IntegerField()
    done_at_ms = models.BigIntegerField()
    removed_at_ms = models.BigIntegerField()

    class Meta:
        db_table = "tombstones"

    def __str__(self) -> str:
        return self.job_id
