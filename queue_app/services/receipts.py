"""What a person gets back for a change of a redrive: the same for the first submit and for every later one."""

from dataclasses import dataclass

from queue_app.policy.approvals import Grant


@dataclass(frozen=True, slots=True)
class Receipt:
    """`plan` is in `state` since `move` at `at_ms` by `by`. `first`: this very call made it; else somebody was faster.
    `grant`: of a decision, what it says (`policy.approvals.recorded_sentences` puts it into words)."""

    plan: int
    state: str
    move: str
    first: bool
    by: str
    at_ms: int
    note: str = ""
    round: int = 0
    grant: Grant | None = None
