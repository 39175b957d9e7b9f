"""Queues: the policy under which their orders live."""

from django.db import models

from queue_app.models.fields import AsciiField

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Queue(models.Model):
    """One declared queue. The defaults are those of DESIGN section 4; `snacks` is made in post_migrate."""

    class Ordering(models.TextChoices):
        INDEPENDENT = "independent"  # a failed order is passed over
        ORDERED = "ordered"  # an earlier unfinished order of the same key blocks the later ones

    name = AsciiField(primary_key=True, max_length=32)
    ordering = AsciiField(max_length=12, choices=Ordering, default=Ordering.INDEPENDENT, db_default="independent")
    max_attempts = models.IntegerField(default=3, db_default=3)
    budget_ms = models.BigIntegerField(default=DAY_MS, db_default=DAY_MS)
    wait_base_ms = models.BigIntegerField(default=1_000, db_default=1_000)
    wait_cap_ms = models.BigIntegerField(default=300_000, db_default=300_000)
    wait_budget_ms = models.BigIntegerField(null=True, blank=True)
    lease_ms = models.BigIntegerField(default=30_000, db_default=30_000)
    redrive_horizon_ms = models.BigIntegerField(default=30 * DAY_MS, db_default=30 * DAY_MS)
    rate_mj = models.BigIntegerField(default=5_000, db_default=5_000)  # usual redrive rate in thousandths of a job/s
    max_unfinished = models.BigIntegerField(null=True, blank=True)  # QueueFull above it
    accepting = models.BooleanField(default=True, db_default=True)  # QueueClosed when false
    paused = models.BooleanField(default=False, db_default=False)  # nothing is handed out when true

    class Meta:
        db_table = "queues"
        constraints = [
            models.CheckConstraint(condition=models.Q(ordering__in=["independent", "ordered"]), name="queues_ordering"),
            models.CheckConstraint(
                condition=models.Q(
                    max_attempts__gte=1, budget_ms__gte=1, wait_base_ms__gte=0, wait_cap_ms__gte=0, lease_ms__gte=1
                ),
                name="queues_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name
