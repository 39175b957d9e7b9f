"""What belongs to a person: preferences, named filters, and the sign of looking at something now."""

from django.db import models

from queue_app.models.fields import AsciiField


class Preference(models.Model):
    """A person's own settings; free for every role."""

    user = models.OneToOneField("auth.User", primary_key=True, on_delete=models.PROTECT, related_name="preference")
    language = AsciiField(max_length=16, default="", db_default="")
    time_zone = AsciiField(max_length=64, default="", db_default="")
    theme = AsciiField(max_length=8, default="auto", db_default="auto")
    single_keys = models.BooleanField(default=True, db_default=True)

    class Meta:
        db_table = "preferences"
        permissions = [("view_payload", "May see what an order contains (each look is recorded)")]

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class SavedFilter(models.Model):
    """A quarantine filter under a name; owner null: for all."""

    name = models.CharField(max_length=60)
    owner = models.ForeignKey("auth.User", null=True, on_delete=models.PROTECT, related_name="+")
    made_by = models.ForeignKey("auth.User", on_delete=models.PROTECT, related_name="+")
    query = AsciiField(max_length=2000)
    at_ms = models.BigIntegerField()

    class Meta:
        db_table = "saved_filters"
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_filters_own"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(owner=None), name="saved_filters_shared"),
        ]

    def __str__(self) -> str:
        return self.name


class Presence(models.Model):
    """Somebody has the investigation form of a group open (seen within the last minute)."""

    user = models.ForeignKey("auth.User", on_delete=models.PROTECT, related_name="+")
    queue = AsciiField(max_length=32)
    reason = AsciiField(max_length=12)
    code = AsciiField(max_length=48)
    seen_at_ms = models.BigIntegerField()

    class Meta:
        db_table = "presences"
        constraints = [models.UniqueConstraint(fields=["queue", "reason", "code", "user"], name="presences_key")]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.queue} {self.reason} {self.code}"
