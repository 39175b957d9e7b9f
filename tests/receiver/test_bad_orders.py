"""Whatever is sent, the answer is 4xx with one sentence, and nothing is written."""

import json

import pytest

from queue_app.receiver import strict_json
from queue_app.receiver.orders import is_id
from tests.receiver.http_client import request, totals

KEY = [("Idempotency-Key", "a")]
NOTHING = {"keys": 0, "stock": 0, "writes": 0, "requests": 0}


def post(url, body, headers=KEY):
    return request(url, "POST", "/orders", body, headers)


def refused(url, body, status, headers=KEY):
    reply = post(url, body, headers)
    assert reply.status == status
    assert reply.document["ok"] is False
    assert reply.document["error"].endswith(".")
    assert "Traceback" not in reply.document["error"]
    assert totals(url) == NOTHING
    return reply.document["error"]


BAD_IDS = [
    *[
        "",
        "x" * 65,
        " a",
        "a ",
        "a\n",
        "a\0b",
        "-a",
        "..",
        "../x",
        "a/b",
        "a%2Fb",
        "a?x",
        "а",
        "ａ",
        "\u212a",
        "ｱ",
        "é",
        "e\u0301",
    ],
    *["a\u202eb", "a\u200bb", "\ufeffa", "😀", "\ud800", "__proto__", "<script>", "'; --", "%", "_", ".", "x" * 50_000],
    *[5, True, None, 1.5, ["a"], {"id": "a"}],
]


@pytest.mark.parametrize("order_id", BAD_IDS, ids=lambda value: ascii(value)[:20])
def test_an_id_outside_the_grammar_is_refused(url, order_id):
    refused(url, json.dumps({"id": order_id, "quantity": 1}).encode(), 422)


BAD_QUANTITIES = [
    *["true", "false", "1.0", "1e3", "1E2", '"1"', '"１"', '"1_000"', "-0", "0", "-1", "1000001", "1.5", "0.1"],
    *[str(2**31), str(2**63), str(2**64), "1" * 900, "1e400", "-1e400", "null", "[]", "{}", "[1]", '""'],
]


@pytest.mark.parametrize("quantity", BAD_QUANTITIES, ids=lambda text: text[:12])
def test_a_quantity_that_is_no_whole_number_in_bounds_is_refused(url, quantity):
    refused(url, b'{"id": "a", "quantity": %s}' % quantity.encode(), 422)


@pytest.mark.parametrize("fields", ["{}", '{"quantity": 1}', '{"id": "a"}', '{"ID": "a", "Quantity": 1}'])
def test_a_missing_field_is_refused(url, fields):
    refused(url, fields.encode(), 422)


UNREADABLE = {
    "empty": b"",
    "not json": b"id=a&quantity=1",
    "cut": b'{"id": "a", "quantity": 1',
    "list": b'[{"id": "a", "quantity": 1}]',
    "text": b'"a"',
    "number": b"1",
    "null": b"null",
    "two documents": b'{"id": "a", "quantity": 1} {}',
    "single quotes": b"{'id': 'a', 'quantity': 1}",
    "leading plus": b'{"id": "a", "quantity": +1}',
    "underscore": b'{"id": "a", "quantity": 1_000}',
    "full width digit": '{"id": "a", "quantity": １}'.encode(),
    "id twice": b'{"id": "a", "id": "a", "quantity": 1}',
    "quantity twice": b'{"id": "a", "quantity": 1, "quantity": 2}',
    "payload key twice": b'{"id": "a", "quantity": 1, "payload": {"x": 1, "x": 1}}',
    "NaN": b'{"id": "a", "quantity": NaN}',
    "Infinity": b'{"id": "a", "quantity": 1, "payload": -Infinity}',
    "byte order mark": b'\xef\xbb\xbf{"id": "a", "quantity": 1}',
    "UTF-16": '{"id": "a", "quantity": 1}'.encode("utf-16"),
    "not UTF-8": b'{"id": "a", "quantity": 1, "payload": "\xff"}',
    "NUL": b'{"id": "a", "quantity": 1}\0',
    "raw newline in text": b'{"id": "a", "quantity": 1, "payload": "x\ny"}',
    "deep list": b'{"id": "a", "quantity": 1, "payload": ' + b"[" * 200 + b"]" * 200 + b"}",
    "deep, never closed": b"[" * 60_000,
    "deep objects": b'{"a":' * 10_000,
    "5,000 digits": b'{"id": "a", "quantity": ' + b"1" * 5_000 + b"}",
    "quotes without end": b'"' + b'\\"' * 30_000,
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_body_that_has_no_single_reading_is_refused(url, body):
    refused(url, body, 400)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Idempotency-Key", "")],
        [("Idempotency-Key", "b")],
        [("Idempotency-Key", "A")],
        [("Idempotency-Key", "a"), ("Idempotency-Key", "a")],
        [("Idempotency-Key", "a"), ("idempotency-key", "b")],
        [("Idempotency-Key", "a, a")],
        [("X-Idempotency-Key", "a")],
    ],
    ids=str,
)
def test_the_key_must_be_there_once_and_equal_the_id(url, headers):
    refused(url, b'{"id": "a", "quantity": 1}', 400, headers)


def test_a_refusal_never_quotes_what_was_sent(url):
    error = refused(url, b'{"id": "se cret", "quantity": 1}', 422)
    assert "se cret" not in error


def test_brackets_inside_texts_are_no_depth(url):
    body = json.dumps({"id": "a", "quantity": 1, "payload": {"x": "[" * 500 + '"' + "{" * 500 + "\\"}}).encode()
    assert post(url, body).status == 201


def test_a_payload_as_deep_as_the_limit_is_taken(url):
    depth = strict_json.MAX_DEPTH - 1
    body = b'{"id": "a", "quantity": 1, "payload": ' + b"[" * depth + b"]" * depth + b"}"
    assert post(url, body).status == 201


def test_an_id_is_checked_to_its_end():
    assert is_id("a")
    assert not is_id("a\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/orders", 405),
        ("PUT", "/orders", 405),
        ("DELETE", "/orders", 405),
        ("HEAD", "/orders", 405),
        ("OPTIONS", "/orders", 405),
        ("TRACE", "/orders", 405),
        ("PATCH", "/ledger", 405),
        ("BREW", "/livez", 405),
        ("GET", "/", 404),
        ("GET", "/orders/", 404),
        ("GET", "/Orders", 404),
        ("GET", "/%6frders", 404),
        ("GET", "/../ledger", 404),
        ("GET", "/%ff", 404),
    ],
)
def test_other_methods_and_addresses_are_refused(url, method, path, status):
    reply = request(url, method, path)
    assert reply.status == status
    assert (reply.status == 405) == ("Allow" in reply.headers)
    assert totals(url) == NOTHING


def test_a_method_cannot_be_overridden_by_a_header(url):
    assert request(url, "GET", "/orders", headers=[("X-HTTP-Method-Override", "POST"), *KEY]).status == 405


def test_a_web_page_cannot_use_its_readers_machine_to_order(url):
    refused(url, b'{"id": "a", "quantity": 1}', 403, [*KEY, ("Origin", "https://elsewhere.example")])
