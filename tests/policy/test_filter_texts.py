"""One text stands for one filter: what is stored, what its address says, and which texts are none."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.filters import REASONS, Filter, FilterError, Problem, from_canonical, parse
from queue_app.policy.orders import MAX_INSTANT_MS


def test_a_filter_has_one_text_and_one_address_and_a_short_digest_of_the_text() -> None:
    wanted = Filter(queue="snacks", code="", died_to_ms=7, max_age_ms=60_000, attempts_min=0, redriven=False)
    text = '{"attempts_min":0,"code":"","died_to_ms":7,"max_age_ms":60000,"queue":"snacks","redriven":false}'
    assert wanted.canonical() == text
    assert wanted.digest() == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert wanted.query() == [
        ("queue", "snacks"),
        ("code", "-"),
        ("died_to", "7"),
        ("max_age", "1m"),
        ("attempts_min", "0"),
        ("redriven", "no"),
    ]
    assert from_canonical(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"colour":"red"}',
        '{"queue":null}',
        '{"queue":""}',
        '{"queue":"A"}',
        '{"queue":["snacks"]}',
        '{"code":5}',
        '{"code":"-"}',
        '{"id_prefix":"-"}',
        '{"reason":"tired"}',
        '{"effect":1}',
        '{"redriven":"yes"}',
        '{"looked":0}',
        '{"attempts_min":101}',
        '{"attempts_max":101}',
        '{"attempts_min":true}',
        '{"attempts_min":-1}',
        '{"attempts_min":1.0}',
        '{"min_age_ms":253402300800000}',
        '{"died_from_ms":-1}',
        '{"died_from_ms":9,"died_to_ms":9}',
        '{"attempts_min":2,"attempts_max":1}',
        '{"attempts_max":2,"attempts_min":3}',
        '{"queue": "snacks"}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_a_stored_text_that_is_none_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        from_canonical(text)
    assert caught.value.problems == (Problem("", "shape", "The stored filter cannot be read."),)


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        *(Filter(reason=reason) for reason in REASONS),
        Filter(effect=False, redriven=True, looked=False),
        Filter(attempts_min=0, attempts_max=100),
        Filter(attempts_min=5, attempts_max=5, died_from_ms=0, died_to_ms=1),
        Filter(min_age_ms=MAX_INSTANT_MS, max_age_ms=MAX_INSTANT_MS, queue="q" * 32, id_prefix="A" * 64),
    ],
)
def test_a_stored_text_is_read_back_at_its_borders(wanted: Filter) -> None:
    assert from_canonical(wanted.canonical()) == wanted


WORDS = st.from_regex(r"[a-z0-9][a-z0-9_]{0,20}", fullmatch=True)
INSTANTS = st.integers(0, MAX_INSTANT_MS)
FILTERS = st.builds(
    Filter,
    queue=st.none() | WORDS,
    reason=st.none() | st.sampled_from(REASONS),
    code=st.none() | st.just("") | WORDS,
    effect=st.none() | st.booleans(),
    died_from_ms=st.none() | INSTANTS,
    min_age_ms=st.none() | INSTANTS,
    id_prefix=st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", fullmatch=True),
    attempts_max=st.none() | st.integers(0, 100),
    redriven=st.none() | st.booleans(),
    looked=st.none() | st.booleans(),
)


@given(FILTERS)
def test_a_filter_survives_its_address_and_its_stored_text(wanted: Filter) -> None:
    assert parse({name: [value] for name, value in wanted.query()}) == wanted
    assert from_canonical(wanted.canonical()) == wanted


@given(FILTERS, FILTERS)
def test_different_filters_have_different_texts_and_digests(one: Filter, other: Filter) -> None:
    assert (one == other) == (one.canonical() == other.canonical()) == (one.digest() == other.digest())


@given(st.text() | st.from_regex(r'\{"(queue|code|redriven|min_age_ms)":("\w*"|-?\d+|true|null|NaN)\}', fullmatch=True))
def test_a_stored_text_is_read_exactly_or_refused(text: str) -> None:
    try:
        found = from_canonical(text)
    except FilterError:
        return
    assert found.canonical() == text
