"""How long something takes, in two units and never too short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.plans import InvalidPlan
from queue_app.policy.spans import UNITS, span_text, two_units
from queue_app.policy.terms import WAIT_MS, parse_span

SIZES = dict(UNITS)


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (1, "1 s"),
        (59_001, "1 min"),
        (114_400, "1 min 55 s"),  # 572 orders at 5/s
        (3_599_001, "1 h"),
        (3_600_000, "1 h"),
        (3_605_000, "1 h 1 min"),
        (86_340_001, "1 d"),
        (2 * 86_400_000 + 1, "2 d 1 h"),
        (400 * 86_400_000, "400 d"),
    ],
)
def test_a_span_is_said_in_two_units_and_rounded_up(ms, shown):
    assert span_text(ms) == shown


@given(st.integers(0, 10**12))
def test_what_is_said_is_never_shorter_and_at_most_one_smaller_unit_longer(ms):
    parts = two_units(ms)
    said = sum(n * SIZES[unit] * 1_000 for n, unit in parts)
    top = [unit for unit, _size in UNITS].index(parts[0][1])
    step = UNITS[min(top + 1, len(UNITS) - 1)][1]
    assert ms <= said < ms + step * 1_000
    assert all(n > 0 for n, _unit in parts) or ms == 0


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)])
def test_a_span_is_read_exactly(text, ms):
    assert parse_span(text, "canary_wait", WAIT_MS) == ms


@pytest.mark.parametrize("text", ["", "10", "10 m", "0s", "2d", "1w", "-1m", "１０m", "1.5h", "9" * 7 + "s", None, 5])
def test_what_is_no_span_within_bounds_gets_a_sentence_with_the_bounds(text):
    with pytest.raises(InvalidPlan, match="from 1 s to 1 d, not") as refused:
        parse_span(text, "canary_wait", WAIT_MS)
    assert refused.value.field == "canary_wait"
    assert refused.value.offered == ("10m" if text == "１０m" else "")
