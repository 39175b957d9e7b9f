"""Selections and their texts, the seals of lists, and how much of a list is frozen at once."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.errors import InvalidOrder, SnackOpsError
from queue_app.policy.filters import Filter
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.selections import (
    CHUNK,
    EMPTY_DIGEST,
    Selection,
    by_filter,
    by_group,
    by_ids,
    digest_on,
    from_text,
    next_chunk,
    outcome_on,
)

FILTERED = '{"filter":"{\\"code\\":\\"http_503\\",\\"queue\\":\\"snacks\\",\\"reason\\":\\"exhausted\\"}"}'


def test_a_selection_names_its_queue_and_has_one_text() -> None:
    group = Filter(queue="snacks", reason="exhausted", code="http_503")
    for selection, same, queue, text in (
        (by_group("snacks", "exhausted", "http_503"), Selection(group, ()), "snacks", FILTERED),
        (by_filter(group), Selection(group, ()), "snacks", FILTERED),
        (by_ids(["b", "a", "b"]), Selection(None, ("a", "b")), None, '{"ids":["a","b"]}'),
    ):
        assert selection == same
        assert selection.queue == queue
        assert selection.canonical() == text
        assert from_text(text) == same


def refusal(call: object, given: object) -> tuple[type, str, dict[str, object]]:
    with pytest.raises(SnackOpsError) as caught:
        call(given)  # type: ignore[operator]
    return type(caught.value), caught.value.template, dict(caught.value.values)


def test_what_is_no_selection_is_refused_whole() -> None:
    no_queue = "A redrive is of one queue: choose the queue first."
    assert refusal(by_filter, Filter(reason="permanent")) == (InvalidPlan, no_queue, {"field": "queue"})
    for nothing in ([], ()):
        assert refusal(by_ids, nothing) == (InvalidPlan, "No order is selected.", {"field": "ids"})
    too_many = "At most %(most)s orders can be ticked; choose more by a filter."
    assert refusal(by_ids, ["a"] * 1_001) == (InvalidPlan, too_many, {"field": "ids", "most": 1_000})
    assert by_ids(["a"] * 1_000) == Selection(ids=("a",))
    assert refusal(by_ids, ["a", "b c"])[0] is InvalidOrder


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "[]",
        '"filter"',
        '{"ids":[]}',
        '{"ids":"ab"}',
        '{"ids":{"a":1}}',
        '{"ids":["a b"]}',
        '{"ids":["a"],"filter":"{}"}',
        '{"filter":"{"}',
        '{"filter":{}}',
        '{"filter":5}',
        '{"filter":"{\\"queue\\":\\"A\\"}"}',
    ],
)
def test_a_stored_text_that_is_no_selection_is_refused_in_one_sentence(text: str) -> None:
    assert refusal(from_text, text) == (InvalidPlan, "The stored selection cannot be read.", {"field": ""})


def test_a_seal_is_made_of_every_item_in_turn() -> None:
    first = hashlib.sha256(f"{EMPTY_DIGEST}\n1:a:7".encode()).hexdigest()
    second = hashlib.sha256(f"{first}\n2:b:0".encode()).hexdigest()
    assert EMPTY_DIGEST == "0" * 64
    assert digest_on(EMPTY_DIGEST, []) == EMPTY_DIGEST
    assert digest_on(EMPTY_DIGEST, [(1, "a", 7), (2, "b", 0)]) == second
    first = hashlib.sha256(f"{EMPTY_DIGEST}\n1:a:7:done".encode()).hexdigest()
    second = hashlib.sha256(f"{first}\n2:b:0:dead".encode()).hexdigest()
    assert outcome_on(EMPTY_DIGEST, []) == EMPTY_DIGEST
    assert outcome_on(EMPTY_DIGEST, [(1, "a", 7, "done"), (2, "b", 0, "dead")]) == second


@pytest.mark.parametrize(
    ("size", "took_ms", "after"),
    [
        (100, 0, 200),
        (100, 1, 200),
        (100, 7, 200),
        (100, 8, 187),
        (100, 14, 107),
        (100, 15, 100),
        (100, 16, 93),
        (100, 29, 51),
        (100, 30, 50),
        (100, 31, 50),
        (100, 10_000, 50),
        (50, 0, 100),
        (1_000, 7, 2_000),
        (1_001, 0, 2_000),
        (2_000, 15, 2_000),
        (2_000, 16, 1_875),
        (24, 0, 50),
    ],
)
def test_the_next_chunk_takes_fifteen_milliseconds_and_is_at_most_doubled(size: int, took_ms: int, after: int) -> None:
    assert next_chunk(size, took_ms) == after


ITEMS = st.lists(st.tuples(st.integers(1, 99), st.text("ab", min_size=1, max_size=3), st.integers(0, 9)), max_size=12)


@given(ITEMS, st.integers(0, 12))
def test_a_seal_does_not_depend_on_the_cut(items, cut):
    whole = digest_on(EMPTY_DIGEST, items)
    assert digest_on(digest_on(EMPTY_DIGEST, items[:cut]), items[cut:]) == whole


@given(ITEMS, ITEMS)
def test_two_lists_have_two_seals(one, other):
    assert (digest_on(EMPTY_DIGEST, one) == digest_on(EMPTY_DIGEST, other)) == (one == other)


@given(st.integers(*CHUNK), st.integers(0, 10_000))
def test_a_chunk_follows_the_time_it_took(size, took_ms):
    after = next_chunk(size, took_ms)
    assert CHUNK[0] <= after <= CHUNK[1]
    assert after <= size * 2
    if took_ms > 30:
        assert after <= max(size // 2, CHUNK[0])
