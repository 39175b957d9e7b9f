"""Counters, kept by triggers on the rows that they count, so that a figure costs the same at any size (DESIGN 7).

`slot` keeps writers of several hosts out of each other's way: SQLite uses 0, PostgreSQL the backend's process id.
A figure is always the sum over slots; a single slot may be negative.
"""

from django.db import models

from queue_app.models.fields import AsciiField


class Count(models.Model):
    """How many jobs stand at (queue, state, stage, reason, code). Stage: of pending only new, retrying or redriven."""

    queue = AsciiField(max_length=32)
    state = AsciiField(max_length=8)
    stage = AsciiField(max_length=8)
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    slot = models.IntegerField(default=0, db_default=0)
    n = models.BigIntegerField(default=0, db_default=0)
    last_at_ms = models.BigIntegerField(default=0, db_default=0)  # last change into this place

    class Meta:
        db_table = "counts"
        constraints = [
            models.UniqueConstraint(fields=["queue", "state", "stage", "reason", "code", "slot"], name="counts_key")
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.state}{self.stage} {self.n}"


class Flow(models.Model):
    """Deaths and redrives of one bucket of time (span 60,000 or 3,600,000 ms) of one group.

    `died`: deaths in the bucket; `left_n`: redrives in it; `still`: jobs that died in it and are dead now.
    """

    span_ms = models.IntegerField()
    start_ms = models.BigIntegerField()
    queue = AsciiField(max_length=32)
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    slot = models.IntegerField(default=0, db_default=0)
    died = models.BigIntegerField(default=0, db_default=0)
    left_n = models.BigIntegerField(default=0, db_default=0)
    still = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "flows"
        constraints = [
            models.UniqueConstraint(fields=["span_ms", "start_ms", "queue", "reason", "code", "slot"], name="flows_key")
        ]

    def __str__(self) -> str:
        return f"{self.span_ms}@{self.start_ms} {self.queue}"


class Result(models.Model):
    """How many redrives of (batch, queue, reason and code before) stand at an outcome: waiting until their first end."""

    batch = models.BigIntegerField(default=0, db_default=0)  # 0: without a batch
    queue = AsciiField(max_length=32)
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    outcome = AsciiField(max_length=12)
    slot = models.IntegerField(default=0, db_default=0)
    n = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "results"
        constraints = [
            models.UniqueConstraint(fields=["batch", "queue", "reason", "code", "outcome", "slot"], name="results_key")
        ]

    def __str__(self) -> str:
        return f"{self.batch} {self.outcome} {self.n}"


class Tally(models.Model):
    """A plain count under a name, such as `late_finish`, of which no rows are kept to count."""

    name = AsciiField(max_length=32)
    slot = models.IntegerField(default=0, db_default=0)
    n = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "tallies"
        constraints = [models.UniqueConstraint(fields=["name", "slot"], name="tallies_key")]

    def __str__(self) -> str:
        return f"{self.name} {self.n}"
