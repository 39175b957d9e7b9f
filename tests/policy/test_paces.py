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


def test_what_is_taken_ahead_lasts_for_the_gathering_and_the_commit_and_is_bounded() -> None:
    assert paces.ahead(SECOND_MJ, 10) == paces.GATHER_MS + 30 + 80
    assert paces.ahead(SECOND_MJ, 10) < paces.ahead(SECOND_MJ, 50)
    assert paces.ahead(1_000 * SECOND_MJ, 10_000) == paces.MAX_AHEAD


def test_the_rate_follows_what_happens_within_half_a_second() -> None:
    rate = 0
    for _ in range(25):
        rate = paces.rate_mj(rate, 20, 20)
    assert 0.8 * SECOND_MJ < rate <= SECOND_MJ
    for _ in range(25):
        rate = paces.rate_mj(rate, 0, 20)
    assert rate < 0.2 * SECOND_MJ
    assert paces.rate_mj(rate, 0, 250) == 0, "a receiver that stands still is seen at once"
    assert paces.rate_mj(rate, 5, 0) == rate, "no time, no rate"
    assert paces.rate_mj(0, 1, 10_000) == 100
