"""Spans are cut into hours, minutes and rows without a gap, and windows begin on whole minutes."""

import itertools
from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.windows import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    MINUTES_USED_MS,
    WINDOWS,
    Pieces,
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


H = floor(NOW, HOUR_MS)  # recent: minutes are relied on
OLD = ceiling(BORDER, HOUR_MS)  # from here on; before it only hours are


@pytest.mark.parametrize(
    ("low", "high", "cut"),
    [
        (H, H, Pieces((), (), ())),
        (H + 1, H, Pieces((), (), ())),
        (H, H + 1, Pieces((), (), ((H, H + 1),))),
        (H + 1, H + MINUTE_MS, Pieces((), (), ((H + 1, H + MINUTE_MS),))),
        (H, H + MINUTE_MS, Pieces((), ((H, H + MINUTE_MS),), ())),
        (H, H + HOUR_MS, Pieces(((H, H + HOUR_MS),), (), ())),
        (
            H - 1,
            H + MINUTE_MS + 1,
            Pieces((), ((H, H + MINUTE_MS),), ((H - 1, H), (H + MINUTE_MS, H + MINUTE_MS + 1))),
        ),
        (
            H - MINUTE_MS - 1,
            H + HOUR_MS + MINUTE_MS + 2,
            Pieces(
                ((H, H + HOUR_MS),),
                ((H - MINUTE_MS, H), (H + HOUR_MS, H + HOUR_MS + MINUTE_MS)),
                ((H - MINUTE_MS - 1, H - MINUTE_MS), (H + HOUR_MS + MINUTE_MS, H + HOUR_MS + MINUTE_MS + 2)),
            ),
        ),
        (OLD, OLD + MINUTE_MS, Pieces((), ((OLD, OLD + MINUTE_MS),), ())),
        (OLD - MINUTE_MS, OLD, Pieces((), (), ((OLD - MINUTE_MS, OLD),))),
        (OLD - MINUTE_MS, OLD + MINUTE_MS, Pieces((), ((OLD, OLD + MINUTE_MS),), ((OLD - MINUTE_MS, OLD),))),
        (OLD - HOUR_MS, OLD, Pieces(((OLD - HOUR_MS, OLD),), (), ())),
        (OLD - HOUR_MS, OLD - 1, Pieces((), (), ((OLD - HOUR_MS, OLD - 1),))),
    ],
)
def test_a_span_is_cut_where_counters_begin_and_end(low: int, high: int, cut: Pieces) -> None:
    assert pieces(low, high, NOW) == cut


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


@pytest.mark.parametrize(
    ("as_of_ms", "start"), [(5, 0), (HOUR_MS + MINUTE_MS - 1, 0), (HOUR_MS + MINUTE_MS, MINUTE_MS)]
)
def test_no_window_begins_before_the_epoch(as_of_ms: int, start: int) -> None:
    assert window_start_ms(HOUR_MS, as_of_ms) == start


def utc_ms(*moment: int) -> int:
    return round(datetime(*moment, tzinfo=UTC).timestamp() * 1_000)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("2026-11-29", utc_ms(2026, 11, 29)),
        ("2026-11-29T02:30", utc_ms(2026, 11, 29, 2, 30)),
        ("2026-11-29 02:30:41", utc_ms(2026, 11, 29, 2, 30, 41)),
        ("2026-11-29T02:30:41.5", utc_ms(2026, 11, 29, 2, 30, 41) + 500),
        ("2026-11-29T02:30:41.05", utc_ms(2026, 11, 29, 2, 30, 41) + 50),
        ("2026-11-29T02:30:41.005", utc_ms(2026, 11, 29, 2, 30, 41) + 5),
        ("2026-11-29T02:30Z", utc_ms(2026, 11, 29, 2, 30)),
        ("2026-11-29Z", utc_ms(2026, 11, 29)),
        ("2026-11-29T02:30+05:45", utc_ms(2026, 11, 28, 20, 45)),
        ("2026-11-29T02:30-05:45", utc_ms(2026, 11, 29, 8, 15)),
        # the ends of the calendar
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00.001", 1),
        ("1969-12-31T23:59:59.999Z", None),
        ("1970-01-01T00:00+00:01", None),
        ("9999-12-31T23:59:59.999", 253_402_300_799_999),
        ("9999-12-31T23:59:59.998Z", 253_402_300_799_998),
        ("9999-12-31T23:59:59.999-00:01", None),
        ("0001-01-01T00:00+23:59", None),
        # what is no time
        ("2026-02-29", None),
        ("2026-11-29T24:00", None),
        ("2026-11-29T02", None),
        ("2026-11-29T02:30:41.1234", None),
        ("2026-11-29T02:30+24:00", None),
        ("2026-11-29t02:30", None),
        (" 2026-11-29", None),
        ("2026-11-29\n", None),
        ("", None),
    ],
)
def test_a_typed_time_is_read_to_the_millisecond(text: str, at_ms: int | None) -> None:
    assert local_instant_ms(text, UTC, "from") == local_instant_ms(text, UTC, "to") == at_ms


BERLIN, LORD_HOWE = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Lord_Howe")  # jumps of an hour and of half an hour


@pytest.mark.parametrize(
    ("zone", "text", "start", "end"),
    [
        (BERLIN, "2026-07-01T12:00", utc_ms(2026, 7, 1, 10), utc_ms(2026, 7, 1, 10)),
        (BERLIN, "2026-07-01T12:00Z", utc_ms(2026, 7, 1, 12), utc_ms(2026, 7, 1, 12)),
        (BERLIN, "2026-07-01T12:00+01:00", utc_ms(2026, 7, 1, 11), utc_ms(2026, 7, 1, 11)),
        (BERLIN, "2026-10-25T01:59", utc_ms(2026, 10, 24, 23, 59), utc_ms(2026, 10, 24, 23, 59)),
        (BERLIN, "2026-10-25T02:30", utc_ms(2026, 10, 25, 0, 30), utc_ms(2026, 10, 25, 1, 30)),
        (LORD_HOWE, "2026-04-05T01:45", utc_ms(2026, 4, 4, 14, 45), utc_ms(2026, 4, 4, 15, 15)),
        *(
            (BERLIN, f"2026-03-29T02:{minute:02}:00.{ms:03}", utc_ms(2026, 3, 29, 1), utc_ms(2026, 3, 29, 1))
            for minute in (0, 30, 59)
            for ms in range(8)
        ),
        *(
            (LORD_HOWE, f"2026-10-04T02:17:00.{ms:03}", utc_ms(2026, 10, 3, 15, 30), utc_ms(2026, 10, 3, 15, 30))
            for ms in range(8)
        ),
    ],
)
def test_a_time_that_comes_twice_has_two_ends_and_one_that_is_skipped_is_the_jump(
    zone: ZoneInfo, text: str, start: int, end: int
) -> None:
    ends: tuple[Literal["from", "to"], ...] = ("from", "to")
    found = [local_instant_ms(text, zone, one) for one in ends]
    assert found == [start, end]
    assert [type(at_ms) for at_ms in found] == [int, int]


@given(st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?", fullmatch=True))
def test_any_text_is_an_instant_of_the_calendar_or_none(text: str) -> None:
    at_ms = local_instant_ms(text, UTC, "from")
    assert at_ms is None or 0 <= at_ms < 253_402_300_800_000
