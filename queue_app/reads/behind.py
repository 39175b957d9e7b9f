"""What waits behind an order that keeps others of its key back (DESIGN section 4, ordered queues)."""

from dataclasses import dataclass

from django.db import connection

CAP = 1_000  # behind one order so many are counted: more is shown as "1,000+"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Behind:
    """`n` unfinished later orders of the same key, up to 1,000 (`exact` is False there), and the first ids of them."""

    n: int
    exact: bool
    first: tuple[str, ...]


def behind(job_id: str) -> Behind:
    """The orders that come after this one under the same key and are not delivered or in quarantine. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.id FROM jobs AS e JOIN jobs AS l ON l.queue = e.queue AND l.order_key = e.order_key "
            "AND NOT (l.order_key = '') AND l.seq > e.seq AND l.state IN ('pending', 'leased') WHERE e.id = %s "
            "ORDER BY l.seq LIMIT %s",
            [job_id, CAP + 1],
        )
        ids = [row[0] for row in cursor.fetchall()]
    return Behind(min(len(ids), CAP), len(ids) <= CAP, tuple(ids[:SHOWN]))
