"""Handing out: who gets which job at which instant, and who does not (DESIGN section 4, "claim")."""

import pytest

from queue_app.models import Job, Queue
from queue_app.policy.errors import InvalidOrder
from queue_app.services import queue
from queue_app.services.leases import record_unknown
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, declare, failures, put, row, snapshot, stand, take

pytestmark = pytest.mark.django_db


def test_a_claim_hands_out_the_job_with_a_new_token_and_one_attempt_spent():
    put("a", payload={"item": "chips"}, deadline_ms=T + 99_000)
    lease = take("w1", at=T + 5)
    assert (lease.id, lease.queue, lease.quantity, lease.payload) == ("a", "snacks", 7, {"item": "chips"})
    assert (lease.attempt, lease.token, lease.lease_until, lease.deadline) == (1, 1, T + 5 + LEASE, T + 99_000)
    stored = row("a")
    assert (stored["state"], stored["owner"], stored["lease_until"]) == ("leased", "w1", T + 5 + LEASE)
    assert (stored["attempts"], stored["token"], stored["changed_at_ms"]) == (1, 1, T + 5)
    assert failures("a") == []
    check_all(["a"])


@pytest.mark.parametrize(("asked", "until"), [(None, T + 5_000), (1, T + 1), (60_000, T + 60_000)])
def test_the_lease_is_the_queues_unless_the_worker_names_its_own(asked, until):
    declare(lease_ms=5_000)
    put("a")
    assert take(lease_ms=asked).lease_until == row("a")["lease_until"] == until


def test_the_clock_decides_when_no_instant_is_given(clock):
    queue.enqueue("a", 1)
    (lease,) = queue.claim("w1")
    assert lease.lease_until == clock.now + LEASE
    clock.advance(LEASE - 1)
    assert queue.claim("w2") == []
    clock.advance(1)
    assert [again.token for again in queue.claim("w2")] == [2]


@pytest.mark.parametrize(("at", "gets"), [(T + 99, []), (T + 100, ["a"]), (T + 101, ["a"])])
def test_a_pending_job_is_due_from_its_instant_on(at, gets):
    put("a")
    Job.objects.update(available_at=T + 100)
    assert [lease.id for lease in queue.claim("w1", now_ms=at)] == gets


@pytest.mark.parametrize(("at", "taken"), [(T + LEASE - 1, False), (T + LEASE, True), (T + LEASE + 1, True)])
def test_the_boundary_of_a_lease_belongs_to_the_taker(at, taken):
    put("a")
    take("w1")
    again = queue.claim("w2", now_ms=at)
    assert [(lease.token, lease.attempt) for lease in again] == ([(2, 2)] if taken else [])
    assert row("a")["owner"] == ("w2" if taken else "w1")


def test_taking_over_writes_that_the_earlier_token_was_lost():
    put("a")
    take("w1")
    take("w2", at=T + LEASE)
    assert failures("a") == [(1, 1, "lease_expired", "lease_expired", "w1")]
    assert stand("a") == ("leased", "", "", 2, 2)
    check_all(["a"])


def test_taking_over_adds_nothing_to_a_token_that_has_told_something():
    put("a")
    lease = take("w1")
    assert record_unknown(lease.id, lease.token, "bad_ack", now_ms=T)
    take("w2", at=T + LEASE)
    assert failures("a") == [(1, 1, "unknown", "bad_ack", "w1")]


def test_due_jobs_come_by_instant_then_by_acceptance():
    put("late", "c", "a", "b")
    Job.objects.filter(pk="late").update(available_at=T + 1)
    Job.objects.filter(pk="b").update(available_at=T - 1)
    assert [lease.id for lease in queue.claim("w1", limit=9, now_ms=T + 1)] == ["b", "c", "a", "late"]


def test_an_expired_lease_keeps_its_place_among_the_pending():
    put("a", "b")
    take("w1")
    assert [lease.id for lease in queue.claim("w2", limit=2, now_ms=T + LEASE)] == ["a", "b"]


def test_a_limit_takes_no_more_and_the_next_claim_goes_on():
    put("a", "b", "c")
    assert [lease.id for lease in queue.claim("w1", limit=2, now_ms=T)] == ["a", "b"]
    assert [lease.id for lease in queue.claim("w2", limit=2, now_ms=T)] == ["c"]
    assert queue.claim("w3", limit=2, now_ms=T) == []


def test_queues_do_not_touch_each_other():
    declare("drinks")
    put("s")
    put("d", queue="drinks")
    assert take(queue="drinks").id == "d"
    assert queue.claim("w1", queue="drinks", now_ms=T) == []
    assert take().id == "s"


@pytest.mark.parametrize("state", ["done", "dead"])
def test_an_ended_job_is_never_handed_out(state):
    put("a")
    queue.finish("a", take().token, "ok" if state == "done" else "permanent", now_ms=T)
    assert queue.claim("w1", now_ms=T + 10**9) == []


def test_a_paused_queue_hands_out_and_buries_nothing_until_it_goes_on():
    put("a")
    put("late", deadline_ms=T)
    Queue.objects.update(paused=True)
    before = snapshot()
    assert queue.claim("w1", limit=9, now_ms=T) == []
    assert snapshot() == before
    Queue.objects.update(paused=False)
    assert [lease.id for lease in queue.claim("w1", limit=9, now_ms=T)] == ["a"]
    assert stand("late")[0] == "dead"


def test_a_pause_lets_the_running_attempts_end():
    put("a")
    lease = take()
    Queue.objects.update(paused=True)
    assert queue.renew("a", lease.token, now_ms=T + 5)
    assert queue.finish("a", lease.token, "ok", now_ms=T + 5)


BAD_CLAIMS = [
    ({"owner": ""}, ValueError), ({"owner": "a b"}, ValueError), ({"owner": None}, ValueError),
    ({"owner": "w" * 129}, ValueError), ({"owner": "w\n"}, ValueError), ({"owner": 5}, ValueError),
    ({"limit": 0}, ValueError), ({"limit": -1}, ValueError), ({"limit": True}, ValueError),
    ({"limit": 1.0}, ValueError), ({"limit": 1_001}, ValueError), ({"limit": "1"}, ValueError),
    ({"lease_ms": 0}, ValueError), ({"lease_ms": -1}, ValueError), ({"lease_ms": True}, ValueError),
    ({"lease_ms": 86_400_001}, ValueError), ({"lease_ms": 10**400}, ValueError), ({"now_ms": -1}, ValueError),
    ({"now_ms": 1.5}, ValueError), ({"now_ms": 2**63}, ValueError), ({"queue": "none"}, InvalidOrder),
    ({"queue": ""}, InvalidOrder), ({"queue": "a\0"}, InvalidOrder), ({"queue": "\ud800"}, InvalidOrder),
    ({"queue": None}, InvalidOrder), ({"queue": ["snacks"]}, InvalidOrder),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "error"), BAD_CLAIMS, ids=lambda value: "" if value is None else ascii(value)[:30])
def test_a_claim_that_cannot_be_meant_is_refused_and_takes_nothing(bad, error):
    put("a")
    before = snapshot()
    arguments = {"owner": "w1", "now_ms": T, **bad}
    with pytest.raises(error, match=r"\.$"):
        queue.claim(arguments.pop("owner"), **arguments)
    with pytest.raises(error):
        queue.finish_and_claim([], **{"owner": "w1", "now_ms": T, **bad})
    assert snapshot() == before
