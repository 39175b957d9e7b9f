"""The record: audit events and, with the redrives rows, one hash chain (DESIGN section 9)."""

from django.db import models

from queue_app.models.fields import AsciiField


class AuditEvent(models.Model):
    """What a person (or the redriver, actor null) did or was refused. Insert-only."""

    seq = models.BigIntegerField(primary_key=True)  # without gaps
    link = models.BigIntegerField(unique=True)  # place in the chain, shared with redrives
    at_ms = models.BigIntegerField()
    actor = models.ForeignKey("auth.User", null=True, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=150)  # of that moment
    roles = AsciiField(max_length=64, default="", db_default="")  # of that moment, separated by commas
    action = AsciiField(max_length=48)
    target = AsciiField(max_length=128)
    note = AsciiField(max_length=64, default="", db_default="")
    source = AsciiField(max_length=16)  # the channel: console, cli, code, redriver
    proof = AsciiField(max_length=24, default="", db_default="")  # how identity was proved: session, password, ...
    detail = models.TextField(default="{}", db_default="{}")  # canonical ASCII JSON
    prev = AsciiField(max_length=64)
    hash = AsciiField(max_length=64)
    version = models.IntegerField(default=1, db_default=1)

    class Meta:
        db_table = "audit"
        indexes = [
            models.Index(fields=["target", "seq"], name="audit_target"),
            models.Index(fields=["action", "seq"], name="audit_action"),
            models.Index(fields=["actor", "seq"], name="audit_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.action}"


class Head(models.Model):
    """One row per growing sequence: `chain` (seq, link, hash of its last row) and, on SQLite, `jobs` (last seq)."""

    name = AsciiField(primary_key=True, max_length=16)
    seq = models.BigIntegerField(default=0, db_default=0)
    link = models.BigIntegerField(default=0, db_default=0)
    hash = AsciiField(max_length=64, default="", db_default="")

    class Meta:
        db_table = "heads"

    def __str__(self) -> str:
        return f"{self.name} {self.seq}"
