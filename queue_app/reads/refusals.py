"""What somebody was refused lately."""

from queue_app.models import AuditEvent


def refused_since(actor_id: int, tried: str, target: str, since_ms: int) -> bool:
    """Whether the record tells, later than the instant, that this person was refused exactly this."""
    found = AuditEvent.objects.filter(action="refused", target=target, actor_id=actor_id, at_ms__gt=since_ms)
    return found.filter(detail__contains=f'"tried":"{tried}"').exists()
