"""Counters against rows: which differ, by how much, and in which order they are told."""

import pytest

from queue_app.policy.recounting import Difference, Group, Numbers, Place, differences
from queue_app.policy.windows import HOUR_MS, MINUTE_MS

T = 1_800_000_000_000  # a whole hour
A: Group = ("snacks", "exhausted", "http_503")
B: Group = ("snacks", "permanent", "http_422")
HERE: Place = ("snacks", "done", "", "", "")
THERE: Place = ("snacks", "dead", "", "permanent", "http_422")


def hour(group: Group, n: int = 0) -> Place:
    return (HOUR_MS, T + n * HOUR_MS, *group)


def minute(group: Group, n: int = 0) -> Place:
    return (MINUTE_MS, T + n * MINUTE_MS, *group)


def told(stored: Numbers, counted: Numbers) -> list[tuple[str, Place, str, int, int]]:
    return [(one.table, one.place, one.column, one.stored, one.counted) for one in differences(stored, counted)]


@pytest.mark.parametrize(
    ("instants", "last"),
    [([], {}), ([None], {}), ([0], {HERE: 0}), ([T], {HERE: T}), ([T, T - 1, None], {HERE: T}), ([1, T], {HERE: T})],
)
def test_the_last_change_at_a_place_is_the_latest_that_was_seen(
    instants: list[int | None], last: dict[Place, int]
) -> None:
    numbers = Numbers()
    for at_ms in instants:
        numbers.saw(HERE, at_ms)
    assert numbers == Numbers(last=last)


@pytest.mark.parametrize("column", ["died", "left_n", "still"])
@pytest.mark.parametrize(
    ("minutes_from", "kept"), [(T, True), (T + MINUTE_MS, True), (T + MINUTE_MS + 1, False), (T + 3 * MINUTE_MS, False)]
)
def test_a_flow_counts_into_its_hour_and_into_its_minute_while_minutes_are_kept(
    column: str, minutes_from: int, kept: bool
) -> None:
    numbers = Numbers()
    for at_ms, n in ((T + MINUTE_MS, 2), (T + 2 * MINUTE_MS - 1, 3)):
        numbers.flow(column, at_ms, A, n, minutes_from)
    expected = Numbers()
    expected.flows[column].update({hour(A): 5, **({minute(A, 1): 5} if kept else {})})
    assert numbers == expected


def test_hours_and_minutes_begin_at_whole_ones() -> None:
    numbers = Numbers()
    for at_ms in (T - 1, T, T + HOUR_MS - 1, T + HOUR_MS):
        numbers.flow("died", at_ms, A, 1, 0)
    assert numbers.flows["died"] == {
        hour(A, -1): 1, hour(A): 2, hour(A, 1): 1,
        minute(A, -1): 1, minute(A): 1, minute(A, 59): 1, minute(A, 60): 1,
    }  # fmt: skip


@pytest.mark.parametrize(("stored", "counted", "delta"), [(5, 7, 2), (7, 5, -2), (0, 1, 1)])
def test_a_difference_is_what_must_be_added(stored: int, counted: int, delta: int) -> None:
    assert Difference("counts", HERE, "n", stored, counted).delta == delta


def filled(n: int) -> Numbers:
    """Numbers of every kind, each `n`."""
    numbers = Numbers(last={HERE: n})
    numbers.n["counts"][HERE] = numbers.n["tallies"]["late",] = n
    numbers.n["results"][7, "snacks", "permanent", "http_422", "done"] = n
    for flow in numbers.flows.values():
        flow[hour(A)] = n
    return numbers


def test_counters_that_say_what_the_rows_say_do_not_differ() -> None:
    assert differences(Numbers(), Numbers()) == differences(filled(3), filled(3)) == []


def test_a_counter_of_nothing_and_no_counter_say_the_same() -> None:
    assert differences(filled(0), Numbers()) == differences(Numbers(), filled(0)) == []


@pytest.mark.parametrize(("stored", "counted"), [(0, 1), (1, 2), (0, T)])
def test_whatever_is_too_little_is_told_in_the_order_of_tables(stored: int, counted: int) -> None:
    result = (7, "snacks", "permanent", "http_422", "done")
    assert told(filled(stored) if stored else Numbers(), filled(counted)) == [
        ("counts", HERE, "n", stored, counted),
        ("results", result, "n", stored, counted),
        ("tallies", ("late",), "n", stored, counted),
        ("counts", HERE, "last_at_ms", stored, counted),
        ("flows", hour(A), "left_n", stored, counted),
        ("flows", hour(A), "still", stored, counted),
        ("flows", hour(A), "died", stored, counted),
    ]


@pytest.mark.parametrize(("stored", "counted"), [(1, 0), (2, 1)])
def test_tallies_and_last_changes_are_only_ever_lifted(stored: int, counted: int) -> None:
    result = (7, "snacks", "permanent", "http_422", "done")
    assert told(filled(stored), filled(counted) if counted else Numbers()) == [
        ("counts", HERE, "n", stored, counted),
        ("results", result, "n", stored, counted),
        ("flows", hour(A), "left_n", stored, counted),
        ("flows", hour(A), "still", stored, counted),
        ("flows", hour(A), "died", stored, counted),
    ]


def test_places_are_told_in_their_order_wherever_they_were_met() -> None:
    stored, counted = Numbers(), Numbers()
    for numbers, places in ((stored, (HERE,)), (counted, (THERE, ("drinks", "done", "", "", "")))):
        numbers.n["counts"].update(dict.fromkeys(places, 1))
    counted.last = {HERE: T, THERE: T}
    counted.n["tallies"].update({("z",): 1, ("a",): 1})
    assert told(stored, counted) == [
        ("counts", ("drinks", "done", "", "", ""), "n", 0, 1),
        ("counts", THERE, "n", 0, 1),
        ("counts", HERE, "n", 1, 0),
        ("tallies", ("a",), "n", 0, 1),
        ("tallies", ("z",), "n", 0, 1),
        ("counts", THERE, "last_at_ms", 0, T),
        ("counts", HERE, "last_at_ms", 0, T),
    ]


LATE, EARLY = hour(A, 1), hour(A)


@pytest.mark.parametrize(
    ("stored", "counted", "uncertain", "found"),
    [
        # the sum is right, and only the hour is not known
        ({EARLY: 3}, {LATE: 3}, {A}, []),
        ({EARLY: 3, LATE: 1}, {EARLY: 2, LATE: 2}, {A}, []),
        # the same, and every death has its instant
        ({EARLY: 3}, {LATE: 3}, set(), [(EARLY, 3, 0), (LATE, 0, 3)]),
        ({EARLY: 3}, {LATE: 3}, {B}, [(EARLY, 3, 0), (LATE, 0, 3)]),
        # the sum is wrong
        ({EARLY: 3}, {LATE: 4}, {A}, [(EARLY, 3, 0), (LATE, 0, 4)]),
        ({EARLY: 3, LATE: 1}, {EARLY: 3}, {A}, [(LATE, 1, 0)]),
        # minutes are part of their hours and no part of the sum
        ({EARLY: 3, minute(A): 2}, {LATE: 3, minute(A): 1}, {A}, []),
        ({EARLY: 3, minute(A): 1}, {EARLY: 4}, {A}, [(minute(A), 1, 0), (EARLY, 3, 4)]),
        # each group for itself
        ({EARLY: 3, hour(B): 1}, {LATE: 3}, {A, B}, [(hour(B), 1, 0)]),
        ({EARLY: 1}, {hour(B): 1}, {A, B}, [(EARLY, 1, 0), (hour(B), 0, 1)]),
    ],
)
def test_deaths_of_which_no_row_says_when_are_compared_by_their_sum(
    stored: dict[Place, int], counted: dict[Place, int], uncertain: set[Group], found: list[tuple[Place, int, int]]
) -> None:
    left, right = Numbers(), Numbers(uncertain=uncertain)
    left.flows["died"].update(stored)
    right.flows["died"].update(counted)
    assert told(left, right) == [("flows", place, "died", *numbers) for place, *numbers in found]


def test_only_deaths_may_be_uncertain() -> None:
    stored, counted = Numbers(), Numbers(uncertain={A})
    for column in ("left_n", "still"):
        stored.flows[column][EARLY] = counted.flows[column][LATE] = 1
    assert [(table, place, column) for table, place, column, *_ in told(stored, counted)] == [
        ("flows", place, column) for column in ("left_n", "still") for place in (EARLY, LATE)
    ]
