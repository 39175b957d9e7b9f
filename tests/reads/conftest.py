"""A quarantine with a past, made by the services alone."""

import pytest
from django.contrib.auth.models import User

from queue_app.policy.windows import HOUR_MS
from queue_app.services import queue
from tests.conftest import Clock
from tests.reads.stories import accept, declare, die, exhaust, redrive


def _spend_all_tries(clock: Clock, job_id: str) -> None:
    for _ in range(3):
        (lease,) = [lease for lease in queue.claim("worker-1", limit=9) if lease.id == job_id]
        queue.finish(job_id, lease.token, "retry", code="http_500")
        clock.advance(10_000)


@pytest.fixture
def mixed(clock: Clock, team_lead: User) -> Clock:
    """Two queues, several causes over two hours, one order redriven and dead again, one redriven and being delivered."""
    declare("drinks")
    die(clock, [f"s{n}" for n in range(14)])
    die(clock, [f"d{n}" for n in range(6)], at="drinks")
    die(clock, ["s_1", "S1", "s1:x"], code="")
    clock.advance(HOUR_MS)
    accept(["e1", "e2"], at="drinks", max_attempts=1)
    exhaust("e1", at="drinks")
    exhaust("e2", at="drinks")
    clock.advance(70_000)
    redrive("s1", team_lead)
    redrive("s2", team_lead)
    _spend_all_tries(clock, "s1")
    clock.advance(5_000)
    return clock
