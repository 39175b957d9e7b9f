"""The bucket: never above the rate by more than what it holds, never below it by more than one job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.buckets import (
    JOB_UJ,
    TICK_MS,
    Bucket,
    capacity_uj,
    due_in_ms,
    duration_ms,
    fresh,
    moment_of,
    next_bite,
    rate_at,
    refilled,
    resumed,
    spent,
    window_ms,
)
from queue_app.policy.terms import MAX_RATE_MJ, MIN_RATE_MJ

T = 1_800_000_000_000
RATES = st.integers(MIN_RATE_MJ, MAX_RATE_MJ)
SPANS = st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=60)


def ticked(bucket: Bucket, rate: int, now: int) -> tuple[Bucket, int]:
    """Spend all that is there."""
    bucket = refilled(bucket, rate, now)
    return spent(bucket, bucket.jobs), bucket.jobs


@pytest.mark.parametrize("rate", [1, 50, 500, 20_000])
@pytest.mark.parametrize("every_ms", [TICK_MS, 70, 100, 200])
def test_over_a_minute_the_rate_is_met_within_two_percent_or_one_job(rate, every_ms):
    bucket, done = fresh(T), 0
    for now in range(T + every_ms, T + 60_000 + 1, every_ms):
        bucket, n = ticked(bucket, rate * 1_000, now)
        done += n
    seconds = 60_000 // every_ms * every_ms / 1_000
    assert abs(done - rate * seconds) <= max(1, rate * seconds * 0.02)


@given(RATES, SPANS)
def test_in_no_second_of_a_good_clock_more_than_the_rate_and_one_full_bucket(rate, spans):
    bucket, now, made = fresh(T), T, []
    for span in spans:
        now += abs(span)
        bucket, n = ticked(bucket, rate, now)
        made.append((now, n))
    for start, _ in made:
        within = sum(n for at, n in made if start <= at < start + 1_000)
        assert within * JOB_UJ <= rate * 1_000 + capacity_uj(rate)


@given(RATES, SPANS)
def test_a_jumping_clock_grants_no_more_than_its_steps_forward_do(rate, spans):
    bucket, now, done, forward = fresh(T), T, 0, 0
    for span in spans:
        now += span
        forward += min(max(span, 0), window_ms(rate))
        bucket, n = ticked(bucket, rate, now)
        done += n
        assert 0 <= bucket.level_uj < JOB_UJ
        assert bucket.at_ms == now
    assert done * JOB_UJ <= JOB_UJ + rate * forward


@given(RATES, st.integers(0, 10**13), st.integers(0, 10**9))
def test_a_level_never_leaves_its_bounds(rate, level, elapsed):
    bucket = refilled(Bucket(min(level, capacity_uj(rate)), T), rate, T + elapsed)
    assert 0 <= bucket.level_uj <= capacity_uj(rate)


@given(RATES, st.integers(0, 60_000))
def test_when_it_is_due_there_is_a_job_and_not_before(rate, elapsed):
    empty = Bucket(0, T)
    due = due_in_ms(empty, rate, T)
    assert refilled(empty, rate, T + due).jobs >= 1
    if due > TICK_MS:
        assert refilled(empty, rate, T + due - 1).jobs == 0
    assert due_in_ms(empty, rate, T + elapsed) == due - elapsed


@pytest.mark.parametrize(("level", "due"), [(0, 50), (10 * JOB_UJ, 30), (25 * JOB_UJ, 0), (60 * JOB_UJ, 0)])
def test_what_a_short_bite_left_over_is_due_sooner(level, due):
    assert due_in_ms(Bucket(level, T), 500_000, T) == due


def test_a_clock_set_back_is_due_at_once_so_that_the_new_time_is_noted():
    assert due_in_ms(Bucket(0, T), 1_000, T - 3_600_000) == 0
    assert refilled(Bucket(5, T), 1_000, T - 3_600_000) == Bucket(5, T - 3_600_000)


def test_a_pause_grants_nothing():
    assert resumed(Bucket(123, T), T + 3_600_000) == Bucket(123, T + 3_600_000)


def test_nobody_spends_more_than_there_is():
    assert spent(Bucket(2 * JOB_UJ + 5, T), 2) == Bucket(5, T)
    assert spent(Bucket(5, T), 0) == Bucket(5, T)
    for level, jobs, held in ((JOB_UJ - 1, 1, 0), (JOB_UJ, 2, 1), (JOB_UJ, -1, 1)):
        with pytest.raises(ValueError) as refused:
            spent(Bucket(level, T), jobs)
        assert str(refused.value) == f"{jobs} jobs do not fit into a bucket of {held}."


@pytest.mark.parametrize(
    ("rate", "capacity", "window"),
    [
        (MIN_RATE_MJ, JOB_UJ + 2_500, 100_250),
        (3_000, 1_750_000, 584),
        (4_000, 2 * JOB_UJ, 500),
        (500_000, 126 * JOB_UJ, 252),
    ],
)
def test_a_bucket_holds_one_job_and_a_burst(rate, capacity, window):
    assert (capacity_uj(rate), window_ms(rate)) == (capacity, window)


@pytest.mark.parametrize(
    ("ran_ms", "rate"), [(0, 1_000), (9_999, 1_000), (10_000, 5_000), (29_999, 5_000), (30_000, 8_000), (10**9, 8_000)]
)
def test_steps_hold_for_their_seconds_and_never_above_the_rate(ran_ms, rate):
    assert rate_at(8_000, [(1_000, 10), (5_000, 20)], ran_ms) == rate
    assert rate_at(500, [(1_000, 10), (5_000, 20)], ran_ms) == 500


@pytest.mark.parametrize(
    ("jobs", "rate", "steps", "ms"),
    [
        (12_000, 5_000, (), 2_400_000),
        (0, 5_000, (), 0),
        (1, 10, (), 100_000),
        (10, 5_000, ((1_000, 10),), 10_000),
        (5, 5_000, ((1_000, 10),), 5_000),
        (20, 5_000, ((1_000, 10),), 12_000),
        (1, 20_000_000, (), 1),
        (1, 5_000, ((3_000, 10),), 334),
        (25, 5_000, ((1_000, 10),), 13_000),
        (40, 5_000, ((1_000, 10), (2_000, 5)), 19_000),
        (40, 1_500, ((1_000, 10), (2_000, 5)), 30_000),
        (21, 5_000, ((1_000, 10), (2_000, 5), (3_000, 1)), 15_334),
    ],
)
def test_how_long_it_takes(jobs, rate, steps, ms):
    assert duration_ms(jobs, rate, steps) == ms


@given(RATES, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 5_000)), min_size=1, max_size=60))
def test_rivals_who_looked_at_the_clock_before_they_had_the_bucket_get_no_time_twice(rate, takers):
    bucket, now, done = Bucket(0, T), T, 0
    for span, late in takers:
        now += span
        bucket, n = ticked(bucket, rate, moment_of(bucket, now - late))
        done += n
    assert done * JOB_UJ <= rate * (now - T)


def test_a_clock_that_was_set_back_is_believed():
    assert [moment_of(Bucket(0, T), T + ms) for ms in (5, 0, -1, -5_000, -5_001)] == [T + 5, T, T, T, T - 5_001]


@pytest.mark.parametrize(
    ("bite", "held_ms", "then"),
    [
        (50, 0, 100),
        (50, 6, 100),
        (50, 7, 100),
        (50, 8, 93),
        (50, 15, 50),
        (50, 16, 46),
        (200, 30, 100),
        (101, 6, 200),
        (100, 6, 200),
        (200, 0, 200),
        (50, 30, 25),
        (50, 31, 25),
        (25, 5_000, 25),
    ],
)
def test_the_bite_follows_the_time_that_the_last_tick_held_the_lock(bite, held_ms, then):
    assert next_bite(bite, held_ms) == then
