"""Which values have a canonical text, how large it may be, and that the short way for flat records differs in nothing."""

import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queue_app.policy import canonical
from queue_app.policy.canonical import canonical_ascii, canonical_json

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(), st.text(max_size=20), st.just("a\0b")
)
RECORDS = st.dictionaries(st.one_of(st.text(max_size=5), st.integers()), LEAVES, max_size=8)


def told(value):
    try:
        return canonical_ascii(value)
    except ValueError as refused:
        return str(refused)


@given(RECORDS)
def test_the_short_way_differs_in_nothing(record):
    by_itself = told(record)
    short, canonical._is_flat_record = canonical._is_flat_record, lambda _: False
    try:
        assert told(record) == by_itself
    finally:
        canonical._is_flat_record = short


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.integers(-99, 99)), max_size=8))
def test_the_text_is_what_json_makes_of_it(record):
    if any("\0" in key or not key.isprintable() for key in record):
        return
    assert canonical_ascii(record) == json.dumps(record, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("bad", [{"a": "\0"}, {"a\0": 1}, {"a": 2**64}, {"a": 1.0}, {1: "a"}, {"a": "\ud800"}])
def test_what_has_no_canonical_text_is_refused_on_the_short_way_too(bad):
    with pytest.raises(ValueError):
        canonical_ascii(bad)


class Text(str):
    """May lie about itself, too."""


class Mapping(dict):
    """May lie about itself, so it is no object of JSON."""


def nested(levels, inner=None):
    value = inner
    for place in range(levels):
        value = [value] if place % 2 else {"x": value}
    return value


NO_TYPE = "it holds a value of a type that JSON does not have"
LONG = type("\u00e9" * 50, (), {})
REFUSED = [
    ({"x": (1,)}, f"{NO_TYPE} (tuple)"),
    (b"x", f"{NO_TYPE} (bytes)"),
    (Mapping(), f"{NO_TYPE} (Mapping)"),
    ([type("Row", (list,), {})()], f"{NO_TYPE} (Row)"),
    (type("Name", (str,), {})("x"), f"{NO_TYPE} (Name)"),
    (type("Whole", (int,), {})(1), f"{NO_TYPE} (Whole)"),
    (type("Share", (float,), {})(0.5), f"{NO_TYPE} (Share)"),
    (LONG(), f"{NO_TYPE} ({'\\xe9' * 10})"),
    ({1: "x"}, "it has a key that is not text"),
    ({"x": {None: "x"}}, "it has a key that is not text"),
    ({"x": [2**64]}, "it holds an integer beyond 64 bits"),
    (-(2**63) - 1, "it holds an integer beyond 64 bits"),
    ("a\0", "it holds the character NUL"),
    ({"\0": 1}, "it holds the character NUL"),
    (["\ud800"], "it holds a lone surrogate, which is no character"),
    (nested(65), "it is nested deeper than 64 levels"),
]
NO_NUMBER = "it holds a number that JSON does not have (NaN or Infinity)"


@pytest.mark.parametrize("text_of", [canonical_json, canonical_ascii])
@pytest.mark.parametrize(("value", "why"), REFUSED)
def test_what_has_no_canonical_text_is_refused_in_one_clause(text_of, value, why):
    with pytest.raises(ValueError) as refused:
        text_of(value)
    assert str(refused.value) == why


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1.0])
def test_a_record_takes_no_number_with_a_point_and_a_body_only_finite_ones(value):
    with pytest.raises(ValueError) as refused:
        canonical_ascii([value])
    assert str(refused.value) == "it holds a number that is not whole"
    if value == 1.0:
        assert canonical_json([value]) == "[1.0]"
        return
    with pytest.raises(ValueError) as refused:
        canonical_json([value])
    assert str(refused.value) == NO_NUMBER


@pytest.mark.parametrize(
    ("value", "body", "record"),
    [
        (
            {"b": [1, None], "a": True, "\u00e9": "\u5bff"},
            '{"a":true,"b":[1,null],"\u00e9":"\u5bff"}',
            '{"a":true,"b":[1,null],"\\u00e9":"\\u5bff"}',
        ),
        ([2**64 - 1, -(2**63)], *["[18446744073709551615,-9223372036854775808]"] * 2),
        (nested(64), *['[{"x":' * 32 + "null" + "}]" * 32] * 2),
        ('\n"\x7f', '"\\n\\"\x7f"', '"\\n\\"\\u007f"'),
        ("\U0001f32e", '"\U0001f32e"', '"\\ud83c\\udf2e"'),
    ],
)
def test_the_text_is_sorted_without_blanks_and_only_a_record_escapes(value, body, record):
    assert (canonical_json(value), canonical_ascii(value)) == (body, record)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**64 - 1) | st.just(0.0) | st.text("a\u00e9\u5bff\n", max_size=3),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("ab\u00e9", max_size=2), inner, max_size=5),
    max_leaves=20,
)


@given(TREES)
@example([[0]] * 50)
@example({"": [{}, [], "", 0]})
def test_the_bytes_of_the_text_are_the_only_measure_of_size(value):
    size = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    assert len(canonical_json(value, max_bytes=size).encode()) == size
    with pytest.raises(ValueError) as refused:
        canonical_json(value, max_bytes=size - 1)
    assert str(refused.value) == f"it is larger than {size - 1:,} bytes"


def test_a_body_of_many_short_lists_may_have_its_whole_size():
    size = len('{"x":[]}') + 3 * 1_000 + 999
    assert len(canonical_json({"x": [[0]] * 1_000}, max_bytes=size)) == size


@pytest.mark.parametrize("many", [{"x": ["y" * 16_000] * 4_000}, {"x": [0] * 500_000}], ids=["texts", "numbers"])
def test_what_is_many_times_too_large_is_refused_before_its_text_is_made(many):
    tracemalloc.start()
    with pytest.raises(ValueError, match="larger than 16,384 bytes"):
        canonical_json(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_a_text_is_looked_at_as_long_as_it_could_fit():
    for text, why in (("\0a", "it holds the character NUL"), ("\0ab", "it is larger than 2 bytes")):
        with pytest.raises(ValueError) as refused:
            canonical_json(text, max_bytes=2)
        assert str(refused.value) == why


@pytest.mark.parametrize("record", [{"a": "b" * 93}, {"a": "\u5bff" * 15}, ["b" * 97]])
def test_a_record_is_measured_by_what_its_escapes_take(record):
    size = len(json.dumps(record, separators=(",", ":")))
    assert len(canonical_ascii(record, max_bytes=size)) == size
    with pytest.raises(ValueError) as refused:
        canonical_ascii(record, max_bytes=size - 1)
    assert str(refused.value) == f"it is larger than {size - 1} bytes"


@pytest.mark.parametrize(
    ("record", "short"),
    [
        ({}, True),
        ({"a": "b", "c": None, "d": True, "e": 2**64 - 1, "f": -(2**63)}, True),
        ({str(n): n for n in range(64)}, True),
        ({str(n): n for n in range(65)}, False),
        *(({"a": value}, False) for value in (2**64, -(2**63) - 1, 1.0, [], {}, Text("a"))),
        *(({key: "a"}, False) for key in (1, None, Text("a"))),
        ([], False),
        ("a", False),
        (Mapping(), False),
    ],
)
def test_small_flat_records_go_the_short_way_and_nothing_else_does(record, short):
    assert canonical._is_flat_record(record) is short


@pytest.mark.parametrize(("text_of", "most"), [(canonical_json, 16_384), (canonical_ascii, 1_000_000)])
def test_each_has_its_bound(text_of, most):
    assert len(text_of("x" * (most - 2))) == most
    for value in ("x" * (most - 1), ["x"] * most, "x" * (10 * most)):
        with pytest.raises(ValueError) as refused:
            text_of(value)
        assert str(refused.value) == f"it is larger than {most:,} bytes"
