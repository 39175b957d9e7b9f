"""An old cause for the demo: orders that a receiver refused three days ago, made by the engine with a clock of that day."""

from queue_app import clock
from queue_app.services import queue

DAY_MS = 86_400_000
ORDERS = 14


def make_past() -> int:
    """Accept, hand out and quarantine a few orders in the past; the number of new ones (0 when they exist already)."""
    start = clock.now_ms() - 3 * DAY_MS
    fresh = 0
    for number in range(1, ORDERS + 1):
        at = start + number * 61_000
        answer = queue.enqueue(f"old-{number}", number, payload={"item_name": "Discontinued Snack"}, now_ms=at)
        if answer == "accepted":
            fresh += 1
            for lease in queue.claim("demo-past", now_ms=at + 1_000):
                queue.finish(lease.id, lease.token, "permanent", code="http_410", now_ms=at + 1_200)
    return fresh
