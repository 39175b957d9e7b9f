"""Filters: what an address may ask for, what it says when it may not, and that one text stands for one filter."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.filters import Filter, FilterError, Problem, parse
from queue_app.policy.orders import MAX_INSTANT_MS

QUEUES = ("snacks", "drinks")
HOSTILE = [
    "<script>",
    "'; --",
    "%",
    "_x",
    "a b",
    "a\n",
    "a\0b",
    "\u202eabc",
    "а",
    "ｱ",
    "é",
    "\ud800",
    "x" * 10_000,
    "../x",
    "1 OR 1=1",
]


def read(**values: str) -> Filter:
    return parse({name: [value] for name, value in values.items()}, queues=QUEUES)


def kinds(**values: str) -> list[tuple[str, str]]:
    with pytest.raises(FilterError) as caught:
        read(**values)
    return [(problem.field, problem.kind) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Filter()),
        ({"queue": "drinks", "reason": "exhausted"}, Filter(queue="drinks", reason="exhausted")),
        ({"code": "http_503"}, Filter(code="http_503")),
        ({"code": "-"}, Filter(code="")),
        ({"code": "", "queue": "", "id": " "}, Filter()),
        ({"id": "o1-_.:"}, Filter(id_prefix="o1-_.:")),
        ({"min_age": "90m", "max_age": "3d"}, Filter(min_age_ms=5_400_000, max_age_ms=259_200_000)),
        ({"attempts_min": "0", "attempts_max": "100"}, Filter(attempts_min=0, attempts_max=100)),
        ({"redriven": "yes", "looked": "no", "effect": "yes"}, Filter(redriven=True, looked=False, effect=True)),
        ({"died_from": "0", "died_to": str(MAX_INSTANT_MS)}, Filter(died_from_ms=0, died_to_ms=MAX_INSTANT_MS)),
        ({"died_from": "2026-11-29T02:30"}, Filter(died_from_ms=1_795_919_400_000)),
        ({"died_from": "2026-11-29T02:30+09:00"}, Filter(died_from_ms=1_795_887_000_000)),
        ({"state": "dead", "cursor": "abc", "size": "9", "sort": "old"}, Filter()),
    ],
)
def test_an_address_asks_for(values: dict[str, str], expected: Filter) -> None:
    assert read(**values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"reason": "tired"}, [("reason", "unknown")]),
        ({"queue": "tea"}, [("queue", "unknown")]),
        ({"state": "done"}, [("state", "unknown")]),
        ({"colour": "red"}, [("", "unknown")]),
        ({"looked": "1"}, [("looked", "unknown")]),
        ({"attempts_min": "١"}, [("attempts_min", "range")]),
        ({"attempts_min": "101"}, [("attempts_min", "range")]),
        ({"attempts_min": "-1"}, [("attempts_min", "range")]),
        ({"attempts_min": "9" * 5_000}, [("attempts_min", "shape")]),
        ({"attempts_min": "5", "attempts_max": "4"}, [("attempts_max", "order")]),
        ({"died_from": "2024-02-30"}, [("died_from", "shape")]),
        ({"died_from": "10**15"}, [("died_from", "shape")]),
        ({"died_from": "1" + "0" * 15}, [("died_from", "shape")]),
        ({"died_from": "1" + "0" * 20}, [("died_from", "shape")]),
        ({"died_from": "-1"}, [("died_from", "shape")]),
        ({"died_from": "NaN"}, [("died_from", "shape")]),
        ({"died_from": "9999-12-31T23:59-23:59"}, [("died_from", "shape")]),
        ({"died_from": "0001-01-01T00:00+14:00"}, [("died_from", "shape")]),
        ({"died_from": "2026-11-29T02:30+99:99"}, [("died_from", "shape")]),
        ({"died_from": "9", "died_to": "9"}, [("died_to", "order")]),
        ({"min_age": "2h", "max_age": "1h"}, [("max_age", "order")]),
        ({"min_age": "two"}, [("min_age", "shape")]),
        ({"min_age": "999999999999999d"}, [("min_age", "shape")]),
        ({"reason": "x", "code": "Y", "id": "-"}, [("reason", "unknown"), ("code", "shape"), ("id", "shape")]),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(values: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert kinds(**values) == expected


@pytest.mark.parametrize("name", ["queue", "code", "id", "reason", "died_from", "min_age", "attempts_min", "looked"])
@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_hostile_values_get_a_short_ascii_sentence(name: str, value: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse({name: [value]})
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 250


def test_a_name_given_twice_is_refused_because_either_would_be_a_guess() -> None:
    with pytest.raises(FilterError, match="The filter reason is given 2 times"):
        parse({"reason": ["exhausted", "permanent"]})


def test_more_filters_than_there_are_names_are_refused_at_once() -> None:
    paged = {"cursor": ["x"], "sort": ["x"], "saved": ["x"]}
    with pytest.raises(FilterError) as caught:
        parse(paged | {f"f{n}": ["x"] for n in range(51)})
    assert caught.value.problems == (Problem("", "unknown", "There are 51 filters; at most 50 can be given."),)
    with pytest.raises(FilterError) as caught:
        parse(paged | {f"f{n}": ["x"] for n in range(50)})
    assert len(caught.value.problems) == 50


TIMES = Problem("died_to", "order", "The end of the time of death must be after its beginning.")
TRIES = Problem("attempts_max", "order", "The most tries must not be below the fewest.")
AGES = Problem("max_age", "order", "The greatest age must not be below the smallest.")


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"died_from": "9", "died_to": "9"}, [TIMES]),
        ({"died_from": "10", "died_to": "9"}, [TIMES]),
        ({"died_from": "0", "died_to": "0"}, [TIMES]),
        ({"died_from": "8", "died_to": "9"}, []),
        ({"attempts_min": "5", "attempts_max": "4"}, [TRIES]),
        ({"attempts_min": "1", "attempts_max": "0"}, [TRIES]),
        ({"attempts_min": "5", "attempts_max": "5"}, []),
        ({"min_age": "2h", "max_age": "1h"}, [AGES]),
        ({"min_age": "2h", "max_age": "2h"}, []),
        (
            {
                "min_age": "2h",
                "max_age": "1h",
                "died_from": "9",
                "died_to": "8",
                "attempts_min": "2",
                "attempts_max": "1",
            },
            [TIMES, TRIES, AGES],
        ),
    ],
)
def test_two_fields_that_contradict_each_other_are_refused(values: dict[str, str], problems: list[Problem]) -> None:
    found: tuple[Problem, ...] = ()
    try:
        read(**values)
    except FilterError as refused:
        found = refused.problems
    assert found == tuple(problems)


GROUPS, ROWS = (
    ("queue", "reason", "code", "effect"),
    ("id_prefix", "attempts_min", "attempts_max", "redriven", "looked"),
)
INSTANT_FIELDS = ("died_from_ms", "died_to_ms", "min_age_ms", "max_age_ms")


@pytest.mark.parametrize("field", [*GROUPS, *INSTANT_FIELDS, *ROWS])
def test_each_field_asks_for_some_groups_some_times_or_some_rows(field: str) -> None:
    for value in (0, False, ""):
        wanted = Filter(**{field: value})
        asked = (wanted.by_group, wanted.by_time, wanted.by_row, wanted.active)
        assert asked == (field in GROUPS, field in INSTANT_FIELDS, field in ROWS, True)
    assert (Filter().by_group, Filter().by_time, Filter().by_row, Filter().active) == (False,) * 4


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        (Filter(), True),
        (Filter(id_prefix="x", looked=True), True),
        (Filter(queue="snacks", reason="exhausted", code="http_503", effect=True), True),
        (Filter(queue="drinks"), False),
        (Filter(reason="permanent"), False),
        (Filter(code=""), False),
        (Filter(effect=False), False),
        (Filter(queue="drinks", reason="exhausted", code="http_503", effect=True), False),
        (Filter(queue="snacks", reason="permanent", code="http_503", effect=True), False),
        (Filter(queue="snacks", reason="exhausted", code="http_500", effect=True), False),
        (Filter(queue="snacks", reason="exhausted", code="http_503", effect=False), False),
    ],
)
def test_a_filter_admits_a_group_that_has_all_it_asks_for(wanted: Filter, admitted: bool) -> None:
    assert wanted.admits_group("snacks", "exhausted", "http_503") is admitted


@pytest.mark.parametrize(
    ("values", "offered"),
    [({"id": "ｏ１２-1"}, "o12-1"), ({"code": "ｈttp_503"}, "http_503"), ({"attempts_min": "３"}, "3")],
)
def test_full_width_text_is_refused_with_its_half_width_form_offered(values: dict[str, str], offered: str) -> None:
    with pytest.raises(FilterError) as caught:
        read(**values)
    assert caught.value.problems[0].offered == offered
    assert f"in half-width: {offered}" in str(caught.value)


@pytest.mark.parametrize(
    ("zone", "text", "start", "end"),
    [
        # clocks go from 02:00 to 03:00: a time within the gap is the instant of the jump
        ("America/Chicago", "2026-03-08T02:30", 1_772_956_800_000, 1_772_956_800_000),
        ("Europe/Berlin", "2026-03-29T02:30", 1_774_746_000_000, 1_774_746_000_000),
        # clocks go back: the first passing begins a span, the second ends it
        ("America/Chicago", "2026-11-01T01:30", 1_793_514_600_000, 1_793_518_200_000),
        ("Europe/Berlin", "2026-10-25T02:30", 1_792_888_200_000, 1_792_891_800_000),
        ("Asia/Tokyo", "2026-10-25T02:30", 1_792_863_000_000, 1_792_863_000_000),
    ],
)
def test_local_times_in_gaps_and_folds_are_defined(zone: str, text: str, start: int, end: int) -> None:
    assert parse({"died_from": [text]}, zone=ZoneInfo(zone)).died_from_ms == start
    assert parse({"died_to": [text]}, zone=ZoneInfo(zone)).died_to_ms == end


def test_ages_and_times_meet_in_one_span_that_ends_before_the_as_of_time() -> None:
    assert Filter().span(1_000) == (0, 1_000)
    assert Filter(died_from_ms=100, died_to_ms=2_000).span(1_000) == (100, 1_000)
    assert Filter(died_to_ms=0).span(1_000) == (0, 0)
    assert Filter(died_from_ms=500, max_age_ms=600, min_age_ms=0).span(1_000) == (500, 1_000)
    assert Filter(min_age_ms=1, max_age_ms=2_000).span(1_000) == (0, 1_000)
    assert Filter(min_age_ms=100, max_age_ms=300).span(1_000) == (700, 901)
    assert Filter(died_from_ms=800, max_age_ms=300, died_to_ms=850, min_age_ms=0).span(1_000) == (800, 850)


NAMES = st.sampled_from(
    ["queue", "reason", "code", "id", "died_from", "died_to", "min_age", "attempts_min", "redriven", "state", "effect"]
)


@given(st.dictionaries(NAMES | st.text(max_size=9), st.lists(st.text(), max_size=3)))
def test_garbage_never_raises_anything_but_the_typed_error(values: dict[str, list[str]]) -> None:
    try:
        found = parse(values, zone=ZoneInfo("Europe/Berlin"))
    except FilterError:
        return
    assert parse({name: [value] for name, value in found.query()}) == found
