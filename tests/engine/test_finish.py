"""The end of an attempt, and everybody who may not end it (DESIGN section 4, "finish")."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import LateFinish, Tally
from queue_app.policy.decisions import RETRY_AFTER_CAP_MS
from queue_app.policy.errors import InvalidOrder
from queue_app.services import queue
from tests.engine.invariants import check_all
from tests.engine.rows import DAY, LEASE, T, declare, failures, put, row, snapshot, stand, take

pytestmark = pytest.mark.django_db
BODY = ("id", "seq", "queue", "order_key", "quantity", "payload", "created_at_ms", "max_attempts", "deadline")


def started(**more):
    """An order with a body worth keeping, and its first lease."""
    put("a", quantity=41, payload={"item": "guac"}, order_key="k", **more)
    return take("w1"), {name: row("a")[name] for name in BODY}


ENDS = [
    ("ok", "", ("done", "", "", 1, 1), []),
    ("permanent", "http_422", ("dead", "permanent", "http_422", 1, 1), [(1, 1, "permanent", "http_422", "w1")]),
    ("permanent", "", ("dead", "permanent", "", 1, 1), [(1, 1, "permanent", "", "w1")]),
    ("retry", "http_503", ("pending", "", "", 1, 1), [(1, 1, "retry", "http_503", "w1")]),
]


@pytest.mark.parametrize(("outcome", "code", "becomes", "rows"), ENDS)
def test_an_end_moves_the_job_once_and_keeps_its_body(outcome, code, becomes, rows):
    lease, body = started()
    assert queue.finish("a", lease.token, outcome, code=code, now_ms=T + 5) is True
    assert (stand("a"), failures("a")) == (becomes, rows)
    stored = row("a")
    assert (stored["owner"], stored["lease_until"], stored["changed_at_ms"]) == (None, None, T + 5)
    assert {name: stored[name] for name in BODY} == body
    check_all(["a"])
    before = snapshot()
    assert queue.finish("a", lease.token, "ok", now_ms=T + 6) is False
    assert snapshot() == before


def test_a_code_that_came_with_success_is_not_kept():
    lease, _ = started()
    assert queue.finish("a", lease.token, "ok", code="http_200", now_ms=T)
    assert stand("a") == ("done", "", "", 1, 1)


def test_the_waits_double_up_to_the_cap_and_the_last_attempt_is_the_end():
    declare(wait_base_ms=1_000, wait_cap_ms=3_000, max_attempts=4)
    put("a")
    at, waits = T, []
    for _ in range(3):
        assert queue.finish("a", take(at=at).token, "retry", code="http_500", now_ms=at)
        waits.append(row("a")["available_at"] - at)
        assert queue.claim("w1", now_ms=at + waits[-1] - 1) == []
        at += waits[-1]
    assert waits == [1_000, 2_000, 3_000]
    assert row("a")["waited_ms"] == 6_000
    assert queue.finish("a", take(at=at).token, "retry", code="http_500", now_ms=at)
    assert stand("a") == ("dead", "exhausted", "http_500", 4, 4)
    assert [failure[0] for failure in failures("a")] == [1, 2, 3, 4]
    check_all(["a"])


RETRY_AFTERS = [
    (None, 1_000), (0, 1_000), (-5, 1_000), (999, 1_000), (1_000, 1_000), (1_001, 1_001), (90_000, 90_000),
    (RETRY_AFTER_CAP_MS, RETRY_AFTER_CAP_MS), (RETRY_AFTER_CAP_MS + 1, RETRY_AFTER_CAP_MS), (10**400, RETRY_AFTER_CAP_MS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "wait"), RETRY_AFTERS, ids=lambda value: str(value)[:12] if value != 10**400 else "huge"
)
def test_the_receivers_wish_counts_when_longer_and_within_bounds(asked, wait):
    lease, _ = started()
    assert queue.finish("a", lease.token, "retry", retry_after_ms=asked, now_ms=T)
    assert row("a")["available_at"] == T + wait


@pytest.mark.parametrize(("budget", "state"), [(1_000, "pending"), (999, "dead"), (None, "pending"), (0, "dead")])
def test_waits_above_the_wait_budget_are_exhaustion(budget, state):
    declare(wait_budget_ms=budget)
    lease, _ = started()
    assert queue.finish("a", lease.token, "retry", code="http_503", now_ms=T)
    assert stand("a") == (("dead", "exhausted", "wait_budget", 1, 1) if state == "dead" else ("pending", "", "", 1, 1))
    assert failures("a") == [(1, 1, "retry", "http_503", "w1")]
    check_all(["a"])


def test_the_wait_budget_is_over_the_sum_of_all_waits():
    declare(wait_budget_ms=2_000, wait_cap_ms=1_000, max_attempts=9)
    put("a")
    for turn in range(3):
        at = T + turn * 1_000
        assert stand("a")[0] == "pending"  # two waits of a second are exactly within, the third is not
        queue.finish("a", take(at=at).token, "retry", code="http_503", now_ms=at)
    assert stand("a") == ("dead", "exhausted", "wait_budget", 3, 3)


@pytest.mark.parametrize(("deadline", "state"), [(T + 1_000, "dead"), (T + 1_001, "pending"), (T + 999, "dead")])
def test_a_next_try_at_or_after_the_deadline_is_too_late(deadline, state):
    lease, _ = started(deadline_ms=deadline)
    assert queue.finish("a", lease.token, "retry", code="timeout", now_ms=T)
    assert stand("a") == (("dead", "deadline", "timeout", 1, 1) if state == "dead" else ("pending", "", "", 1, 1))
    check_all(["a"])


def test_exhaustion_wins_over_wait_budget_and_deadline():
    declare(wait_budget_ms=0)
    lease, _ = started(max_attempts=1, deadline_ms=T + 1)
    assert queue.finish("a", lease.token, "retry", code="timeout", now_ms=T)
    assert stand("a") == ("dead", "exhausted", "timeout", 1, 1)


@pytest.mark.parametrize("outcome", ["ok", "retry", "permanent"])
def test_a_lease_that_ran_out_but_was_not_taken_over_still_counts(outcome):
    lease, _ = started(max_attempts=2)
    assert queue.finish("a", lease.token, outcome, now_ms=T + LEASE + 5)


def test_success_after_the_deadline_is_success():
    lease, _ = started(deadline_ms=T + 1)
    assert queue.finish("a", lease.token, "ok", now_ms=T + DAY)
    assert stand("a")[0] == "done"


# --- losers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["ok", "retry", "permanent"])
@pytest.mark.parametrize("token", [0, 1, 3, 2**62])
def test_another_token_ends_nothing(token, outcome):
    put("a")
    take("w1")
    take("w2", at=T + LEASE)
    job, rows = row("a"), failures("a")
    assert queue.finish("a", token, outcome, code="x", now_ms=T + LEASE) is False
    assert (row("a"), failures("a")) == (job, rows)
    assert LateFinish.objects.count() == (1 if token < 2 else 0)
    check_all(["a"])


def test_late_finishes_are_counted_each_time_and_kept_once():
    put("a")
    take("w1")
    take("w2", at=T + LEASE)
    for _ in range(3):
        assert not queue.finish("a", 1, "ok", now_ms=T + LEASE + 1)
    assert list(LateFinish.objects.values_list("job_id", "token", "outcome", "at_ms")) == [
        ("a", 1, "ok", T + LEASE + 1)
    ]
    assert sum(Tally.objects.filter(name="late_finish").values_list("n", flat=True)) == 3


def test_a_job_that_is_not_leased_cannot_be_ended():
    put("pending")
    before = snapshot()
    assert not queue.finish("pending", 0, "ok", now_ms=T)
    assert not queue.finish("unknown", 1, "ok", now_ms=T)
    assert snapshot() == before
    lease = take()
    assert queue.release("pending", lease.token, now_ms=T)
    released = snapshot()
    assert not queue.finish("pending", lease.token, "ok", now_ms=T)
    assert snapshot() == released


BAD_RESULTS = [
    {"outcome": "done"}, {"outcome": "OK"}, {"outcome": ""}, {"outcome": None}, {"outcome": True}, {"outcome": "ok\n"},
    {"outcome": []}, {"token": True}, {"token": 1.0}, {"token": "1"}, {"token": None}, {"token": -1}, {"token": 2**63},
    {"token": 10**400}, {"code": "Bad Code"}, {"code": None}, {"code": "x" * 49}, {"code": "\ud800"}, {"code": 503},
    {"code": "a\n"}, {"retry_after_ms": 1.5}, {"retry_after_ms": "5"}, {"retry_after_ms": True}, {"id": ""},
    {"id": None}, {"id": "a\0"}, {"id": "\ud800"}, {"id": b"a"}, {"now_ms": -1}, {"now_ms": "0"}, {"now_ms": 2**63},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_RESULTS, ids=lambda bad: next(iter(bad)))
def test_what_cannot_be_meant_is_a_value_error_before_any_write(bad):
    started()
    before = snapshot()
    values = {"id": "a", "token": 1, "outcome": "ok", "now_ms": T, **bad}
    at = values.pop("now_ms")
    result = queue.Result(**values)
    good = queue.Result("a", 1, "ok")
    for call in (
        lambda: queue.finish(now_ms=at, **values),
        lambda: queue.finish_many([good, result], now_ms=at),
        lambda: queue.finish_and_claim([good, result], "w1", now_ms=at),
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            call()
    assert snapshot() == before


# --- many -----------------------------------------------------------------------------------------------------------


def test_many_ends_have_an_answer_each_in_order():
    put("a", "b", "c", "d")
    for lease in queue.claim("w1", limit=4, now_ms=T):
        assert lease.token == 1
    results = [
        queue.Result("d", 1, "ok"),
        queue.Result("a", 2, "ok"),
        queue.Result("b", 1, "permanent", "http_422"),
        queue.Result("b", 1, "ok"),
        queue.Result("none", 1, "ok"),
        queue.Result("c", 1, "retry", "http_503", 5_000),
    ]
    assert queue.finish_many(results, now_ms=T) == [True, False, True, False, False, True]
    assert [stand(job_id)[0] for job_id in "abcd"] == ["leased", "dead", "pending", "done"]
    assert row("c")["available_at"] == T + 5_000
    assert queue.finish_many([], now_ms=T) == []
    check_all("abcd")


def test_ending_and_taking_on_is_one_commit_and_may_take_what_it_has_just_given_up():
    declare(wait_base_ms=0)
    put("a", "b")
    lease = take()
    answers, leases = queue.finish_and_claim([queue.Result("a", 1, "retry")], "w1", limit=5, now_ms=T)
    assert (answers, [(again.id, again.token) for again in leases]) == ([True], [("a", 2), ("b", 1)])
    assert lease.token == 1


def test_when_taking_on_fails_nothing_has_ended():
    put("a")
    take()
    with pytest.raises(InvalidOrder):
        queue.finish_and_claim([queue.Result("a", 1, "ok")], "w1", queue="none", now_ms=T)
    assert stand("a")[0] == "leased"


def test_the_number_of_statements_for_one_end_does_not_grow_with_the_table():
    def cost() -> int:
        lease = take()
        with CaptureQueriesContext(connection) as queries:
            queue.finish(lease.id, lease.token, "ok", now_ms=T)
        return len(queries)

    put("a")
    small = cost()
    put(*(f"b{number}" for number in range(50)))
    assert 0 < cost() <= small
