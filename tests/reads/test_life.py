"""One order's life as its page tells it, after real moves."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.reads.life import Life, Next, life
from queue_app.services import queue
from queue_app.services.leases import record_unknown
from tests.conftest import START_MS, Clock
from tests.reads.stories import accept, declare, deliver, die, redrive


def told(clock: Clock, job_id: str = "a") -> Life:
    found = life(job_id, clock.now)
    assert found is not None
    return found


def kinds(found: Life) -> list[str]:
    return [step.kind for step in found.steps]


def take(worker: str = "worker-1") -> queue.Lease:
    (lease,) = queue.claim(worker)
    return lease


def test_nobody_knows_an_order_that_never_came(clock: Clock, db: None) -> None:
    assert life("nobody", clock.now) is None


def test_a_new_order_waits_for_a_worker(clock: Clock, db: None) -> None:
    accept(["a"])
    found = told(clock)
    assert kinds(found) == ["accepted"]
    assert found.next == Next("attempt", START_MS)
    assert (found.effect_possible, found.held_by, found.looked, found.blocks) == (False, None, False, 0)


def test_a_whole_life_has_token_and_attempt_at_every_step(clock: Clock, operator: User, team_lead: User) -> None:
    accept(["a"])
    lease = take()
    assert told(clock).next == Next("lease_end", START_MS + 30_000)
    assert [(step.kind, step.token, step.attempt, step.worker) for step in told(clock).steps][1:] == [
        ("attempt", 1, 1, "worker-1")
    ]
    clock.advance(1_000)
    queue.finish("a", lease.token, "retry", code="http_503")
    assert told(clock).next == Next("attempt", clock.now + 1_000)
    clock.advance(5_000)
    lost = take()
    clock.advance(30_000)
    assert told(clock).next.kind == "overdue"
    taken = take("worker-2")
    clock.advance(10)
    assert not queue.finish("a", lost.token, "ok")
    clock.advance(10)
    queue.finish("a", taken.token, "permanent", code="http_422")
    died = clock.now
    assert told(clock).next == Next("redrive_only")
    clock.advance(60_000)
    queue.redrive("a", "INC-7", approved_by=team_lead, requested_by=operator, batch=12)
    clock.advance(100)
    deliver("a")
    found = told(clock)
    assert [(step.kind, step.token, step.attempt, step.code, step.worker) for step in found.steps] == [
        ("accepted", None, None, "", ""),
        ("retry", 1, 1, "http_503", "worker-1"),
        ("lease_expired", 2, 2, "lease_expired", "worker-1"),
        ("late_finish", 2, None, "", ""),
        ("permanent", 3, 3, "http_422", "worker-2"),
        ("quarantined", 3, None, "http_422", ""),
        ("redriven", 3, None, "http_422", ""),
        ("delivered", 4, 1, "", ""),
    ]
    quarantined, redriven = found.steps[5], found.steps[6]
    assert (quarantined.at_ms, quarantined.reason) == (died, "permanent")
    assert (redriven.note, redriven.by, redriven.approved_by, redriven.batch) == ("INC-7", "oda", "tom", 12)
    assert (redriven.outcome, redriven.solo, found.next) == ("done", False, Next("nothing"))
    assert found.effect_possible  # the lost lease may have had its effect


def test_an_answer_that_proves_nothing_stands_with_the_worker(clock: Clock, db: None) -> None:
    accept(["a"])
    assert record_unknown("a", take().token, "bad_json")
    assert kinds(told(clock)) == ["accepted", "unknown", "attempt"]
    assert told(clock).next.kind == "lease_end"


def test_two_deaths_are_two_stays_with_their_own_outcome(clock: Clock, team_lead: User) -> None:
    die(clock, ["a"], code="http_422")
    redrive("a", team_lead)
    clock.advance(1)
    queue.finish("a", take().token, "permanent", code="http_410")
    found = told(clock)
    stays = [(step.code, step.at_ms) for step in found.steps if step.kind == "quarantined"]
    assert stays == [("http_422", START_MS), ("http_410", clock.now)]
    assert [step.outcome for step in found.steps if step.kind == "redriven"] == ["dead_other"]
    redrive("a", team_lead)
    assert [step.outcome for step in told(clock).steps if step.kind == "redriven"] == ["dead_other", "waiting"]


def test_too_late_and_paused_are_told_before_they_happen(clock: Clock, db: None) -> None:
    queue.enqueue("a", 1, deadline_ms=clock.now + 5)
    clock.advance(5)
    assert told(clock).next.kind == "too_late"
    declare("snacks", paused=True)
    assert told(clock).next == Next("paused")
    declare("snacks", paused=False)
    assert queue.claim("worker-1") == []
    assert kinds(told(clock)) == ["accepted", "deadline_passed", "quarantined"]


def test_an_ordered_queue_says_who_waits_for_whom(clock: Clock, db: None) -> None:
    declare("letters", ordering="ordered")
    for job_id in ("a", "b", "c"):
        queue.enqueue(job_id, 1, queue="letters", order_key="k")
    queue.enqueue("other", 1, queue="letters", order_key="m")
    (lease, _) = queue.claim("worker-1", queue="letters", limit=2)
    queue.finish("a", lease.token, "permanent", code="http_422")
    assert told(clock, "c").next == Next("blocked", job_id="a")
    assert (told(clock, "a").blocks, told(clock, "b").blocks, told(clock, "other").blocks) == (2, 1, 0)


@pytest.mark.parametrize("state", ["dead", "done", "pending"])
def test_the_number_of_queries_is_fixed(clock: Clock, team_lead: User, state: str) -> None:
    die(clock, ["a"])
    for _ in range(6):
        redrive("a", team_lead)
        clock.advance(1)
        queue.finish("a", take().token, "permanent", code="http_422")
    if state != "dead":
        redrive("a", team_lead)
    if state == "done":
        deliver("a")
    with CaptureQueriesContext(connection) as asked:
        assert told(clock).state == state
    assert len(asked) <= 13
