"""Comparisons with the receiver's ledger: each run leaves one row (insert when it ends, never changed)."""

from django.db import models

from queue_app.models.fields import AsciiField


class Reconciliation(models.Model):
    """What one comparison found. `numbers` is canonical ASCII JSON of counts by kind of difference."""

    started_at_ms = models.BigIntegerField()
    ended_at_ms = models.BigIntegerField()
    actor = models.ForeignKey("auth.User", null=True, on_delete=models.PROTECT, related_name="+")  # null: a program
    source = AsciiField(max_length=16)
    compared = models.BigIntegerField(default=0, db_default=0)  # ids looked at on either side
    differing = models.BigIntegerField(default=0, db_default=0)
    numbers = models.TextField(default="{}", db_default="{}")
    examples = models.TextField(default="[]", db_default="[]")  # at most 100 (kind, id), canonical ASCII JSON

    class Meta:
        db_table = "reconciliations"

    def __str__(self) -> str:
        return f"{self.ended_at_ms} {self.differing}"
