"""What stands between a queue and its receiver: the delivery rate of all workers together, and the breaker.

The engine asks here inside its transactions: before it hands out, after it has handed out, and when attempts have ended.
"""

from collections.abc import Sequence

from queue_app.policy.attempts import Lease, Result
from queue_app.policy.queues import QueuePolicy


def granted(policy: QueuePolicy, now_ms: int, limit: int) -> int:  # noqa: ARG001
    """How many of `limit` jobs may be handed out now, from 0 on."""
    return limit


def took(policy: QueuePolicy, leases: Sequence[Lease], now_ms: int) -> None:
    """These were handed out (at least one)."""


def ended(queue: str, ends: Sequence[tuple[Result, str]], now_ms: int) -> None:
    """These attempts of one queue have ended, each with the job's new state, in the order in which they were told."""
