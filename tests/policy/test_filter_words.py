"""Each field of a filter by itself: what is taken, at both sides of each border, and the whole refusal of what is not."""

from collections.abc import Callable
from datetime import UTC

import pytest

from queue_app.policy.filter_words import FilterError, Problem, Refused, one_of, read, written
from queue_app.policy.orders import MAX_INSTANT_MS

QUEUES = ("snacks", "drinks")


def refusal(call: Callable[[], object]) -> Problem:
    with pytest.raises(Refused) as caught:
        call()
    assert caught.value.args == (caught.value.problem.field,)
    return caught.value.problem


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("id", [], None),
        ("id", [""], None),
        ("id", ["   "], None),
        ("id", ["  a b "], "a b"),
        ("id", ["XaX"], "XaX"),
        ("id", ["\ta\n"], "\ta\n"),
        ("id", ["x" * 200], "x" * 200),
        ("state", [" dead "], "dead"),
        ("state", [""], None),
        ("state", [], None),
    ],
)
def test_one_value_is_taken_without_the_blanks_around_it(name: str, given: list[str], value: str | None) -> None:
    assert one_of(name, given) == value


TOO_LONG = "The filter %(name)s is too long or no text."


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("colour", ["red"], Problem("", "unknown", "There is no filter %(value)s.", {"value": "'colour'"})),
        ("id_prefix", [], Problem("", "unknown", "There is no filter %(value)s.", {"value": "'id_prefix'"})),
        (
            "reason",
            ["permanent"] * 3,
            Problem(
                "reason",
                "twice",
                "The filter %(name)s is given %(count)s times; give it once.",
                {"name": "reason", "count": 3},
            ),
        ),
        ("id", ["x" * 201], Problem("id", "shape", TOO_LONG, {"name": "id"})),
        ("code", [5], Problem("code", "shape", TOO_LONG, {"name": "code"})),
        ("code", [b"http_503"], Problem("code", "shape", TOO_LONG, {"name": "code"})),
        (
            "state",
            ["done"],
            Problem(
                "state",
                "unknown",
                "Only orders in quarantine are listed here, state dead, not %(value)s.",
                {"value": "'done'"},
            ),
        ),
    ],
)
def test_a_name_or_a_number_of_values_that_cannot_be_meant_is_refused(
    name: str, given: list[str], problem: Problem
) -> None:
    assert refusal(lambda: one_of(name, given)) == problem


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("queue", "snacks", "snacks"),
        ("reason", "permanent", "permanent"),
        ("reason", "exhausted", "exhausted"),
        ("reason", "deadline", "deadline"),
        ("code", "-", ""),
        ("code", "http_503", "http_503"),
        ("id", "o12-1", "o12-1"),
        ("died_from", "0", 0),
        ("died_from", "000000000000012", 12),
        ("died_to", str(MAX_INSTANT_MS), MAX_INSTANT_MS),
        ("died_to", "1970-01-02", 86_400_000),
        ("died_from", "1970-01-02", 86_400_000),
        ("min_age", "7ms", 7),
        ("max_age", "7s", 7_000),
        ("min_age", "7m", 420_000),
        ("max_age", "7h", 25_200_000),
        ("max_age", "7d", 604_800_000),
        ("max_age", f"{MAX_INSTANT_MS}ms", MAX_INSTANT_MS),
        ("attempts_min", "0", 0),
        ("attempts_min", "0007", 7),
        ("attempts_max", "100", 100),
        ("attempts_max", "0100", 100),
        ("effect", "yes", True),
        ("redriven", "no", False),
        ("looked", "yes", True),
    ],
)
def test_a_value_means(name: str, text: str, value: object) -> None:
    found = read(name, text, QUEUES, UTC)
    assert found == value
    assert type(found) is type(value)


def test_any_queue_will_do_where_nobody_says_which_are_declared_and_none_where_none_is() -> None:
    assert read("queue", "tea", None, UTC) == "tea"
    assert refusal(lambda: read("queue", "tea", (), UTC)) == Problem(
        "queue", "unknown", "No queue %(value)s is declared.", {"value": "'tea'"}
    )


NO_REASON = "The reason is permanent, exhausted or deadline, not %(value)s."
NO_QUEUE = "A queue's name does not look like %(value)s."
NO_CODE = "A code does not look like %(value)s."
NO_ID = "The beginning of an order's id does not look like %(value)s."
NO_TIME = "A time is written like 2026-11-29T02:30, in the years 1970 to 9999, not %(value)s."
NO_AGE = "An age is written like 90m, 2h or 3d, not %(value)s."
NO_TRIES = "Tries are a whole number from 0 to %(most)s, and this is %(value)s."
NO_ANSWER = "The filter %(name)s is yes or no, and this is %(value)s."


@pytest.mark.parametrize(
    ("name", "text", "kind", "template", "offered"),
    [
        ("reason", "tired", "unknown", NO_REASON, ""),
        ("queue", "tea", "unknown", "No queue %(value)s is declared.", ""),
        ("queue", "-", "shape", NO_QUEUE, ""),
        ("queue", "ｔea", "shape", NO_QUEUE, "tea"),
        ("queue", "q" * 33, "shape", NO_QUEUE, ""),
        ("code", "Http", "shape", NO_CODE, ""),
        ("code", "ｈttp_503", "shape", NO_CODE, "http_503"),
        ("id", "-", "shape", NO_ID, ""),
        ("id", "ｏ1", "shape", NO_ID, "o1"),
        ("died_from", "soon", "shape", NO_TIME, ""),
        ("died_to", str(MAX_INSTANT_MS + 1), "shape", NO_TIME, ""),
        ("died_from", "0" * 15 + "1", "shape", NO_TIME, ""),
        ("died_from", "١٢", "shape", NO_TIME, ""),
        ("min_age", "two", "shape", NO_AGE, ""),
        ("max_age", f"{MAX_INSTANT_MS + 1}ms", "shape", NO_AGE, ""),
        ("attempts_min", "101", "range", NO_TRIES, ""),
        ("attempts_max", "00100", "range", NO_TRIES, ""),
        ("attempts_max", "٣", "range", NO_TRIES, ""),
        ("attempts_max", "³", "range", NO_TRIES, ""),
        ("attempts_max", "１２", "range", NO_TRIES, "12"),
        ("attempts_max", "", "range", NO_TRIES, ""),
        ("looked", "1", "unknown", NO_ANSWER, ""),
        ("effect", "YES", "unknown", NO_ANSWER, ""),
        ("redriven", "", "unknown", NO_ANSWER, ""),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name: str, text: str, kind: str, template: str, offered: str) -> None:
    values: dict[str, object] = {"value": ascii(text)}
    values |= {"most": 100} if template == NO_TRIES else {"name": name} if template == NO_ANSWER else {}
    assert refusal(lambda: read(name, text, QUEUES, UTC)) == Problem(name, kind, template, values, offered)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("redriven", True, "yes"),
        ("looked", False, "no"),
        ("code", "", "-"),
        ("code", "http_503", "http_503"),
        ("queue", "snacks", "snacks"),
        ("died_from_ms", 86_400_000, "86400000"),
        ("attempts_min", 0, "0"),
        ("min_age_ms", 0, "0d"),
        ("min_age_ms", 172_800_000, "2d"),
        ("max_age_ms", 7_200_000, "2h"),
        ("max_age_ms", 5_400_000, "90m"),
        ("min_age_ms", 61_000, "61s"),
        ("max_age_ms", 1_001, "1001ms"),
    ],
)
def test_a_value_is_written_in_its_largest_whole_unit(name: str, value: object, text: str) -> None:
    assert written(name, value) == text


def test_a_problem_is_a_sentence_and_several_are_one_error() -> None:
    one = Problem("id", "shape", "An id is not %(value)s.", {"value": 5}, "o1")
    other = Problem("code", "shape", "A code is short.")
    assert one.sentence == "An id is not 5; in half-width: o1."
    assert Problem("id", "shape", "An id is not %(value)s.", {"value": 5}).sentence == "An id is not 5."
    assert other == Problem("code", "shape", "A code is short.", {}, "")
    error = FilterError([one, Problem("code", "shape", "A code is short.")])
    assert str(error) == "An id is not 5; in half-width: o1. A code is short."
    assert (error.template, error.values) == (str(error), {})
    assert error.problems == (one, Problem("code", "shape", "A code is short."))
