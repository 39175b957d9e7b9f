"""A JSON line is an order, whole and as it stands, or one sentence that says why it is none."""

import pytest

from queue_app.policy.json_lines import MAX_DIGITS, read_json_lines
from queue_app.policy.lines import BadLine, Candidate, Line

NOT_CLEAR = "It has a payload and further keys beside it, so what belongs to the order is not clear."
NO_OBJECT, TOO_LONG = "The payload must be a JSON object.", "It holds an integer beyond 64 bits."


def only(text: str) -> Candidate | BadLine:
    (found,) = read_json_lines([Line(7, text)], queue="snacks")
    return found


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ('{"id":"a","quantity":1}', {"queue": "snacks", "id": "a", "quantity": 1, "payload": {}}),
        ('{"quantity":1}', {"queue": "snacks", "id": None, "quantity": 1, "payload": {}}),
        ('{"quantity":null,"id":5}', {"queue": "snacks", "id": 5, "quantity": None, "payload": {}}),
        (
            '{"id":"a","quantity":1,"queue":"drinks","order_key":"k","max_attempts":3,"deadline_ms":9,"x":"y"}',
            {
                "queue": "drinks", "id": "a", "quantity": 1, "order_key": "k", "max_attempts": 3, "deadline_ms": 9,
                "payload": {"x": "y"},
            },
        ),
        (
            '\t{"id":"a","quantity":1,"payload":{"x":{"y":[1]}}} ',
            {"queue": "snacks", "id": "a", "quantity": 1, "payload": {"x": {"y": [1]}}},
        ),
        ('{"id":"a","quantity":1,"queue":null}', {"queue": None, "id": "a", "quantity": 1, "payload": {}}),
        (
            '{"id":"a","quantity":%s}' % ("9" * MAX_DIGITS),
            {"queue": "snacks", "id": "a", "quantity": int("9" * MAX_DIGITS), "payload": {}},
        ),
    ],
)  # fmt: skip
def test_a_line_is_read_whole(text: str, order: dict[str, object]) -> None:
    assert only(text) == Candidate(7, order, len(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "It is not JSON (character 2 of the line)."),
        ('{"id":"a","quantity":1} x', "It is not JSON (character 25 of the line)."),
        ("x", "It is not JSON (character 1 of the line)."),
        ("[" * 60_000, "It is nested too deeply."),
        ("[]", "It is not a JSON object."),
        ("null", "It is not a JSON object."),
        ('{"a":1,"a":2}', "It has a key twice in one object."),
        ('{"quantity":NaN}', "It holds NaN, which JSON does not have."),
        ('{"quantity":-Infinity}', "It holds -Infinity, which JSON does not have."),
        ('{"quantity":%s}' % ("9" * (MAX_DIGITS + 1)), TOO_LONG),
        ('{"quantity":-%s}' % ("9" * MAX_DIGITS), TOO_LONG),
        ('{"id":"a"}', "The quantity is missing."),
        ('{"quantity":1,"payload":null}', NO_OBJECT),
        ('{"quantity":1,"payload":[]}', NO_OBJECT),
        ('{"quantity":1,"payload":{},"x":1}', NOT_CLEAR),
    ],
    ids=lambda value: value[:40],
)
def test_a_line_that_is_none_says_why_in_one_sentence(text: str, why: str) -> None:
    assert only(text) == BadLine(7, why)


def test_blank_lines_are_passed_over_and_a_broken_one_keeps_its_number_and_its_problem() -> None:
    lines = [
        Line(1, ""),
        Line(2, " \t"),
        Line(3, "{", "It is not UTF-8."),
        Line(4, "", "Cut."),
        Line(5, '{"quantity":1}'),
    ]
    assert list(read_json_lines(lines, queue="drinks")) == [
        BadLine(3, "It is not UTF-8."),
        BadLine(4, "Cut."),
        Candidate(5, {"queue": "drinks", "id": None, "quantity": 1, "payload": {}}, 14),
    ]
