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
    with pytest.raises(ValueError, match=rf"\({total_ms} ms\) must be below the lease \({lease_ms} ms\)"):
        check_times(total_ms, lease_ms)
    with pytest.raises(ValueError, match="must be below the lease"):
        check_start(SNACKS, total_ms=total_ms, lease_ms=lease_ms)


def test_a_total_time_below_the_lease_is_accepted() -> None:
    check_times(29_999, 30_000)
    check_start(SNACKS, total_ms=29_999, lease_ms=None)


def test_a_receiver_that_may_forget_an_id_before_its_last_delivery_is_refused() -> None:
    longest = SNACKS.redrive_horizon_ms + SNACKS.budget_ms
    check_retention(replace(SNACKS, receiver_keeps_ms=longest + 1))
    with pytest.raises(InvalidLimit, match="takes an order that is sent again for a new one"):
        check_start(replace(SNACKS, receiver_keeps_ms=longest), total_ms=1, lease_ms=2)


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
