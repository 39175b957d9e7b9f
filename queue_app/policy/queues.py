"""The policy of a queue as a plain value (DESIGN section 4, "Defaults of a queue")."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Durations in ms, rates in thousandths of a job per second. None where the queue sets no such limit: `wait_budget_ms`,
    `max_unfinished`, `delivery_rate_mj`, `done_kept_ms` (done orders stay for ever). `breaker_after` 0: it never opens.
    """

    name: str
    ordering: str = "independent"
    max_attempts: int = 3
    budget_ms: int = 86_400_000
    wait_base_ms: int = 1_000
    wait_cap_ms: int = 300_000
    wait_budget_ms: int | None = None
    lease_ms: int = 30_000
    redrive_horizon_ms: int = 2_592_000_000
    rate_mj: int = 5_000
    max_unfinished: int | None = None
    accepting: bool = True
    paused: bool = False
    delivery_rate_mj: int | None = None
    breaker_after: int = 20
    breaker_wait_ms: int = 30_000
    done_kept_ms: int | None = None
    receiver_keeps_ms: int = 7_776_000_000
