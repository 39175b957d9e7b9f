"""What a worker holds and what it says: the lease of one attempt, and its outcome (DESIGN sections 4 and 5)."""

from dataclasses import dataclass
from typing import Any

from queue_app.policy.bodies import parsed
from queue_app.policy.decisions import OUTCOMES
from queue_app.policy.orders import check_code, check_id


@dataclass(frozen=True, slots=True)
class Lease:
    """A job handed out to one worker: `token` proves ownership until `lease_until` (instant, ms) and beyond, if nobody
    took over. `payload_text` is the stored canonical JSON."""

    id: str
    queue: str
    quantity: int
    payload_text: str
    attempt: int
    token: int
    lease_until: int
    deadline: int

    @property
    def payload(self) -> dict[str, Any]:
        """What the order contains, as a new dict at each call."""
        return parsed(self.payload_text)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one attempt for `finish_many`: ok, retry or permanent, with a code and the receiver's wish."""

    id: str
    token: int
    outcome: str
    code: str = ""
    retry_after_ms: int | None = None


def check_proof(job_id: object, token: object) -> None:
    """ValueError unless both may be what a lease carries."""
    check_id(job_id)
    # `True` equals 1 in every database: without this look a careless caller would hold the first token of any job
    if type(token) is not int or not 0 <= token < 2**63:
        raise ValueError("The token must be a whole number as a lease carries it.")


def check_result(result: Result) -> Result:
    """The result, or ValueError: an id, token, outcome, code or wish that nothing could be done with."""
    check_proof(result.id, result.token)
    if result.outcome not in OUTCOMES:
        raise ValueError(f"The outcome {ascii(result.outcome)[:40]} is none of {', '.join(OUTCOMES)}.")
    check_code(result.code)
    if result.retry_after_ms is not None and type(result.retry_after_ms) is not int:
        raise ValueError("retry_after_ms must be a whole number of milliseconds or None.")
    return result
