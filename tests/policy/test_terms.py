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
    parse_span,
    parse_whole,
    preset,
    rate_text,
    slower,
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


def refusal(call, *given):
    """(template, values with the field, half-width form) of the InvalidPlan that it raises."""
    with pytest.raises(InvalidPlan) as refused:
        call(*given)
    assert refused.value.field == refused.value.values["field"]
    return refused.value.template, dict(refused.value.values), refused.value.offered


NO_RATE = (
    "The rate is a number of orders per second from 0.01 to 20000 with a point and at most three decimals, "
    "not %(given)s."
)
NO_SHARE = "The share is a percentage from 0.1 to 100 with at most one decimal, not %(given)s."
NO_WHOLE = "%(field)s is a whole number from %(low)s to %(high)s, not %(given)s."
NO_SPAN = "A span is written like 90s, 10m, 2h or 7d, from %(low)s to %(high)s, not %(given)s."
SPAN_BOUNDS = {"low": "1 s", "high": "2 min", "low_ms": 1_000, "high_ms": 120_000}


@pytest.mark.parametrize(
    ("call", "given", "template", "values", "offered"),
    [
        (parse_rate, ("x",), NO_RATE, {"field": "rate", "given": "'x'"}, ""),
        (parse_rate, ("１．５",), NO_RATE, {"field": "rate", "given": "'\\uff11\\uff0e\\uff15'"}, "1.5"),
        (parse_rate, (5, "steps"), NO_RATE, {"field": "steps", "given": "5"}, ""),
        (parse_percent, ("x",), NO_SHARE, {"field": "stop", "given": "'x'"}, ""),
        (parse_percent, ("５", "share"), NO_SHARE, {"field": "share", "given": "'\\uff15'"}, "5"),
        (parse_percent, (50,), NO_SHARE, {"field": "stop", "given": "50"}, ""),
        (parse_whole, ("7", "cap", 1, 6), NO_WHOLE, {"field": "cap", "low": 1, "high": 6, "given": "'7'"}, ""),
        (parse_whole, ("４", "cap", 5, 6), NO_WHOLE, {"field": "cap", "low": 5, "high": 6, "given": "'\\uff14'"}, "4"),
        (parse_whole, (5, "cap", 1, 6), NO_WHOLE, {"field": "cap", "low": 1, "high": 6, "given": "5"}, ""),
        (
            parse_span,
            ("soon", "budget", (1_000, 120_000)),
            NO_SPAN,
            SPAN_BOUNDS | {"field": "budget", "given": "'soon'"},
            "",
        ),
        (
            parse_span,
            ("５m", "budget", (1_000, 120_000)),
            NO_SPAN,
            SPAN_BOUNDS | {"field": "budget", "given": "'\\uff15m'"},
            "5m",
        ),
        (parse_span, (5, "wait", (1_000, 120_000)), NO_SPAN, SPAN_BOUNDS | {"field": "wait", "given": "5"}, ""),
    ],
)
def test_what_was_typed_is_refused_with_its_field_its_bounds_and_its_half_width_form(
    call, given, template, values, offered
):
    assert refusal(call, *given) == (template, values, offered)


@pytest.mark.parametrize(
    ("text", "low", "high", "ms"),
    [
        ("1s", 1_000, 1_000, 1_000),
        ("90s", 1_000, 90_000, 90_000),
        ("10m", 0, 10**9, 600_000),
        ("2h", 0, 10**9, 7_200_000),
        ("007d", 0, 604_800_000, 604_800_000),
        ("0s", 0, 5, 0),
        ("999999s", 0, 10**9, 999_999_000),
    ],
)
def test_a_span_is_read_exactly(text, low, high, ms):
    assert parse_span(text, "budget", (low, high)) == ms


@pytest.mark.parametrize("text", ["", "5", "s", "1 s", "-1s", "1.5h", "1S", "1w", "1s\n", "٣s", "1000000s"])
def test_what_is_no_span_is_refused_even_where_nothing_at_all_would_do(text):
    assert refusal(parse_span, text, "budget", (1, 10**12))[1]["given"] == ascii(text)


def test_a_span_is_refused_outside_its_bounds():
    for text in ("1s", "4s"):
        assert refusal(parse_span, text, "budget", (2_000, 3_000))[1]["given"] == ascii(text)


@pytest.mark.parametrize(
    ("text", "low", "high", "n"), [("5", 5, 5, 5), ("007", 1, 10, 7), ("9" * 12, 0, 10**13, 10**12 - 1)]
)
def test_a_whole_number_is_read_up_to_both_its_bounds(text, low, high, n):
    assert parse_whole(text, "cap", low, high) == n


@pytest.mark.parametrize(
    ("rate", "text"), [(10, "0.01"), (250, "0.25"), (5_000, "5"), (20_000_000, "20000"), (1_230, "1.23")]
)
def test_a_rate_is_written_as_short_as_can_be(rate, text):
    assert rate_text(rate) == text


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


TOO_LARGE = "The trial of %(canary)s is larger than the limit of %(cap)s orders."
TOO_FAST = "A step of %(step)s orders/s is above the rate of %(rate)s."
BOUNDS = {
    "rate_mj": ("rate", 10, 20_000_000),
    "canary": ("canary", 0, 1_000),
    "stop_permille": ("stop", 1, 1_000),
    "canary_wait_ms": ("canary_wait", 1_000, 86_400_000),
    "cap": ("cap", 1, 100_000_000),
    "max_dead_ms": ("max_dead", 1_000, 315_360_000_000),
    "max_attempts": ("max_attempts", 1, 100),
    "budget_ms": ("budget", 1_000, 2_592_000_000),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_each_number_of_the_terms_is_taken_up_to_both_its_bounds(name):
    field, low, high = BOUNDS[name]
    rest = {"rate_mj": 5_000, "canary": 0}
    for value in (low, high):
        terms = Terms(**(rest | {name: value}))
        assert check_terms(terms) is terms
    for value in (low - 1, high + 1, float(low), str(low), True):
        values = {"field": field, "low": low, "high": high, "given": "True" if value is True else repr(value)}
        assert refusal(check_terms, Terms(**(rest | {name: value}))) == (NO_WHOLE, values, "")


@pytest.mark.parametrize(
    ("more", "template", "values"),
    [
        ({"cap": 5, "canary": 6}, TOO_LARGE, {"field": "canary", "canary": 6, "cap": 5}),
        ({"steps": [(10, 1)]}, "There are at most %(most)s steps.", {"field": "steps", "most": 10}),
        ({"steps": ((10, 1),) * 11}, "There are at most %(most)s steps.", {"field": "steps", "most": 10}),
        ({"steps": ((10, 1, 1),)}, "A step is a rate and a number of seconds.", {"field": "steps"}),
        ({"steps": ((10, 1), [10, 1])}, "A step is a rate and a number of seconds.", {"field": "steps"}),
        ({"steps": ((5_250, 1),)}, TOO_FAST, {"field": "steps", "step": "5.25", "rate": "5"}),
        ({"steps": ((9, 1),)}, NO_WHOLE, {"field": "steps", "low": 10, "high": 20_000_000, "given": "9"}),
        (
            {"steps": ((20_000_001, 1),)},
            NO_WHOLE,
            {"field": "steps", "low": 10, "high": 20_000_000, "given": "20000001"},
        ),
        ({"steps": ((10, 0),)}, NO_WHOLE, {"field": "steps", "low": 1, "high": 86_400, "given": "0"}),
        ({"steps": ((10, 86_401),)}, NO_WHOLE, {"field": "steps", "low": 1, "high": 86_400, "given": "86401"}),
    ],
)
def test_terms_that_contradict_themselves_are_refused_whole(more, template, values):
    assert refusal(check_terms, Terms(5_000, **more)) == (template, values, "")


def test_ten_steps_up_to_the_rate_are_taken():
    terms = Terms(5_000, steps=((10, 1), *((5_000, 86_400),) * 9), cap=10, canary=10)
    assert check_terms(terms) is terms


def test_the_presets_are_terms_of_a_queue_with_this_rate():
    assert preset("careful", 5_000) == Terms(1_000, (), None, 10, 200, 600_000, None, None, None)
    assert preset("normal", 5_000) == Terms(5_000, (), None, 10, 500, 600_000, None, None, None)
    assert preset("careful", 1_234).rate_mj == 246
    assert (preset("careful", 49).rate_mj, preset("normal", 9).rate_mj) == (10, 10)


def test_steps_above_a_rate_are_brought_down_to_it():
    assert slower(((10, 1), (500, 20), (501, 30)), 500) == ((10, 1), (500, 20), (500, 30))
    assert slower((), 500) == ()


@pytest.mark.parametrize("rate", [10, 5_000, MAX_RATE_MJ])
def test_careful_is_slower_and_stops_sooner_than_normal(rate):
    careful, normal = preset("careful", rate), preset("normal", rate)
    assert check_terms(careful).rate_mj <= check_terms(normal).rate_mj
    assert careful.stop_permille < normal.stop_permille
    with pytest.raises(KeyError):
        preset("reckless", rate)
