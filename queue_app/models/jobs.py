"""Jobs: one row per order. A dead one is never deleted (DESIGN section 3)."""

from django.db import models
from django.db.models import Q

from queue_app.models.fields import AsciiField, StoredType


class Job(models.Model):
    """An order and where it stands. Only `queue_app.store` writes here, by guarded updates.

    Who moves a job on, and how long it stays:
    `pending` until a worker claims it (`available_at` is the earliest time); `leased` until its worker finishes,
    releases, or another takes over after `lease_until`; `done` for good; `dead` until an approved redrive.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        LEASED = "leased"
        DONE = "done"
        DEAD = "dead"

    class Reason(models.TextChoices):
        PERMANENT = "permanent"
        EXHAUSTED = "exhausted"
        DEADLINE = "deadline"

    id = AsciiField(primary_key=True, max_length=64)
    seq = models.BigIntegerField(unique=True)
    queue = AsciiField(max_length=32)
    order_key = AsciiField(max_length=64, default="", db_default="")
    quantity = models.IntegerField()
    payload = models.TextField(default="{}", db_default="{}")
    state = AsciiField(max_length=8, choices=State, default=State.PENDING, db_default="pending")
    reason = AsciiField(max_length=12, default="", db_default="")
    code = AsciiField(max_length=48, default="", db_default="")
    attempts = models.IntegerField(default=0, db_default=0)
    max_attempts = models.IntegerField()
    token = models.BigIntegerField(default=0, db_default=0)
    owner = AsciiField(max_length=128, null=True)
    lease_until = models.BigIntegerField(null=True)
    available_at = models.BigIntegerField()
    deadline = models.BigIntegerField()
    created_at_ms = models.BigIntegerField()
    changed_at_ms = models.BigIntegerField()
    redriven = models.IntegerField(default=0, db_default=0)
    batch = models.BigIntegerField(null=True)
    waited_ms = models.BigIntegerField(default=0, db_default=0)  # sum of the waits of this budget, for the wait budget

    class Meta:
        db_table = "jobs"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=["pending", "leased", "done", "dead"]), name="jobs_state"),
            models.CheckConstraint(
                condition=Q(state="dead", reason__in=["permanent", "exhausted", "deadline"])
                | (~Q(state="dead") & Q(reason="", code="")),
                name="jobs_reason_iff_dead",
            ),
            models.CheckConstraint(
                condition=Q(state="leased", owner__isnull=False, lease_until__isnull=False)
                | (~Q(state="leased") & Q(owner__isnull=True, lease_until__isnull=True)),
                name="jobs_lease_iff_leased",
            ),
            models.CheckConstraint(
                condition=models.lookups.Exact(StoredType("quantity"), "integer")
                & Q(quantity__gte=1, quantity__lte=1_000_000),
                name="jobs_quantity",
            ),
            models.CheckConstraint(
                condition=Q(attempts__gte=0, attempts__lte=models.F("max_attempts"), max_attempts__gte=1, token__gte=0),
                name="jobs_budget",
            ),
        ]
        indexes = [
            # the claim's way: due jobs of a queue in order
            models.Index(
                fields=["queue", "available_at", "seq"], condition=Q(state__in=["pending", "leased"]), name="jobs_due"
            ),
            models.Index(fields=["lease_until"], condition=Q(state="leased"), name="jobs_lease"),
            # the quarantine's two ways: all by age, and one group by age
            models.Index(fields=["changed_at_ms", "seq"], condition=Q(state="dead"), name="jobs_dead_age"),
            models.Index(
                fields=["queue", "reason", "code", "changed_at_ms", "seq"],
                condition=Q(state="dead"),
                name="jobs_dead_group",
            ),
            # what an ordered queue waits for
            models.Index(
                fields=["queue", "order_key", "seq"],
                condition=Q(state__in=["pending", "leased", "dead"]) & ~Q(order_key=""),
                name="jobs_order_key",
            ),
        ]

    def __str__(self) -> str:
        return self.id
