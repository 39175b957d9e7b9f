"""How many jobs a worker takes ahead and ends together: nothing for slow jobs, a bounded number for the fastest."""

import pytest

from queue_app.policy import paces

SECOND_MJ = 1_000_000  # a thousand jobs per second, in thousandths


@pytest.mark.parametrize("rate_mj", [0, 1, 1_000, 50_000, paces.FASTEST_SLOW_MJ - 1])
def test_slow_jobs_wait_for_nobody_and_none_is_taken_ahead(rate_mj: int) -> None:
    assert paces.group(rate_mj) == 1
    for commit_ms in (0, 5, 10_000):
        assert paces.ahead(rate_mj, commit_ms) == 0


@pytest.mark.parametrize(("per_s", "group"), [(100, 8), (500, 40), (1_250, 100), (1_000_000, 100)])
def test_fast_jobs_end_in_groups_of_what_comes_within_the_gathering_and_a_hundred_at_most(
    per_s: int, group: int
) -> None:
    assert paces.group(per_s * 1_000) == group


def test_the_slowest_of_the_fast_gather_and_a_slower_one_does_not() -> None:
    assert (paces.group(99_999), paces.ahead(99_999, 1_000)) == (1, 0)
    assert (paces.group(100_000), paces.ahead(100_000, 0)) == (8, 16)
    assert paces.group(112_499) == 8, "whole jobs"
    assert paces.ahead(112_499, 1) == 9 + 8
    assert (paces.group(1_237_500), paces.group(1_249_999), paces.group(1_262_500)) == (99, 99, 100)
    assert (paces.ahead(SECOND_MJ, 113), paces.ahead(SECOND_MJ, 114)) == (499, 500)
    for number in (paces.group(112_499), paces.ahead(112_499, 1), paces.capacity_mj(1, 3), paces.mean_us(100, 3, 1, 0)):
        assert type(number) is int


def test_what_is_taken_ahead_lasts_for_the_gathering_and_the_commit_and_is_bounded() -> None:
    assert paces.ahead(SECOND_MJ, 10) == paces.GATHER_MS + 30 + 80
    assert paces.ahead(SECOND_MJ, 10) < paces.ahead(SECOND_MJ, 50)
    assert paces.ahead(1_000 * SECOND_MJ, 10_000) == paces.MAX_AHEAD


@pytest.mark.parametrize(
    ("hands", "mean_us", "capacity_mj"),
    [(1, 1_000_000, 1_000), (8, 2_000, 4 * SECOND_MJ), (8, 0, 0), (1, 1, 10**9), (2, 3, 666_666_666), (1, -1, 0)],
)
def test_the_capacity_is_what_the_hands_could_do_and_nothing_before_it_is_known(
    hands: int, mean_us: int, capacity_mj: int
) -> None:
    assert paces.capacity_mj(hands, mean_us) == capacity_mj


def test_the_mean_follows_what_deliveries_take_and_sees_a_receiver_that_stands_still() -> None:
    mean = paces.mean_us(0, 4, 20, 0)
    assert mean == 5_000, "the first ones are believed"
    for _ in range(6):
        mean = paces.mean_us(mean, 40, 40, 0)
    assert 1_000 <= mean < 1_100
    assert paces.mean_us(mean, 0, 0, 700) == 700_000
    assert paces.mean_us(mean, 0, 0, 0) == mean
    assert paces.mean_us(0, 10, 0, 0) == 50, "less than a millisecond for all of them is not nothing"


@pytest.mark.parametrize(
    ("before_us", "ended", "took_ms", "silent_ms", "mean_us"),
    [
        (0, 3, 1, 0, 333),
        (0, 20, 1, 0, 50),
        (0, 19, 1, 0, 52),
        (1_000, 1, 2, 9_999, 1_031),
        (1_000, 15, 30, 0, 1_468),
        (1_000, 16, 32, 0, 1_500),
        (1_000, 17, 34, 0, 1_500),
        (3_200, 1, 0, 0, 3_101),
        (1, 16, 16, 0, 500),
        (5_000, 0, 0, 5, 5_000),
        (5_000, 0, 9_999, 6, 6_000),
        (0, 0, 0, 0, 0),
    ],
)
def test_the_mean_moves_by_a_share_of_what_ended_and_by_half_at_most(
    before_us: int, ended: int, took_ms: int, silent_ms: int, mean_us: int
) -> None:
    assert paces.mean_us(before_us, ended, took_ms, silent_ms) == mean_us
