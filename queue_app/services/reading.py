"""Reading a page is a right like any other: asked here, and its refusal recorded (DESIGN section 9)."""

from queue_app.services.asking import Somebody, allowed
from queue_app.services.people import Actor

ONCE_IN_MS = 3_600_000  # of the same refused look: an open page asks every few seconds


def reader(
    user: Somebody, page: str, *, right: str = "read", channel: str = "console", proof: str = "session"
) -> Actor:
    """The person who reads `page`, named as in the urlconf. Raises NotAllowed (recorded once an hour for page and right)."""
    return allowed(user, right, f"page:{page}", channel=channel, proof=proof, once_in_ms=ONCE_IN_MS)
