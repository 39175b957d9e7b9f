"""How a redrive is to be carried out: numbers as typed, exactly, and their bounds."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.plans import InvalidPlan
from queue_app.policy.terms import (
    MAX_RATE_MJ,
    MIN_RATE_MJ,
    Terms,
    check_terms,
    parse_percent,
    parse_rate,
    parse_whole,
    preset,
    rate_text,
)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("0.01", 10),
        ("0.1", 100),
        ("1", 1_000),
        ("5.0", 5_000),
        ("0.25", 250),
        ("007", 7_000),
        ("20000", MAX_RATE_MJ),
        ("20000.000", MAX_RATE_MJ),
        ("0.29", 290),
    ],
)
def test_a_rate_is_read_exactly(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0.009",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1\n",
        "1e9",
        "NaN",
        "inf",
        "1,5",
        "20,000",
        "20000.001",
        "1.0001",
        "٣",
        "1_0",
        "0x1",
        ".5",
        "1.",
        "9" * 400,
        5,
        1.5,
        None,
        True,
        b"1",
    ],
)
def test_what_is_no_rate_is_refused_with_one_sentence(text):
    with pytest.raises(InvalidPlan, match=r"0\.01 to 20000") as refused:
        parse_rate(text)
    assert refused.value.field == "rate"


def test_a_full_width_rate_is_offered_in_half_width():
    with pytest.raises(InvalidPlan) as refused:
        parse_rate("１．５")
    assert refused.value.offered == "1.5"


@given(st.integers(MIN_RATE_MJ, MAX_RATE_MJ))
def test_a_rate_written_down_reads_back_the_same(rate):
    assert parse_rate(rate_text(rate)) == rate
    assert Decimal(rate_text(rate)) * 1_000 == rate


@pytest.mark.parametrize(("text", "share"), [("50", 500), ("0.1", 1), ("100", 1_000), ("100.0", 1_000), ("33.3", 333)])
def test_a_share_is_read_exactly(text, share):
    assert parse_percent(text) == share


@pytest.mark.parametrize("text", ["0", "0.0", "100.1", "101", "-1", "1.55", "50%", "", "1e1", None, 50])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(InvalidPlan):
        parse_percent(text)


@pytest.mark.parametrize("text", ["", "0", "11", "-1", "1.0", "１", "1" * 400, " 1", None, 1])
def test_what_is_no_whole_number_in_its_bounds_is_refused(text):
    with pytest.raises(InvalidPlan, match="whole number from 1 to 10"):
        parse_whole(text, "cap", 1, 10)


GOOD = Terms(5_000)


@pytest.mark.parametrize(
    "terms",
    [
        GOOD,
        Terms(10),
        Terms(MAX_RATE_MJ, canary=0),
        Terms(5_000, cap=10, canary=10),
        Terms(5_000, steps=((10, 1), (5_000, 86_400))),
    ],
)
def test_good_terms_stay_as_they_are(terms):
    assert check_terms(terms) is terms


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"rate_mj": 9}, "rate"),
        ({"rate_mj": MAX_RATE_MJ + 1}, "rate"),
        ({"rate_mj": True}, "rate"),
        ({"rate_mj": 5_000.0}, "rate"),
        ({"rate_mj": "5000"}, "rate"),
        ({"rate_mj": float("nan")}, "rate"),
        ({"rate_mj": 10**400}, "rate"),
        ({"canary": -1}, "canary"),
        ({"canary": 1_001}, "canary"),
        ({"canary": True}, "canary"),
        ({"cap": 5, "canary": 6}, "canary"),
        ({"cap": 0, "canary": 0}, "cap"),
        ({"cap": 10**9}, "cap"),
        ({"stop_permille": 0}, "stop"),
        ({"stop_permille": 1_001}, "stop"),
        ({"canary_wait_ms": 0}, "canary_wait"),
        ({"max_dead_ms": 0}, "max_dead"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 101}, "max_attempts"),
        ({"budget_ms": 10**15}, "budget"),
        ({"steps": [(10, 1)]}, "steps"),
        ({"steps": ((10,),)}, "steps"),
        ({"steps": ((10, 0),)}, "steps"),
        ({"steps": ((5_001, 1),)}, "steps"),
        ({"steps": ((10, 1),) * 11}, "steps"),
    ],
)
def test_bad_terms_are_refused_by_field(more, field):
    with pytest.raises(InvalidPlan) as refused:
        check_terms(Terms(**({"rate_mj": 5_000} | more)))
    assert refused.value.field == field


@pytest.mark.parametrize("rate", [10, 5_000, MAX_RATE_MJ])
def test_careful_is_slower_and_stops_sooner_than_normal(rate):
    careful, normal = preset("careful", rate), preset("normal", rate)
    assert check_terms(careful).rate_mj <= check_terms(normal).rate_mj
    assert careful.stop_permille < normal.stop_permille
    with pytest.raises(KeyError):
        preset("reckless", rate)
