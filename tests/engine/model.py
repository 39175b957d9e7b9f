"""The engine once more, small and slow: a second opinion in plain Python for the state-machine test.

Written from DESIGN sections 3 and 4, not from the code: no database, no shared function.
"""

from dataclasses import dataclass, field
from typing import Any

LEASE_MS = 3_000
WAIT_BASE_MS, WAIT_CAP_MS, WAIT_BUDGET_MS = 1_000, 2_500, 4_000
BUDGET_MS = 20_000
RETRY_AFTER_CAP_MS = 3_600_000


@dataclass
class ModelJob:
    """A job as the contract describes it; `failures` by token: (attempt, outcome, code, worker)."""

    id: str
    queue: str
    order_key: str
    quantity: int
    max_attempts: int
    available_at: int
    deadline: int
    seq: int
    state: str = "pending"
    reason: str = ""
    code: str = ""
    attempts: int = 0
    token: int = 0
    owner: str | None = None
    lease_until: int | None = None
    waited_ms: int = 0
    redriven: int = 0
    failures: dict[int, tuple[int, str, str, str]] = field(default_factory=dict)
    redrives: list[dict[str, Any]] = field(default_factory=list)
    unblocked_at: set[int] = field(default_factory=set)

    def fail(self, token: int, outcome: str, code: str = "", worker: str = "") -> bool:
        """One row per token at most."""
        if token in self.failures:
            return False
        self.failures[token] = (self.attempts, outcome, code, worker)
        return True

    def end(self, state: str, reason: str = "", code: str = "") -> None:
        """Done or dead; the first end after a redrive is that redrive's outcome."""
        self.state, self.reason, self.code = state, reason, code
        self.owner = self.lease_until = None
        if self.redrives and self.redrives[-1]["outcome"] is None:
            last = self.redrives[-1]
            same = (reason, code) == last["was"]
            last["outcome"] = "done" if state == "done" else "dead_same" if same else "dead_other"


class Model:
    """All jobs and the rules."""

    def __init__(self, burials: int) -> None:
        self.jobs: dict[str, ModelJob] = {}
        self.paused: set[str] = set()
        self.late: set[tuple[str, int]] = set()
        self._burials = burials

    def enqueue(
        self, job_id: str, quantity: int, queue: str, key: str, tries: int, deadline: int | None, now: int
    ) -> str:
        """accepted, duplicate or conflict."""
        known = self.jobs.get(job_id)
        if known is not None:
            same = (known.queue, known.quantity, known.order_key) == (queue, quantity, key)
            return "duplicate" if same else "conflict"
        until = now + BUDGET_MS if deadline is None else deadline
        self.jobs[job_id] = ModelJob(job_id, queue, key, quantity, tries, now, until, len(self.jobs))
        return "accepted"

    def _blocked(self, job: ModelJob) -> bool:
        if job.queue != "tables" or not job.order_key:
            return False
        return any(
            other.queue == job.queue and other.order_key == job.order_key and other.seq < job.seq
            and other.state != "done" and not (other.state == "dead" and other.token in other.unblocked_at)
            for other in self.jobs.values()
        )  # fmt: skip

    def claim(self, owner: str, queue: str, limit: int, lease_ms: int, now: int) -> list[tuple[str, int, int, int]]:
        """Handed out: (id, attempt, token, lease_until)."""
        if queue in self.paused:
            return []
        due = [
            job for job in self.jobs.values() if job.queue == queue and not self._blocked(job) and (
                (job.state == "pending" and job.available_at <= now)
                or (job.state == "leased" and job.available_at <= now and (job.lease_until or 0) <= now)
            )
        ]  # fmt: skip
        taken: list[tuple[str, int, int, int]] = []
        buried = 0
        for job in sorted(due, key=lambda job: (job.available_at, job.seq)):
            if len(taken) == limit:
                break
            exhausted, late = job.attempts >= job.max_attempts, job.deadline <= now
            if (exhausted or late) and buried == self._burials:
                continue
            lost = job.state == "leased" and job.fail(job.token, "lease_expired", "lease_expired", job.owner or "")
            if exhausted or late:
                buried += 1
                code = "lease_expired" if lost else job.failures[max(job.failures)][2] if job.failures else ""
                if job.state == "pending":
                    job.fail(job.token + 1, "deadline_passed")
                job.token += 1
                job.end("dead", "exhausted" if exhausted else "deadline", code)
                continue
            job.state, job.owner, job.lease_until = "leased", owner, now + lease_ms
            job.attempts += 1
            job.token += 1
            taken.append((job.id, job.attempts, job.token, now + lease_ms))
        return taken

    def holds(self, job_id: str, token: int) -> bool:
        """Whether the token owns the job."""
        job = self.jobs.get(job_id)
        return job is not None and job.state == "leased" and job.token == token

    def finish(self, job_id: str, token: int, outcome: str, code: str, retry_after: int | None, now: int) -> bool:
        """False for a token that does not own the job."""
        if not self.holds(job_id, token):
            if job_id in self.jobs and token < self.jobs[job_id].token:
                self.late.add((job_id, token))
            return False
        job = self.jobs[job_id]
        if outcome != "ok":
            job.fail(token, outcome, code, job.owner or "")
        if outcome == "ok":
            job.end("done")
        elif outcome == "permanent":
            job.end("dead", "permanent", code)
        else:
            self._retry(job, code, retry_after, now)
        return True

    def _retry(self, job: ModelJob, code: str, retry_after: int | None, now: int) -> None:
        planned = min(WAIT_BASE_MS * 2 ** (job.attempts - 1), WAIT_CAP_MS)
        wait = max(planned, min(max(retry_after or 0, 0), RETRY_AFTER_CAP_MS))
        if job.attempts >= job.max_attempts:
            job.end("dead", "exhausted", code)
        elif job.waited_ms + wait > WAIT_BUDGET_MS:
            job.end("dead", "exhausted", "wait_budget")
        elif now + wait >= job.deadline:
            job.end("dead", "deadline", code)
        else:
            job.state, job.available_at, job.waited_ms = "pending", now + wait, job.waited_ms + wait
            job.owner = job.lease_until = None

    def renew(self, job_id: str, token: int, lease_ms: int, now: int) -> bool:
        """Later, never sooner, never more than one lease past the deadline."""
        if not self.holds(job_id, token):
            return False
        job = self.jobs[job_id]
        job.lease_until = max(job.lease_until or 0, min(now, job.deadline) + lease_ms)
        return True

    def release(self, job_id: str, token: int, now: int) -> bool:
        """Back at once, the attempt not spent."""
        if not self.holds(job_id, token):
            return False
        job = self.jobs[job_id]
        job.state, job.available_at, job.attempts = "pending", now, job.attempts - 1
        job.owner = job.lease_until = None
        return True

    def record_unknown(self, job_id: str, token: int, code: str) -> bool:
        """Evidence only."""
        job = self.jobs.get(job_id)
        return job is not None and self.holds(job_id, token) and job.fail(token, "unknown", code, job.owner or "")

    def redrive(self, job_id: str, tries: int | None, deadline: int | None, now: int) -> bool:
        """False unless dead."""
        job = self.jobs[job_id]
        if job.state != "dead":
            return False
        job.redrives.append({"token": job.token, "was": (job.reason, job.code), "outcome": None})
        job.state, job.reason, job.code, job.attempts, job.waited_ms = "pending", "", "", 0, 0
        job.max_attempts = tries or job.max_attempts
        job.available_at, job.deadline = now, now + BUDGET_MS if deadline is None else deadline
        job.redriven += 1
        return True
