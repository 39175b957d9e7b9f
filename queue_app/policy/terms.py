"""How a redrive is to be carried out: pace, trial, limits and the new budget, as plain values with their bounds.

Numbers that people type come as text and are read exactly: no float ever touches a rate.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from queue_app.policy.errors import gettext_noop
from queue_app.policy.orders import MAX_ATTEMPTS
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.refusals import half_width, shown
from queue_app.policy.spans import span_text

MIN_RATE_MJ, MAX_RATE_MJ = 10, 20_000_000  # thousandths of a job per second: 0.01 to 20,000 jobs/s
MAX_CAP = 100_000_000
MAX_CANARY = 1_000
MAX_STEPS = 10
MAX_STEP_S = 86_400
DAY_MS = 86_400_000
WAIT_MS = (1_000, DAY_MS)
BUDGET_MS = (1_000, 30 * DAY_MS)
DEAD_MS = (1_000, 3_650 * DAY_MS)

_RATE = re.compile(r"([0-9]{1,5})(?:\.([0-9]{1,3}))?")
_PERCENT = re.compile(r"([0-9]{1,3})(?:\.([0-9]))?")
_WHOLE = re.compile(r"[0-9]{1,12}")
_SPAN = re.compile(r"([0-9]{1,6})(s|m|h|d)")
_SPAN_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}

Steps = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """Rates in thousandths of a job/s (`_mj`), the share in permille, durations in ms; None means no such limit.

    `steps` are (rate, seconds) that lead up to `rate_mj`; `cap` takes the first N, oldest first; `canary` 0 means no
    trial; `max_attempts` and `budget_ms` None keep the order's own tries and grant the queue's usual time.
    """

    rate_mj: int
    steps: Steps = ()
    cap: int | None = None
    canary: int = 10
    stop_permille: int = 500
    canary_wait_ms: int = 600_000
    max_dead_ms: int | None = None
    max_attempts: int | None = None
    budget_ms: int | None = None


def preset(name: str, queue_rate_mj: int) -> Terms:
    """The terms behind `careful` and `normal` for a queue with this usual rate. KeyError for another name."""
    return {
        "careful": Terms(max(MIN_RATE_MJ, queue_rate_mj // 5), canary=10, stop_permille=200),
        "normal": Terms(max(MIN_RATE_MJ, queue_rate_mj), canary=10, stop_permille=500),
    }[name]


def parse_rate(text: object, field: str = "rate") -> int:
    """Jobs per second as typed (`5`, `0.25`) to thousandths: 0.01 to 20,000, at most three decimals. InvalidPlan."""
    match = _RATE.fullmatch(text) if type(text) is str else None
    if match:
        rate = int(match[1]) * 1_000 + int((match[2] or "").ljust(3, "0"))
        if MIN_RATE_MJ <= rate <= MAX_RATE_MJ:
            return rate
    raise _refusal(
        gettext_noop(
            "The rate is a number of orders per second from 0.01 to 20000 with a point and at most three decimals, "
            "not %(given)s."
        ),
        field,
        text,
        _RATE,
    )


def rate_text(rate_mj: int) -> str:
    """Thousandths back to the shortest text that `parse_rate` reads: 5000 is "5", 250 is "0.25"."""
    whole, rest = divmod(rate_mj, 1_000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".")


def parse_percent(text: object, field: str = "stop") -> int:
    """A share as typed in percent (`50`, `0.5`) to permille: 0.1 to 100 with at most one decimal. InvalidPlan."""
    match = _PERCENT.fullmatch(text) if type(text) is str else None
    if match:
        share = int(match[1]) * 10 + int(match[2] or "0")
        if 1 <= share <= 1_000:
            return share
    raise _refusal(
        gettext_noop("The share is a percentage from 0.1 to 100 with at most one decimal, not %(given)s."),
        field,
        text,
        _PERCENT,
    )


def parse_whole(text: object, field: str, low: int, high: int) -> int:
    """A whole number as typed, in plain digits. InvalidPlan."""
    if type(text) is str and _WHOLE.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise _refusal(_WHOLE_SENTENCE, field, text, _WHOLE, low=low, high=high)


_WHOLE_SENTENCE = gettext_noop("%(field)s is a whole number from %(low)s to %(high)s, not %(given)s.")


def parse_span(text: object, field: str, bounds: tuple[int, int]) -> int:
    """A span as typed (`90s`, `10m`, `2h`, `7d`) in ms, within bounds (lowest, highest in ms).

    InvalidPlan, with the bounds also as `low_ms` and `high_ms` for those who say them in another language.
    """
    match = _SPAN.fullmatch(text) if type(text) is str else None
    ms = int(match[1]) * _SPAN_MS[match[2]] if match else 0
    low, high = bounds
    if low <= ms <= high:
        return ms
    values = {"low": span_text(low), "high": span_text(high), "low_ms": low, "high_ms": high}
    raise _refusal(_SPAN_SENTENCE, field, text, _SPAN, **values)


_SPAN_SENTENCE = gettext_noop("A span is written like 90s, 10m, 2h or 7d, from %(low)s to %(high)s, not %(given)s.")


def check_terms(terms: Terms) -> Terms:
    """The terms as they are, or InvalidPlan with the field that is wrong. Types are exact: True and 1.0 are no numbers."""
    for field, value, low, high in (
        ("rate", terms.rate_mj, MIN_RATE_MJ, MAX_RATE_MJ),
        ("canary", terms.canary, 0, MAX_CANARY),
        ("stop", terms.stop_permille, 1, 1_000),
        ("canary_wait", terms.canary_wait_ms, *WAIT_MS),
    ):
        _check_whole(field, value, low, high)
    for field, limit, low, high in (
        ("cap", terms.cap, 1, MAX_CAP),
        ("max_dead", terms.max_dead_ms, *DEAD_MS),
        ("max_attempts", terms.max_attempts, 1, MAX_ATTEMPTS),
        ("budget", terms.budget_ms, *BUDGET_MS),
    ):
        if limit is not None:
            _check_whole(field, limit, low, high)
    if terms.cap is not None and terms.cap < terms.canary:
        raise InvalidPlan(
            gettext_noop("The trial of %(canary)s is larger than the limit of %(cap)s orders."),
            field="canary",
            canary=terms.canary,
            cap=terms.cap,
        )
    _check_steps(terms.steps, terms.rate_mj)
    return terms


def _check_steps(steps: object, rate_mj: int) -> None:
    if type(steps) is not tuple or len(steps) > MAX_STEPS:
        raise InvalidPlan(gettext_noop("There are at most %(most)s steps."), field="steps", most=MAX_STEPS)
    for step in steps:
        if type(step) is not tuple or len(step) != 2:
            raise InvalidPlan(gettext_noop("A step is a rate and a number of seconds."), field="steps")
        _check_whole("steps", step[0], MIN_RATE_MJ, MAX_RATE_MJ)
        _check_whole("steps", step[1], 1, MAX_STEP_S)
        if step[0] > rate_mj:
            raise InvalidPlan(
                gettext_noop("A step of %(step)s orders/s is above the rate of %(rate)s."),
                field="steps",
                step=rate_text(step[0]),
                rate=rate_text(rate_mj),
            )


def _check_whole(field: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise InvalidPlan(_WHOLE_SENTENCE, field=field, low=low, high=high, given=shown(value))


def _refusal(template: str, field: str, given: object, allowed: re.Pattern[str], **values: object) -> InvalidPlan:
    offered = half_width(given, allowed) if isinstance(given, str) else None
    return InvalidPlan(template, field=field, offered=offered or "", given=shown(given), **values)


def slower(steps: Sequence[tuple[int, int]], rate_mj: int) -> Steps:
    """The steps, none of them above this rate."""
    return tuple((min(rate, rate_mj), seconds) for rate, seconds in steps)
