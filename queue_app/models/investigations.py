"""Investigations: that somebody looked, at what, and what was found (insert-only)."""

from django.db import models

from queue_app.models.fields import AsciiField


class Investigation(models.Model):
    """One look. Scope `job`, `group` (queue + reason + code) or `filter` (with its instant and count)."""

    class Finding(models.TextChoices):
        LOOKING = "looking"
        CAUSE_FOUND = "cause_found"
        FIXED = "fixed"
        NOT_FIXABLE = "not_fixable"

    at_ms = models.BigIntegerField()
    by = models.ForeignKey("auth.User", on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=150)
    scope = AsciiField(max_length=8)
    job_id = AsciiField(max_length=64, default="", db_default="")
    selection = models.TextField(default="", db_default="")  # canonical filter, for scope filter
    as_of_ms = models.BigIntegerField()
    count = models.BigIntegerField()
    note = AsciiField(max_length=64)
    finding = AsciiField(max_length=12, choices=Finding)
    comment = models.TextField(default="", db_default="")

    class Meta:
        db_table = "investigations"
        indexes = [
            models.Index(fields=["job_id", "id"], name="investigations_job", condition=~models.Q(job_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.scope} {self.note}"


class InvestigatedGroup(models.Model):
    """A group that an investigation counts for: its own, or one that its filter covered whole (insert-only)."""

    investigation = models.ForeignKey(Investigation, on_delete=models.PROTECT, related_name="groups")
    queue = AsciiField(max_length=32)
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)

    class Meta:
        db_table = "investigated_groups"
        constraints = [
            models.UniqueConstraint(fields=["investigation", "queue", "reason", "code"], name="investigated_groups_key")
        ]
        indexes = [models.Index(fields=["queue", "reason", "code", "investigation"], name="investigated_groups_last")]

    def __str__(self) -> str:
        return f"{self.queue} {self.reason} {self.code}"
