"""The short way for flat records gives the same text and the same refusals as the long one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy import canonical
from queue_app.policy.canonical import canonical_ascii

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
    short, canonical._is_plain_record = canonical._is_plain_record, lambda _: False
    try:
        assert told(record) == by_itself
    finally:
        canonical._is_plain_record = short


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.integers(-99, 99)), max_size=8))
def test_the_text_is_what_json_makes_of_it(record):
    if any("\0" in key or not key.isprintable() for key in record):
        return
    assert canonical_ascii(record) == json.dumps(record, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("bad", [{"a": "\0"}, {"a\0": 1}, {"a": 2**64}, {"a": 1.0}, {1: "a"}, {"a": "\ud800"}])
def test_what_has_no_canonical_text_is_refused_on_the_short_way_too(bad):
    with pytest.raises(ValueError):
        canonical_ascii(bad)
