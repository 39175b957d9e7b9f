"""A due job without budget is quarantined, not handed out (DESIGN section 4, "claim buries")."""

import pytest

from queue_app.models import Failure, Job
from queue_app.services import queue
from queue_app.services.handing_out import BURIALS_PER_CALL
from queue_app.services.leases import record_unknown
from tests.engine.invariants import check_all
from tests.engine.rows import DAY, LEASE, T, declare, failures, put, row, stand, take

pytestmark = pytest.mark.django_db


def test_a_job_whose_last_attempt_never_answered_is_exhausted():
    put("a", max_attempts=1)
    take("w1")
    assert queue.claim("w2", now_ms=T + LEASE) == []
    assert stand("a") == ("dead", "exhausted", "lease_expired", 1, 2)
    assert failures("a") == [(1, 1, "lease_expired", "lease_expired", "w1")]
    stored = row("a")
    assert (stored["owner"], stored["lease_until"], stored["changed_at_ms"]) == (None, None, T + LEASE)
    check_all(["a"])


def test_a_burial_after_an_unknown_answer_keeps_that_answers_code_and_adds_no_row():
    put("a", max_attempts=1)
    assert record_unknown("a", take("w1").token, "wrong_id", now_ms=T)
    assert queue.claim("w2", now_ms=T + LEASE) == []
    assert stand("a") == ("dead", "exhausted", "wrong_id", 1, 2)
    assert failures("a") == [(1, 1, "unknown", "wrong_id", "w1")]
    check_all(["a"])


@pytest.mark.parametrize(("at", "dead"), [(T + 499, False), (T + 500, True), (T + 501, True)])
def test_a_pending_job_is_too_late_at_its_deadline(at, dead):
    put("a", deadline_ms=T + 500)
    leases = queue.claim("w1", now_ms=at)
    if not dead:
        assert [lease.token for lease in leases] == [1]
        return
    assert leases == []
    assert stand("a") == ("dead", "deadline", "", 0, 1)
    assert failures("a") == [(1, 0, "deadline_passed", "", "")]
    check_all(["a"])


def test_a_retrying_job_that_is_too_late_keeps_the_code_of_its_last_failure():
    put("a", deadline_ms=T + 5_000)
    queue.finish("a", take().token, "retry", code="http_503", now_ms=T)
    assert queue.claim("w1", now_ms=T + 5_000) == []
    assert stand("a") == ("dead", "deadline", "http_503", 1, 2)
    assert failures("a") == [(1, 1, "retry", "http_503", "w1"), (2, 1, "deadline_passed", "", "")]
    check_all(["a"])


def test_an_expired_lease_with_attempts_left_dies_of_its_deadline():
    put("a", deadline_ms=T + 10)
    take("w1")
    assert queue.claim("w2", now_ms=T + LEASE) == []
    assert stand("a") == ("dead", "deadline", "lease_expired", 1, 2)
    assert failures("a") == [(1, 1, "lease_expired", "lease_expired", "w1")]
    check_all(["a"])


def test_exhausted_wins_over_the_deadline():
    put("a", max_attempts=1, deadline_ms=T + 10)
    take("w1")
    assert queue.claim("w2", now_ms=T + DAY) == []
    assert stand("a")[1] == "exhausted"


def test_a_lease_that_has_not_run_out_is_not_buried_however_late_it_is():
    put("a", max_attempts=1, deadline_ms=T + 10)
    lease = take("w1")
    assert queue.claim("w2", now_ms=T + LEASE - 1) == []
    assert stand("a") == ("leased", "", "", 1, 1)
    assert queue.finish("a", lease.token, "ok", now_ms=T + LEASE - 1)


def test_a_poison_order_that_kills_its_workers_cannot_loop_for_ever_and_blocks_nobody():
    put("poison", "good")
    for turn in range(3):
        assert take(f"w{turn}", at=T + turn * LEASE).id == "poison"
    assert take("w4", at=T + 3 * LEASE).id == "good"
    assert stand("poison") == ("dead", "exhausted", "lease_expired", 3, 4)
    assert [failure[2] for failure in failures("poison")] == ["lease_expired"] * 3
    check_all(["poison", "good"])


def test_a_hundred_are_buried_in_a_call_and_it_still_hands_out():
    put(*(f"late{number}" for number in range(BURIALS_PER_CALL + 30)), deadline_ms=T)
    put("good", "good2")
    assert [lease.id for lease in queue.claim("w1", limit=2, now_ms=T)] == ["good", "good2"]
    assert Job.objects.filter(state="dead", reason="deadline").count() == BURIALS_PER_CALL
    assert Failure.objects.count() == BURIALS_PER_CALL
    assert queue.claim("w1", now_ms=T) == []
    assert Job.objects.filter(state="dead").count() == BURIALS_PER_CALL + 30
    check_all()


@pytest.mark.parametrize("limit", [1, 99, 100, 101, 150, 1_000])
def test_the_bound_holds_for_every_size_of_a_claim(limit):
    put(*(f"late{number}" for number in range(BURIALS_PER_CALL + 1)), deadline_ms=T)
    put("good")
    assert [lease.id for lease in queue.claim("w1", limit=limit, now_ms=T)] == ["good"]
    assert Job.objects.filter(state="dead").count() == BURIALS_PER_CALL


def test_the_oldest_are_buried_first():
    put(*(f"late{number:03}" for number in range(BURIALS_PER_CALL + 2)), deadline_ms=T)
    queue.claim("w1", now_ms=T)
    assert set(Job.objects.filter(state="pending").values_list("id", flat=True)) == {"late100", "late101"}


def test_a_buried_job_stays_in_quarantine_whatever_workers_do():
    put("a", deadline_ms=T)
    queue.claim("w1", now_ms=T)
    for at in (T, T + LEASE, T + 10 * DAY):
        assert queue.claim("w1", now_ms=at) == []
    assert not queue.finish("a", 1, "ok", now_ms=T)
    assert stand("a") == ("dead", "deadline", "", 0, 1)


def test_the_worker_whose_job_was_buried_comes_too_late():
    put("a", max_attempts=1)
    lease = take("w1")
    queue.claim("w2", now_ms=T + LEASE)
    assert not queue.finish("a", lease.token, "ok", now_ms=T + LEASE)
    assert not queue.renew("a", lease.token, now_ms=T + LEASE)
    assert not queue.release("a", lease.token, now_ms=T + LEASE)
    assert not record_unknown("a", lease.token, "bad_ack", now_ms=T + LEASE)
    assert stand("a") == ("dead", "exhausted", "lease_expired", 1, 2)


def test_other_queues_are_not_buried_along():
    declare("drinks")
    put("late", deadline_ms=T, queue="drinks")
    queue.claim("w1", now_ms=T)
    assert stand("late")[0] == "pending"
