"""JSON lines to orders: a payload under one key or as all others; a bad line is named with why and costs only itself."""

import json

import pytest

from queue_app.policy.order_files import read_orders
from queue_app.policy.orders import check_order
from tests.policy.readers import BAD_QUANTITY, only, outcome


def test_an_empty_json_lines_file_holds_no_orders():
    assert list(read_orders([b"\n"], name="x.jsonl")) == []


GOOD_JSON = {
    '{"id":"a","quantity":1}': {},
    '{"id":"a","quantity":1,"payload":{"x":[1.0,true,null]}}': {"x": [1.0, True, None]},
    '{"id":"a","quantity":1,"x":"y","deadline_ms":5,"max_attempts":null}': {"x": "y"},
    ' {"id":"a","quantity":1,"queue":"drinks","order_key":"k"}\t': {},
}


@pytest.mark.parametrize(("text", "payload"), GOOD_JSON.items())
def test_a_json_line_has_its_payload_under_one_key_or_as_all_further_keys(text, payload):
    entry = only(text.encode(), form="jsonl")
    assert entry.order["payload"] == payload
    assert check_order(**entry.order).id == "a"
    assert entry.order["queue"] == json.loads(text).get("queue", "snacks")


BAD_JSON = {
    '{"id":"a","quantity":1': "It is not JSON",
    '{"id":"a","quantity":1} secret': "It is not JSON",
    "{'id':'a'}": "It is not JSON",
    '[{"id":"a","quantity":1}]': "It is not a JSON object.",
    "5": "It is not a JSON object.",
    '{"id":"a","id":"b","quantity":1}': "It has a key twice in one object.",
    '{"id":"a","quantity":1,"payload":{"secret":1,"secret":2}}': "It has a key twice in one object.",
    '{"quantity":1}': "The id is missing.",
    '{"id":"a"}': "The quantity is missing.",
    '{"id":5,"quantity":1}': "The id must be",
    '{"id":null,"quantity":1}': "The id is missing.",
    '{"id":"a\\ud800","quantity":1}': "The id must be",
    '{"id":"a","quantity":0}': BAD_QUANTITY,
    '{"id":"a","quantity":-0}': BAD_QUANTITY,
    '{"id":"a","quantity":1.0}': BAD_QUANTITY,
    '{"id":"a","quantity":1e3}': BAD_QUANTITY,
    '{"id":"a","quantity":1e400}': BAD_QUANTITY,
    '{"id":"a","quantity":true}': BAD_QUANTITY,
    '{"id":"a","quantity":"1"}': BAD_QUANTITY,
    '{"id":"a","quantity":null}': BAD_QUANTITY,
    '{"id":"a","quantity":NaN}': "It holds NaN",
    '{"id":"a","quantity":' + "9" * 20 + "}": BAD_QUANTITY,
    '{"id":"a","quantity":' + "9" * 9_000 + "}": "It holds an integer beyond 64 bits.",
    '{"id":"a","quantity":1,"payload":null}': "The payload must be a JSON object.",
    '{"id":"a","quantity":1,"payload":["secret"]}': "The payload must be a JSON object.",
    '{"id":"a","quantity":1,"payload":{},"secret":1}': "It has a payload and further keys",
    '{"id":"a","quantity":1,"x":"secret\\u0000"}': "it holds the character NUL",
    '{"id":"a","quantity":1,"x":"secret\\ud800"}': "it holds a lone surrogate",
    '{"id":"a","quantity":1,"x":1e400}': "NaN or Infinity",
    '{"id":"a","quantity":1,"x":' + "[" * 100 + "]" * 100 + "}": "nested deeper than 64 levels",
    '{"id":"a","quantity":1,"x":' + "[" * 30_000 + "]" * 30_000 + "}": "nested",
    "[" * 60_000: "nested",
    '{"id":"a","quantity":1,"queue":null}': "The queue must be",
    '{"id":"a","quantity":1,"now_ms":"' + "x" * 16_400 + '"}': "larger than 16,384 bytes",
}


@pytest.mark.parametrize(("text", "why"), BAD_JSON.items(), ids=lambda value: repr(value)[:48])
def test_a_bad_json_line_is_named_with_why_and_its_neighbours_are_read(text, why):
    good = '{"id":"%s","quantity":1}'
    found = outcome("\n".join([good % "before", text, good % "after"]).encode(), form="jsonl")
    assert why in found.pop(2)
    assert found == {1: "before", 3: "after"}
