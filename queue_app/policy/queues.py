"""The policy of a queue as a plain value (DESIGN section 4, "Defaults of a queue")."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Durations in ms; `wait_budget_ms` and `max_unfinished` are None when the queue sets no such limit."""

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
