"""Whether a queue's settings can work at all: the lease and the receiver's memory must outlast what they guard."""

from dataclasses import replace

import pytest

from queue_app.policy.queues import (
    LIMITS,
    InvalidLimit,
    QueuePolicy,
    check_retention,
    check_start,
    check_times,
    with_limits,
)

SNACKS = QueuePolicy("snacks")


@pytest.mark.parametrize(("total_ms", "lease_ms"), [(30_000, 30_000), (30_001, 30_000)])
def test_a_total_time_that_is_not_below_the_lease_is_refused_with_a_sentence(total_ms: int, lease_ms: int) -> None:
    sentence = (
        f"The total time of a delivery ({total_ms} ms) must be below the lease ({lease_ms} ms): "
        "otherwise a second worker sends an order that the first is still sending."
    )
    for check in (
        lambda: check_times(total_ms, lease_ms),
        lambda: check_start(SNACKS, total_ms=total_ms, lease_ms=lease_ms),
        lambda: check_start(replace(SNACKS, lease_ms=lease_ms), total_ms=total_ms, lease_ms=None),
        lambda: check_start(replace(SNACKS, lease_ms=90_000), total_ms=total_ms, lease_ms=lease_ms),
    ):
        with pytest.raises(ValueError) as refused:
            check()
        assert refused.value.args == (sentence,)


def test_a_total_time_below_the_lease_is_accepted() -> None:
    check_times(29_999, 30_000)
    check_start(SNACKS, total_ms=29_999, lease_ms=None)
    check_start(SNACKS, total_ms=40_000, lease_ms=40_001)


def test_a_receiver_that_may_forget_an_id_before_its_last_delivery_is_refused() -> None:
    longest = SNACKS.redrive_horizon_ms + SNACKS.budget_ms
    check_retention(replace(SNACKS, receiver_keeps_ms=longest + 1))
    forgetful = replace(SNACKS, receiver_keeps_ms=longest)
    for check in (
        lambda: check_retention(forgetful),
        lambda: check_start(forgetful, total_ms=1, lease_ms=2),
        lambda: with_limits(SNACKS, {"receiver_keeps_ms": longest}),
        lambda: with_limits(SNACKS, {"max_unfinished": None, "receiver_keeps_ms": longest}),
    ):
        with pytest.raises(InvalidLimit) as refused:
            check()
        assert refused.value.field == "receiver_keeps_ms"
        assert refused.value.values == {"queue": "snacks", "keeps": "2,678,400,000", "longest": "2,678,400,000"}
        assert str(refused.value) == (
            "The receiver of the queue snacks keeps an id for 2,678,400,000 ms, which must be above redrive horizon plus "
            "budget (2,678,400,000 ms): otherwise it takes an order that is sent again for a new one."
        )


@pytest.mark.parametrize("field", LIMITS)
def test_each_limit_is_taken_within_its_bounds_only(field: str) -> None:
    low, high, optional = LIMITS[field]
    forgetful = field == "receiver_keeps_ms"
    for value in (high, *([] if forgetful else [low])):
        assert getattr(with_limits(SNACKS, {field: value}), field) == value
    if optional:
        assert getattr(with_limits(SNACKS, {field: None}), field) is None
    for value in (low - 1, high + 1, str(low), float(low), True, *([] if optional else [None])):
        with pytest.raises(InvalidLimit) as refused:
            with_limits(SNACKS, {field: value})
        assert refused.value.field == field
        assert str(refused.value) == f"{field} must be a whole number from {low:,} to {high:,}."


def test_only_the_limits_named_change() -> None:
    limits = {"max_unfinished": 5, "wait_budget_ms": None, "breaker_after": 0, "done_kept_ms": 86_400_000}
    assert with_limits(SNACKS, limits) == replace(
        SNACKS, max_unfinished=5, wait_budget_ms=None, breaker_after=0, done_kept_ms=86_400_000
    )
    assert with_limits(SNACKS, {}) == SNACKS


@pytest.mark.parametrize("before", [{}, {"max_unfinished": None}, {"max_unfinished": 1}])
def test_a_limit_that_no_queue_has_is_refused_by_name(before: dict[str, object]) -> None:
    with pytest.raises(InvalidLimit) as refused:
        with_limits(SNACKS, {**before, "lease_ms": 1})
    assert (refused.value.field, refused.value.values) == ("limits", {"value": "'lease_ms'"})
    assert str(refused.value) == "A queue has no limit 'lease_ms'."
