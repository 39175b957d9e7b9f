"""What becomes of an attempt: the pure rule behind `finish` and `claim` (DESIGN section 4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.decisions import (
    OUTCOMES,
    RETRY_AFTER_CAP_MS,
    Done,
    Quarantine,
    RetryAt,
    Spent,
    burial,
    decide,
    lease_end_ms,
    retry_wait_ms,
)
from queue_app.policy.queues import QueuePolicy

T = 1_000_000
PLAIN = QueuePolicy("snacks")


def spent(attempts=1, max_attempts=3, waited_ms=0, deadline=T + 10**9):
    return Spent(attempts, max_attempts, waited_ms, deadline)


def policy(**more):
    return QueuePolicy("snacks", **more)


def test_the_defaults_are_those_of_the_contract():
    assert (PLAIN.max_attempts, PLAIN.wait_base_ms, PLAIN.wait_cap_ms, PLAIN.lease_ms) == (3, 1_000, 300_000, 30_000)
    assert (PLAIN.budget_ms, PLAIN.redrive_horizon_ms, PLAIN.ordering) == (86_400_000, 30 * 86_400_000, "independent")
    assert (PLAIN.wait_budget_ms, PLAIN.max_unfinished, PLAIN.accepting, PLAIN.paused) == (None, None, True, False)


WAITS = [(1, 1_000), (2, 2_000), (3, 4_000), (8, 128_000), (9, 256_000), (10, 300_000), (11, 300_000), (10**6, 300_000)]


@pytest.mark.parametrize(("attempt", "wait"), WAITS)
def test_the_wait_doubles_from_one_second_to_five_minutes(attempt, wait):
    assert retry_wait_ms(PLAIN, attempt) == wait


@pytest.mark.parametrize(
    ("asked", "wait"),
    [(None, 2_000), (-5, 2_000), (0, 2_000), (1_999, 2_000), (2_001, 2_001), (10**30, RETRY_AFTER_CAP_MS)],
)
def test_the_larger_of_plan_and_bounded_wish_counts(asked, wait):
    assert retry_wait_ms(PLAIN, 2, retry_after_ms=asked) == wait


def test_jitter_is_an_argument_and_none_by_itself():
    assert retry_wait_ms(PLAIN, 1, jitter_ms=250) == 1_250
    assert retry_wait_ms(PLAIN, 1) == retry_wait_ms(PLAIN, 1) == 1_000


def test_a_queue_without_waits_has_none():
    assert retry_wait_ms(policy(wait_base_ms=0), 7) == 0


@pytest.mark.parametrize("attempt", [41, 42, 1_000])
def test_the_doubling_itself_ends(attempt):
    assert retry_wait_ms(policy(wait_base_ms=1, wait_cap_ms=2**50), attempt) == 2**40


FINISHES = [
    ("ok", spent(3, 3, 10**9, 0), PLAIN, Done()),  # late, exhausted: success is success
    ("permanent", spent(), PLAIN, Quarantine("permanent", "c")),
    ("permanent", spent(3, 3, 0, 0), PLAIN, Quarantine("permanent", "c")),
    ("retry", spent(1, 3), PLAIN, RetryAt(T + 1_000, 1_000)),
    ("retry", spent(2, 3), PLAIN, RetryAt(T + 2_000, 2_000)),
    ("retry", spent(3, 3), PLAIN, Quarantine("exhausted", "c")),
    ("retry", spent(4, 3), PLAIN, Quarantine("exhausted", "c")),
    ("retry", spent(1, 1, deadline=0), policy(wait_budget_ms=0), Quarantine("exhausted", "c")),
    ("retry", spent(waited_ms=0), policy(wait_budget_ms=1_000), RetryAt(T + 1_000, 1_000)),
    ("retry", spent(waited_ms=1), policy(wait_budget_ms=1_000), Quarantine("exhausted", "wait_budget")),
    ("retry", spent(deadline=T), policy(wait_budget_ms=0), Quarantine("exhausted", "wait_budget")),
    ("retry", spent(deadline=T + 1_001), PLAIN, RetryAt(T + 1_000, 1_000)),
    ("retry", spent(deadline=T + 1_000), PLAIN, Quarantine("deadline", "c")),
    ("retry", spent(deadline=T - 1), PLAIN, Quarantine("deadline", "c")),
]


@pytest.mark.parametrize(("outcome", "before", "queue", "decision"), FINISHES)
def test_a_finish_is_done_another_try_or_quarantine(outcome, before, queue, decision):
    assert decide(outcome, before, queue, T, code="c") == decision


@pytest.mark.parametrize("outcome", ["", "OK", "done", "fail", "ok ", None, True, 1])
def test_an_outcome_that_is_none_of_the_three_is_a_value_error(outcome):
    with pytest.raises(ValueError, match="is none of ok, retry, permanent"):
        decide(outcome, spent(), PLAIN, T)
    assert OUTCOMES == ("ok", "retry", "permanent")


def test_the_receivers_wish_moves_the_next_try_and_no_code_is_no_code():
    assert decide("retry", spent(), PLAIN, T, retry_after_ms=5_000, jitter_ms=9) == RetryAt(T + 5_000, 5_000)
    assert decide("retry", spent(), PLAIN, T, retry_after_ms=5, jitter_ms=9) == RetryAt(T + 1_009, 1_009)
    assert decide("permanent", spent(), PLAIN, T) == Quarantine("permanent", "")
    assert decide("retry", spent(3, 3), PLAIN, T) == Quarantine("exhausted", "")


BURIALS = [
    (spent(0, 3, deadline=T + 1), None),
    (spent(2, 3, deadline=T + 1), None),
    (spent(2, 3, deadline=T), "deadline"),
    (spent(2, 3, deadline=T - 1), "deadline"),
    (spent(3, 3, deadline=T + 1), "exhausted"),
    (spent(3, 3, deadline=T), "exhausted"),
]


@pytest.mark.parametrize(("before", "reason"), BURIALS)
def test_a_job_without_budget_is_buried_and_exhaustion_wins(before, reason):
    assert burial(before, now_ms=T) == reason


@pytest.mark.parametrize(("now", "until"), [(T, T + 30), (T + 100, T + 130), (T + 101, T + 130), (T + 999, T + 130)])
def test_a_lease_ends_one_lease_after_the_deadline_at_the_latest(now, until):
    assert lease_end_ms(now, 30, T + 100) == until


@given(
    outcome=st.sampled_from(OUTCOMES),
    attempts=st.integers(1, 100),
    left=st.integers(0, 5),
    waited=st.integers(0, 10**7),
    deadline=st.integers(0, 2 * T),
    budget=st.none() | st.integers(0, 10**7),
    asked=st.none() | st.integers(-(10**12), 10**12),
)
def test_no_decision_ever_leaves_the_budget(outcome, attempts, left, waited, deadline, budget, asked):
    before = Spent(attempts, attempts + left, waited, deadline)
    decision = decide(outcome, before, policy(wait_budget_ms=budget), T, code="c", retry_after_ms=asked)
    assert isinstance(decision, Done) == (outcome == "ok")
    if isinstance(decision, RetryAt):
        assert left > 0
        assert T < decision.at_ms < deadline
        assert decision.at_ms == T + decision.wait_ms
        assert budget is None or waited + decision.wait_ms <= budget
    if isinstance(decision, Quarantine) and outcome == "retry":
        assert decision.reason in ("exhausted", "deadline")
