"""A bad night: 40 orders died of one cause a while ago, 3 of another, and nobody has looked."""

from queue_app import clock
from queue_app.services import queue

HOUR_MS = 3_600_000


def bad_night() -> None:
    """Made by the engine, with a clock of the last hours."""
    now = clock.now_ms()
    queue.enqueue_many(
        [{"id": f"n-{n}", "quantity": n, "max_attempts": 1, "payload": {"item": "Izze"}} for n in range(1, 44)],
        now_ms=now - 3 * HOUR_MS,
    )
    for place, lease in enumerate(queue.claim("w-1", limit=43, now_ms=now - 2 * HOUR_MS)):
        outcome, code = ("permanent", "http_422") if place < 3 else ("retry", "http_503")
        queue.finish(lease.id, lease.token, outcome, code=code, now_ms=now - HOUR_MS + place)
    queue.enqueue("waiting", 1, now_ms=now)
