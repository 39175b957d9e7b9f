"""Which delivered orders may be removed, and how much at once: the rule of `queues.done_kept_ms` (null keeps for ever)."""

from collections.abc import Mapping
from dataclasses import dataclass

from queue_app.policy.canonical import canonical_json

BITE = (25, 500)  # orders removed in one transaction; a body may be 16 KiB, so 500 are 8 MB at most
BITE_MS = 15  # what one transaction aims at, so that the write lock is held 50 ms at p99
LOOK = 5_000  # orders looked at for one bite, removable or not: a read must be short, too
MIN_KEPT_MS = 60_000
"""However short a queue keeps its done orders: an acceptance that began before the end of one must not outlive it."""


@dataclass(frozen=True, slots=True)
class DoneJob:
    """A delivered order as it is archived and buried; instants in ms, `payload` is its stored canonical text."""

    id: str
    seq: int
    queue: str
    order_key: str
    quantity: int
    payload: str
    attempts: int
    token: int
    created_at_ms: int
    done_at_ms: int
    redriven: int
    batch: int | None


def done_before(kept_ms: Mapping[str, int | None], now_ms: int) -> dict[str, int]:
    """Queue -> the instant before which its done orders may go; a queue that keeps them for ever is not in it."""
    return {queue: now_ms - max(kept, MIN_KEPT_MS) for queue, kept in kept_ms.items() if kept is not None}


def next_bite(size: int, held_ms: int) -> int:
    """The size of the next bite, so that the lock is held about BITE_MS: at most doubled, within BITE."""
    wanted = size * 2 if held_ms <= BITE_MS // 2 else size * BITE_MS // held_ms
    return max(BITE[0], min(BITE[1], wanted))


def archive_line(job: DoneJob) -> str:
    """One line of the archive, with its line end. The body stands in it whole: the archive is its owner's own file."""
    body = '"payload":' + job.payload  # as it is stored: reading and writing it again could change its numbers
    rest = canonical_json(
        {
            "id": job.id,
            "seq": job.seq,
            "queue": job.queue,
            "order_key": job.order_key,
            "quantity": job.quantity,
            "attempts": job.attempts,
            "token": job.token,
            "created_at_ms": job.created_at_ms,
            "done_at_ms": job.done_at_ms,
            "redriven": job.redriven,
            "batch": job.batch,
        }
    )
    return f"{rest[:-1]},{body}}}\n"
