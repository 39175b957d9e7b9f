"""Spans are cut into hours, minutes and rows without a gap, and windows begin on whole minutes."""

import itertools
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.windows import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    MINUTES_USED_MS,
    WINDOWS,
    ceiling,
    floor,
    local_instant_ms,
    pieces,
    window_start_ms,
)

NOW = 1_800_000_000_000 + 2_345_678  # within an hour and within a minute
BORDER = NOW - MINUTES_USED_MS
INSTANTS = (
    st.integers(NOW - 20 * DAY_MS, NOW + HOUR_MS)
    | st.integers(-130, 130).map(lambda n: BORDER + n * MINUTE_MS)
    | st.integers(-3, 3).map(lambda n: floor(BORDER, HOUR_MS) + n * HOUR_MS)
)


@given(INSTANTS, INSTANTS)
def test_the_pieces_of_a_span_are_the_span(low: int, high: int) -> None:
    cut = pieces(low, high, NOW)
    spans = sorted([*cut.hours, *cut.minutes, *cut.rows])
    if low >= high:
        assert spans == []
        return
    assert (spans[0][0], spans[-1][1]) == (low, high)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))
    assert all(start % HOUR_MS == end % HOUR_MS == 0 for start, end in cut.hours)
    assert all(start % MINUTE_MS == end % MINUTE_MS == 0 for start, end in cut.minutes)


@given(INSTANTS, INSTANTS)
def test_few_rows_are_left_and_no_minute_that_may_be_gone_is_asked(low: int, high: int) -> None:
    cut = pieces(low, high, NOW)
    assert all(start >= BORDER for start, _ in cut.minutes)
    for start, end in cut.rows:
        recent = start >= BORDER + HOUR_MS
        assert end - start <= (2 * MINUTE_MS if recent else 2 * HOUR_MS)


@pytest.mark.parametrize(
    ("at_ms", "down", "up"), [(0, 0, 0), (1, 0, 60_000), (59_999, 0, 60_000), (60_000, 60_000, 60_000)]
)
def test_whole_minutes_around_an_instant(at_ms: int, down: int, up: int) -> None:
    assert (floor(at_ms, MINUTE_MS), ceiling(at_ms, MINUTE_MS)) == (down, up)


@pytest.mark.parametrize("name", [name for name, length in WINDOWS.items() if length])
def test_a_window_holds_at_least_its_length_and_less_than_a_minute_more(name: str) -> None:
    length = WINDOWS[name]
    assert length is not None
    start = window_start_ms(length, NOW)
    assert start % MINUTE_MS == 0
    assert length <= NOW - start < length + MINUTE_MS


@given(st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?", fullmatch=True))
def test_any_text_is_an_instant_of_the_calendar_or_none(text: str) -> None:
    at_ms = local_instant_ms(text, UTC, "from")
    assert at_ms is None or 0 <= at_ms < 253_402_300_800_000
