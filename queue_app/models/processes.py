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
    host = AsciiField(max_length=128, default="", db_default="")
    concurrency = models.IntegerField(default=1, db_default=1)  # deliveries at once
    ended_n = models.BigIntegerField(default=0, db_default=0)  # attempts that this process ended since its start
    failed_n = models.BigIntegerField(default=0, db_default=0)  # of them, those that were no success
    rate_mj = models.BigIntegerField(default=0, db_default=0)  # attempts it ended lately, thousandths of a job/s
    draining = models.BooleanField(default=False, db_default=False)  # takes nothing new

    class Meta:
        db_table = "processes"

    def __str__(self) -> str:
        return self.name
