"""Processes that say that they live: workers and redrivers."""

from django.db import models

from queue_app.models.fields import AsciiField


class Process(models.Model):
    """One worker or redriver. Silent when not seen for three beats; `detail` says why it waits (`disk_full`)."""

    name = AsciiField(primary_key=True, max_length=128)
    kind = AsciiField(max_length=12)
    queue = AsciiField(max_length=32, default="", db_default="")
    started_at_ms = models.BigIntegerField()
    seen_at_ms = models.BigIntegerField()
    stopped_at_ms = models.BigIntegerField(null=True)
    detail = AsciiField(max_length=48, default="", db_default="")

    class Meta:
        db_table = "processes"

    def __str__(self) -> str:
        return self.name
