"""Events that no person made: they follow from time, results and progress, and the redriver writes them."""

from queue_app.store.chain import Event


def event(action: str, plan_id: int, at_ms: int, **detail: object) -> Event:
    """An audit event of the program about a redrive; details are ints, str, bool or None."""
    return Event(
        at_ms=at_ms, action=action, target=f"plan:{plan_id}", name="redriver", source="redriver", detail=dict(detail)
    )
