"""Keeping a job longer, and giving one back unstarted (DESIGN section 4, "renew" and "release")."""

import pytest

from queue_app.models import Job
from queue_app.services import queue
from queue_app.services.leases import record_unknown
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, declare, failures, put, row, snapshot, stand, take

pytestmark = pytest.mark.django_db


def test_renewing_extends_the_lease_and_nothing_else():
    put("a")
    take()
    before = row("a")
    assert queue.renew("a", 1, now_ms=T + 10_000) is True
    assert row("a") == {**before, "lease_until": T + 10_000 + LEASE}
    assert queue.claim("w2", now_ms=T + LEASE) == []
    assert [lease.token for lease in queue.claim("w2", now_ms=T + 10_000 + LEASE)] == [2]
    check_all(["a"])


@pytest.mark.parametrize(("lease_ms", "until"), [(None, T + 5_000), (9_000, T + 9_000), (1, T + 5_000)])
def test_a_renewal_names_its_own_length_or_takes_the_queues_and_never_shortens(lease_ms, until):
    declare(lease_ms=5_000)
    put("a")
    take()
    assert queue.renew("a", 1, lease_ms=lease_ms, now_ms=T)
    assert row("a")["lease_until"] == until


@pytest.mark.parametrize("at", [T, T + 5, T + 40_000, T + 10**9])
def test_a_lease_never_lasts_past_the_deadline_by_more_than_one_lease(at):
    put("a", deadline_ms=T + 40_000)
    take()
    assert queue.renew("a", 1, now_ms=at)
    assert row("a")["lease_until"] == min(at, T + 40_000) + LEASE


def test_an_expired_lease_that_nobody_took_over_can_be_renewed():
    put("a")
    take()
    assert queue.renew("a", 1, now_ms=T + LEASE + 7)
    assert queue.claim("w2", now_ms=T + LEASE + 7) == []


def test_a_clock_that_went_back_does_not_shorten_a_lease():
    put("a")
    take()
    assert queue.renew("a", 1, now_ms=T - 3_600_000)
    assert row("a")["lease_until"] == T + LEASE


def test_a_job_given_back_is_available_at_once_with_its_attempt_and_its_token():
    put("a", max_attempts=1)
    take("w1")
    assert queue.release("a", 1, now_ms=T + 5) is True
    stored = row("a")
    assert stand("a") == ("pending", "", "", 0, 1)
    assert (stored["available_at"], stored["changed_at_ms"]) == (T + 5, T + 5)
    assert (stored["owner"], stored["lease_until"]) == (None, None)
    assert failures("a") == []
    check_all(["a"])
    assert (take("w2", at=T + 5).token, stand("a")[3]) == (2, 1)


def test_a_job_given_back_ten_times_still_has_all_its_attempts():
    put("a")
    for turn in range(10):
        assert take().token == turn + 1
        assert queue.release("a", turn + 1, now_ms=T)
    assert stand("a") == ("pending", "", "", 0, 10)
    assert take().attempt == 1


def test_giving_back_a_second_try_spends_only_the_first():
    put("a")
    queue.finish("a", take().token, "retry", now_ms=T)
    assert queue.release("a", take(at=T + 1_000).token, now_ms=T + 1_000)
    assert stand("a") == ("pending", "", "", 1, 2)


# --- losers ---------------------------------------------------------------------------------------------------------

MOVES = {
    "renew": lambda job_id, token: queue.renew(job_id, token, now_ms=T + LEASE),
    "release": lambda job_id, token: queue.release(job_id, token, now_ms=T + LEASE),
    "record_unknown": lambda job_id, token: record_unknown(job_id, token, "bad_ack", now_ms=T + LEASE),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("token", [0, 1, 3])
def test_another_token_moves_nothing(move, token):
    put("a")
    take("w1")
    take("w2", at=T + LEASE)
    before = snapshot()
    assert move("a", token) is False
    assert snapshot() == before


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("end", ["ok", "retry", "permanent", "release", "none"])
def test_what_is_not_leased_is_not_moved(move, end):
    put("a")
    if end != "none":
        take()
        assert queue.release("a", 1, now_ms=T) if end == "release" else queue.finish("a", 1, end, now_ms=T)
    before = snapshot()
    assert move("a", Job.objects.get(pk="a").token) is False
    assert move("unknown", 1) is False
    assert snapshot() == before


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize(
    ("job_id", "token"),
    [
        ("a", True),
        ("a", 1.0),
        ("a", "1"),
        ("a", None),
        ("a", -1),
        ("a", 2**63),
        ("", 1),
        ("\ud800", 1),
        ("a\0", 1),
        (None, 1),
    ],
)
def test_what_cannot_be_meant_is_a_value_error_before_any_query(move, job_id, token, django_assert_num_queries):
    put("a")
    take()
    with django_assert_num_queries(0), pytest.raises(ValueError, match=r"\.$"):
        move(job_id, token)


@pytest.mark.parametrize("span", [0, -1, True, 1.5, "9", 86_400_001, 10**400], ids=lambda span: str(type(span)))
def test_a_lease_of_impossible_length_is_refused(span):
    put("a")
    take()
    with pytest.raises(ValueError, match="lease_ms"):
        queue.renew("a", 1, lease_ms=span, now_ms=T)
    assert row("a")["lease_until"] == T + LEASE


# --- an answer that proves nothing -----------------------------------------------------------------------------------


def test_an_unknown_answer_is_written_at_once_and_the_job_stays_leased():
    put("a")
    take("w1")
    before = row("a")
    assert record_unknown("a", 1, "bad_ack", now_ms=T + 5) is True
    assert row("a") == before
    assert failures("a") == [(1, 1, "unknown", "bad_ack", "w1")]
    check_all(["a"])


def test_a_token_tells_its_first_story_only():
    put("a")
    take("w1")
    assert record_unknown("a", 1, "bad_ack", now_ms=T)
    assert not record_unknown("a", 1, "exception", now_ms=T)
    assert queue.finish("a", 1, "retry", code="http_503", now_ms=T)
    assert failures("a") == [(1, 1, "unknown", "bad_ack", "w1")]
    check_all(["a"])


@pytest.mark.parametrize("code", [None, "Bad", "x" * 49, "a b", "\ud800", 5])
def test_a_code_that_cannot_be_stored_is_a_value_error(code):
    put("a")
    take()
    with pytest.raises(ValueError, match="code"):
        record_unknown("a", 1, code, now_ms=T)
    assert failures("a") == []
