"""Which events of the record an address asks for, the whole refusal of what it may not, and what a target stands for."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from queue_app.policy.audit_filters import AuditFilter, parse, place
from queue_app.policy.filter_words import FilterError, Problem
from queue_app.policy.orders import MAX_INSTANT_MS

FULL = AuditFilter("oda", "plan.ask", "R-12", 5, 9, refused=True, steps=True)
FULL_QUERY = [
    ("who", "oda"),
    ("action", "plan.ask"),
    ("target", "R-12"),
    ("from", "5"),
    ("to", "9"),
    ("outcome", "refused"),
    ("steps", "yes"),
]


def test_a_filter_survives_its_address_and_has_one_text() -> None:
    assert FULL.query() == FULL_QUERY
    assert parse({name: [value] for name, value in FULL_QUERY}, zone=UTC) == FULL
    assert FULL.canonical() == (
        '{"action":"plan.ask","from":"5","outcome":"refused","steps":"yes","target":"R-12","to":"9","who":"oda"}'
    )
    assert AuditFilter().query() == []
    assert AuditFilter(from_ms=0).query() == [("from", "0")]
    assert parse({}, zone=UTC) == AuditFilter(None, None, None, None, None, refused=False, steps=False)


@pytest.mark.parametrize(
    ("wanted", "active"),
    [
        (AuditFilter(), False),
        (AuditFilter(steps=True), False),
        (AuditFilter(refused=True), True),
        (AuditFilter(who="oda", steps=True), True),
        (AuditFilter(from_ms=0), True),
    ],
)
def test_a_filter_is_active_when_it_leaves_something_out(wanted: AuditFilter, active: bool) -> None:
    assert wanted.active is active


@pytest.mark.parametrize(
    ("target", "stored"),
    [
        (None, None),
        ("R-12", "plan:12"),
        ("r-7", "plan:7"),
        ("R-0", "job:R-0"),
        ("R-12x", "job:R-12x"),
        ("plan:12", "plan:12"),
        ("group:snacks/a/b:c", "group:snacks/a/b:c"),
        ("worker:w-1", "worker:w-1"),
        ("page:overview", "page:overview"),
        ("queue", "queue"),
        ("o1:2", "job:o1:2"),
        ("o12-1", "job:o12-1"),
        ("R-" + "9" * 18, "plan:" + "9" * 18),
        ("R-" + "9" * 19, "job:R-" + "9" * 19),
    ],
)
def test_a_target_is_what_is_stored_or_what_people_say_for_it(target: str | None, stored: str | None) -> None:
    assert AuditFilter(target=target).stored_target == stored


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"who": ["  X oda X "]}, AuditFilter(who="X oda X")),
        ({"who": ["é" * 150], "action": ["a" * 48]}, AuditFilter(who="é" * 150, action="a" * 48)),
        ({"target": ["x" * 128], "outcome": ["refused"]}, AuditFilter(target="x" * 128, refused=True)),
        ({"who": [], "action": [""], "target": ["  "], "from": [""], "steps": []}, AuditFilter()),
        ({"page": ["1", "2"], "before": ["x"], "steps": ["yes"]}, AuditFilter(steps=True)),
        ({"page": ["1"], "who": ["oda"]}, AuditFilter(who="oda")),
        ({"from": ["0"], "to": [str(MAX_INSTANT_MS)]}, AuditFilter(from_ms=0, to_ms=MAX_INSTANT_MS)),
        ({"from": ["000000000000007"], "to": ["8"]}, AuditFilter(from_ms=7, to_ms=8)),
        ({"to": ["0"]}, AuditFilter(to_ms=0)),
        ({"from": ["1970-01-02"]}, AuditFilter(from_ms=86_400_000)),
    ],
)
def test_an_address_asks_for(given: Mapping[str, Sequence[str]], wanted: AuditFilter) -> None:
    assert parse(given, zone=UTC, passed_over=("page", "before")) == wanted


def test_a_local_time_that_passes_twice_is_the_first_at_the_beginning_and_the_second_at_the_end() -> None:
    zone, text = ZoneInfo("Europe/Berlin"), "2026-10-25T02:30"
    assert parse({"from": [text], "to": [text]}, zone=zone) == AuditFilter(
        from_ms=1_792_888_200_000, to_ms=1_792_891_800_000
    )


NO_TIME = "A time is written like 2026-11-29T02:30, within the years 1970 to 9999, not %(value)s."
NO_ACTION = "An action does not look like %(value)s."
NO_TARGET = "What it was about does not look like %(value)s."
NO_OUTCOME = "The outcome is refused, not %(value)s."
NO_STEPS = "It is yes or nothing, not %(value)s."
NO_NAME = Problem("who", "shape", "A name has at most 150 characters.")
LONG = {"value": "'" + "x" * 40 + "'..."}


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({"colour": ["red"]}, [Problem("", "unknown", "There is no filter %(value)s.", {"value": "'colour'"})]),
        ({"who": ["a", "a"]}, [Problem("who", "twice", "It is given more than once; give it once.")]),
        ({"who": ["x" * 151]}, [NO_NAME]),
        ({"who": ["a\nb"]}, [NO_NAME]),
        ({"who": ["\ta"]}, [NO_NAME]),
        ({"action": ["Plan"]}, [Problem("action", "shape", NO_ACTION, {"value": "'Plan'"})]),
        ({"action": ["ｐlan"]}, [Problem("action", "shape", NO_ACTION, {"value": "'\\uff50lan'"}, "plan")]),
        ({"action": ["x" * 49]}, [Problem("action", "shape", NO_ACTION, LONG)]),
        ({"target": ["x" * 129]}, [Problem("target", "shape", NO_TARGET, LONG)]),
        ({"target": ["a b"]}, [Problem("target", "shape", NO_TARGET, {"value": "'a b'"})]),
        ({"outcome": ["fine"]}, [Problem("outcome", "shape", NO_OUTCOME, {"value": "'fine'"})]),
        ({"steps": ["no"]}, [Problem("steps", "shape", NO_STEPS, {"value": "'no'"})]),
        ({"steps": ["ｙes"]}, [Problem("steps", "shape", NO_STEPS, {"value": "'\\uff59es'"}, "yes")]),
        ({"from": ["soon"]}, [Problem("from", "shape", NO_TIME, {"value": "'soon'"})]),
        ({"to": ["253402300800000"]}, [Problem("to", "shape", NO_TIME, {"value": "'253402300800000'"})]),
        ({"to": ["0000000000000012"]}, [Problem("to", "shape", NO_TIME, {"value": "'0000000000000012'"})]),
        ({"from": ["1" * 5_000]}, [Problem("from", "shape", NO_TIME, {"value": "'" + "1" * 40 + "'..."})]),
        ({"from": ["٣"]}, [Problem("from", "shape", NO_TIME, {"value": "'\\u0663'"})]),
        ({"from": ["5"], "to": ["5"]}, [Problem("to", "order", "The end must be after the beginning.")]),
        (
            {"steps": ["1"], "from": ["x"], "to": ["3"], "whose": ["oda"]},
            [
                Problem("", "unknown", "There is no filter %(value)s.", {"value": "'whose'"}),
                Problem("steps", "shape", NO_STEPS, {"value": "'1'"}),
                Problem("from", "shape", NO_TIME, {"value": "'x'"}),
            ],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(given: Mapping[str, Sequence[str]], problems: list[Problem]) -> None:
    with pytest.raises(FilterError) as caught:
        parse(given, zone=UTC)
    assert caught.value.problems == tuple(problems)


@pytest.mark.parametrize(("given", "told"), [(1, 1), (10, 10), (11, 11), (12, 11), (1_000, 11)])
def test_a_long_list_of_mistakes_is_cut_short(given: int, told: int) -> None:
    with pytest.raises(FilterError) as caught:
        parse({f"f{n}": ["x"] for n in range(given)}, zone=UTC)
    assert len(caught.value.problems) == told


@pytest.mark.parametrize(
    ("text", "seq"),
    [
        ("0", 0),
        ("12", 12),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("", None),
        ("-1", None),
        ("٣", None),
        ("1\n", None),
    ],
)
def test_a_page_begins_at_a_number(text: str, seq: int | None) -> None:
    assert place(text) == seq
