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
    delivery_rate_mj = models.BigIntegerField(null=True, blank=True)  # of all workers together, thousandths of a job/s
    breaker_after = models.IntegerField(default=20, db_default=20)  # so many failures without an answer; 0: never
    breaker_wait_ms = models.BigIntegerField(default=30_000, db_default=30_000)  # open so long before one probe
    done_kept_ms = models.BigIntegerField(null=True, blank=True)  # housekeeping removes older done orders; null: never
    receiver_keeps_ms = models.BigIntegerField(default=90 * DAY_MS, db_default=90 * DAY_MS)  # how long it knows an id

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
            models.CheckConstraint(
                condition=models.Q(breaker_after__gte=0, breaker_wait_ms__gte=1, receiver_keeps_ms__gte=1)
                & (models.Q(delivery_rate_mj=None) | models.Q(delivery_rate_mj__gte=1))
                & (models.Q(done_kept_ms=None) | models.Q(done_kept_ms__gte=0)),
                name="queues_limits",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Gate(models.Model):
    """What stands between a queue and its receiver, shared by all workers and hosts: the bucket of its delivery rate and
    its breaker. One row per queue that has a limit or a failing receiver; made when first needed.

    `closed` lets everything through; `open` nothing until `probe_at_ms`; `probing` one order (`probe_job`).
    """

    class Breaker(models.TextChoices):
        CLOSED = "closed"
        OPEN = "open"
        PROBING = "probing"

    queue = AsciiField(primary_key=True, max_length=32)
    level_uj = models.BigIntegerField(default=0, db_default=0)
    level_at_ms = models.BigIntegerField(default=0, db_default=0)
    breaker = AsciiField(max_length=8, choices=Breaker, default=Breaker.CLOSED, db_default="closed")
    failed_in_row = models.IntegerField(default=0, db_default=0)
    since_ms = models.BigIntegerField(default=0, db_default=0)  # the breaker stands so since
    probe_at_ms = models.BigIntegerField(null=True)
    probe_job = AsciiField(max_length=64, default="", db_default="")
    probe_token = models.BigIntegerField(default=0, db_default=0)
    silent_since_ms = models.BigIntegerField(null=True)  # the first failure since the last answer
    probes_failed = models.IntegerField(default=0, db_default=0)  # since it opened

    class Meta:
        db_table = "gates"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(breaker__in=["closed", "open", "probing"], failed_in_row__gte=0),
                name="gates_breaker",
            )
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.breaker}"
