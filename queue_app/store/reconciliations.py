"""Keeping what a comparison with the receiver found (one row, written when it ends and never changed)."""

from queue_app.models import Reconciliation
from queue_app.policy.canonical import canonical_ascii


def insert(
    *,
    started_at_ms: int,
    ended_at_ms: int,
    actor: int | None,
    source: str,
    compared: int,
    differing: int,
    numbers: dict[str, dict[str, int]],
    examples: list[list[str]],
) -> int:
    """Write the row; returns its id. `examples` are (kind, id), at most 100."""
    row = Reconciliation.objects.create(
        started_at_ms=started_at_ms,
        ended_at_ms=ended_at_ms,
        actor_id=actor,
        source=source,
        compared=compared,
        differing=differing,
        numbers=canonical_ascii(numbers),
        examples=canonical_ascii(examples),
    )
    return int(row.pk)
