"""Events that no person made: they follow from time, results and progress, and the programs write them."""

from queue_app.store.chain import Event


def event(action: str, plan_id: int, at_ms: int, **detail: object) -> Event:
    """An audit event of the program about a redrive; details are ints, str, bool or None."""
    return Event(
        at_ms=at_ms, action=action, target=f"plan:{plan_id}", name="redriver", source="redriver", detail=dict(detail)
    )


def queue_event(action: str, queue: str, at_ms: int, **detail: object) -> Event:
    """An audit event of a worker about its queue; details are ints, str, bool or None."""
    return Event(
        at_ms=at_ms, action=action, target=f"queue:{queue}", name="worker", source="worker", detail=dict(detail)
    )
