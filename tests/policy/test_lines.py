"""Bytes to lines, lines to records, records to orders: a bad line is named with why and costs only itself."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.errors import InvalidOrder
from queue_app.policy.lines import BadLine, Candidate, Line, NotReadable, text_lines
from queue_app.policy.order_files import read_orders
from queue_app.policy.orders import check_order

SAMPLE = Path(__file__).resolve().parents[2] / "queue_app" / "sample" / "snack-orders.tsv"
BOM = b"\xef\xbb\xbf"


def outcome(data, **named):
    """{line: id or why it was refused}, by the reader and then by the gate of an order."""
    found = {}
    for entry in read_orders([data] if isinstance(data, bytes) else data, **named):
        assert entry.line not in found
        if isinstance(entry, BadLine):
            found[entry.line] = entry.why
        else:
            try:
                found[entry.line] = check_order(**entry.order).id
            except InvalidOrder as error:
                found[entry.line] = str(error)
    assert all(why.isascii() and "secret" not in why for why in found.values())
    return found


def only(data, **named):
    (entry,) = read_orders([data], **named)
    return entry


@given(st.binary(max_size=60), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_bytes_arrive(data, step):
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    assert list(text_lines(pieces, limit=5)) == list(text_lines([data], limit=5))


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\n\na", ["", "", "a"]),
        (BOM + b"a\n" + BOM + b"b\n", ["a", "\ufeffb"]),
        (b"12345\r\n12345", ["12345", "12345"]),
        ("\u00e9\u5bff\u2028x\u0085y\n".encode(), ["\u00e9\u5bff\u2028x\u0085y"]),
    ],
)
def test_a_line_ends_at_lf_or_cr_lf_only(data, texts):
    limit = 5 if b"12345" in data else 65_536
    assert list(text_lines([data], limit=limit)) == [Line(n, text) for n, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    ("line", "blank"),
    [(Line(1, ""), True), (Line(1, "  "), True), (Line(1, "\t"), False), (Line(1, "X"), False), (Line(1, "", "Cut."), False)],
)  # fmt: skip
def test_nothing_but_spaces_is_blank(line, blank):
    assert line.blank is blank


@pytest.mark.parametrize("data", [b"123456", b"123456\r\n", b"123456789\n", b"12345\r\r\n"])
def test_a_line_over_the_limit_keeps_its_beginning_and_a_reason(data):
    (line,) = text_lines([data], limit=5)
    assert line == Line(1, "12345", "It is longer than 5 bytes.")


def test_a_line_over_the_limit_is_one_however_its_end_arrives():
    for pieces in ([b"12345\r", b"\r\n"], [b"12345", b"\r\r\n"], [b"1234", b"5\r\r", b"\n"]):
        assert list(text_lines(pieces, limit=5)) == [Line(1, "12345", "It is longer than 5 bytes.")]


def test_an_endless_line_is_never_held_whole():
    pieces = (b"x" * 65_536 for _ in range(800))
    tracemalloc.start()
    assert [len(line.text) for line in text_lines(pieces)] == [65_536]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


BAD_QUANTITY = "The quantity must be a whole number from 1 to 1,000,000"
BAD_ROWS = {
    b"\t1\tx": "The id is missing.",
    b"a b\t1\tx": "The id must be",
    b"caf\xc3\xa9\t1\tx": "The id must be",
    b"a\0b\t1\tx": "The id must be",
    b"a\t\tx": "The quantity is missing.",
    b"a\t0\tx": BAD_QUANTITY,
    b"a\t-1\tx": BAD_QUANTITY,
    b"a\t1.5\tx": BAD_QUANTITY,
    b"a\ttrue\tx": BAD_QUANTITY,
    b"a\t1e3\tx": BAD_QUANTITY,
    b"a\t+1\tx": BAD_QUANTITY,
    b"a\t 1\tx": BAD_QUANTITY,
    b"a\t1_000\tx": BAD_QUANTITY,
    b"a\t01\tx": BAD_QUANTITY,
    b"a\t1000001\tx": BAD_QUANTITY,
    b"a\t" + b"9" * 5_000 + b"\tx": BAD_QUANTITY,
    "a\t\uff11\tx".encode(): "in half-width: 1.",
    "a\t\u0661\tx".encode(): BAD_QUANTITY,
    b"a\t1\tsecret \0": "The payload cannot be kept: it holds the character NUL.",
    b"a\t1\tsecret " + b"x" * 16_384: "The payload cannot be kept: it is larger than 16,384 bytes.",
    b"a\t1\tsecret \xff": "It is not UTF-8 (byte 12 of the line).",
    b"a\t1\tsecret \xed\xa0\x80": "It is not UTF-8",
    b"a\t1\tsecret " + b"x" * 70_000: "It is longer than 65,536 bytes.",
    b"a\t1": "It has 2 cells where the header has 3.",
    b"a\t1\tx\tsecret": "It has 4 cells where the header has 3.",
    b"\t\t": "The quantity is missing.",
}


@pytest.mark.parametrize(("row", "why"), BAD_ROWS.items(), ids=lambda value: repr(value)[:24])
@pytest.mark.parametrize("delimiter", [b"\t", b","])
def test_a_bad_row_is_named_with_why_and_its_neighbours_are_read(row, why, delimiter):
    data = b"\n".join([b"id\tquantity\titem", b"before\t1\tx", row, b"after\t1\tx\n"]).replace(b"\t", delimiter)
    found = outcome(data)
    assert why in found.pop(3)
    assert found == {2: "before", 4: "after"}


def test_columns_are_found_by_name_and_the_rest_is_payload_as_it_stands():
    header = "price\tquantity\tmax_attempts\tid\tqueue\torder_key\tdeadline_ms\t__class__"
    entry = only(f'{header}\n$2.39 \t7\t5\ta\tdrinks\tk\t99\t"x"\n'.encode())
    assert entry == Candidate(2, {
        "id": "a", "quantity": 7, "queue": "drinks", "order_key": "k", "max_attempts": 5, "deadline_ms": 99,
        "payload": {"price": "$2.39 ", "__class__": '"x"'},
    }, len('$2.39 \t7\t5\ta\tdrinks\tk\t99\t"x"'))  # fmt: skip


def test_empty_optional_cells_mean_that_nothing_was_given():
    entry = only(b"id,quantity,queue,order_key,max_attempts,deadline_ms\na,1,,,,\n", queue="drinks")
    assert check_order(**entry.order) == check_order("a", 1, queue="drinks")


@pytest.mark.parametrize(
    ("cell", "why"), [("max_attempts", "0"), ("max_attempts", "101"), ("max_attempts", "x"), ("deadline_ms", "-1"),
                      ("deadline_ms", "1.0"), ("deadline_ms", "9" * 15), ("queue", "A b"), ("order_key", " ")]
)  # fmt: skip
def test_an_optional_cell_that_is_wrong_is_named(cell, why):
    found = outcome(f"id\tquantity\t{cell}\na\t1\t{why}\nb\t1\t\n".encode())
    assert cell in found.pop(2)
    assert found == {3: "b"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "It is empty."),
        (b"\n \n", "It is empty."),
        (b"id,amount\na,1\n", "lacks the column quantity; it has 'id', 'amount'."),
        (b"name\n", "lacks the column id, quantity; it has 'name'."),
        (b"ID,Quantity\n", "lacks the column id, quantity"),
        (b"id,quantity,x,x\n", "names the column 'x' twice"),
        (b"id,quantity,id\n", "names the column 'id' twice"),
        (b"id,quantity,\n", "no usable name for column 3"),
        (b"id,quantity,a\0\n", "no usable name for column 3"),
        (b'id,quantity,"x\na,1,2\n', "a quote in it is not closed"),
        (b"id,quantity,\xff\n", "It is not UTF-8"),
        ("id,quantity\n".encode("utf-16"), "It is not UTF-8"),
        (b"\x89PNG\r\n", "It is not UTF-8"),
        (b"id," * 30_000, "It is longer than 65,536 bytes."),
        (b"order_id\tquantity\n", "--sample"),
    ],
)
def test_a_file_without_a_usable_header_is_refused_at_once_in_one_sentence(data, why):
    with pytest.raises(NotReadable) as caught:
        read_orders([data])
    assert why in str(caught.value)
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    ("data", "named", "payload"),
    [
        (BOM + b"id,quantity,x\r\na,1,y\r\n", {}, {"x": "y"}),
        (BOM + b'"id","quantity","x"\na,1,y', {}, {"x": "y"}),
        (b"\n\nid,quantity\n\na,1\n\n", {}, {}),
        (b"id\tquantity\na\t1", {"name": "orders.csv.TSV"}, {}),
        (b"id,quantity,a\tb\na,1,y", {"name": "orders.CSV"}, {"a\tb": "y"}),
        (b'  {"id":"a","quantity":1}', {}, {}),
        (BOM + b'{"id":"a","quantity":1}', {"name": "x.ndjson"}, {}),
        (b'{"id":"a","quantity":1}', {"form": "jsonl", "name": "x.csv"}, {}),
    ],
)
def test_the_form_is_told_by_option_then_name_then_first_line(data, named, payload):
    entry = only(data, **named)
    assert (entry.order["id"], entry.order["quantity"], entry.order["payload"]) == ("a", 1, payload)


def test_an_empty_json_lines_file_holds_no_orders():
    assert list(read_orders([b"\n"], name="x.jsonl")) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (['a,1,"x,""y"""', "b,1,z"], {2: "a", 3: "b"}),
        (['a,1,"x', "", 'y"', "b,1,z"], {2: "a", 5: "b"}),
        (['a,1,"x', "b,1,y", "c,1,z"], {2: None, 3: "b", 4: "c"}),
        (['a,1,"x', 'b,1,"y"', "c,1,z"], {2: None, 3: "b", 4: "c"}),
        (['a,1,"x', 'b,1,"y', "c,1,z"], {2: None, 3: None, 4: "c"}),
        (['a,1,"x', 'b,1,""', "c,1,z"], {2: None, 3: "b", 4: "c"}),
        (['a,1,"x', 'b",2,y,1', "c,1,z"], {2: None, 3: None, 4: "c"}),
        (['a,1,"x"y', "b,1,z"], {2: None, 3: "b"}),
        (['a,1,5" disk', "b,1,z"], {2: "a", 3: "b"}),
        (["a,1,x\ry", "b,1,z"], {2: None, 3: "b"}),
        (['a,1,"x', "\xff".encode("latin-1"), 'b,1,"y"'], {2: None, 3: None, 4: "b"}),
        (['a,1,"x', *[f"b{n},1,{'y' * 1000}" for n in range(200)]], {2: None, **{n + 3: f"b{n}" for n in range(200)}}),
    ],
)
def test_quotes_in_csv_may_span_lines_but_an_unclosed_one_spoils_only_its_own(rows, expected):
    data = b"\n".join(row if isinstance(row, bytes) else row.encode() for row in ["id,quantity,item", *rows])
    found = outcome(data)
    assert {line: None if why.startswith("It ") or "quotes" in why else why for line, why in found.items()} == expected


def test_a_quoted_cell_keeps_its_line_break():
    assert only(b'id,quantity,x\na,1,"first\r\nsecond"\n').order["payload"] == {"x": "first\nsecond"}


def test_a_quoted_cell_ends_at_its_closing_quote_however_much_follows():
    rows = b"".join(b"b%d,1,%s\n" % (n, b"y" * 1_000) for n in range(200))
    found = outcome(b'id,quantity,item\na,1,"first\nsecond"\n' + rows)
    assert found == {2: "a", **{n + 4: f"b{n}" for n in range(200)}}


def test_quotes_in_tsv_are_characters_like_any_other():
    found = outcome(b'id\tquantity\tx\na\t1\t"\nb\t1\t"y"z\n')
    assert found == {2: "a", 3: "b"}


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


def test_the_sample_gives_4622_orders_with_order_and_ordinal_as_id():
    entries = list(read_orders([SAMPLE.read_bytes()], name=SAMPLE.name, sample=True))
    orders = [check_order(**entry.order) for entry in entries]
    assert len({order.id for order in orders}) == len(orders) == 4_622
    assert [order.id for order in orders[:5]] == ["o1-1", "o1-2", "o1-3", "o1-4", "o2-1"]
    assert json.loads(orders[0].payload) == {
        "item_name": "Chips and Fresh Tomato Salsa",
        "choice_description": "NULL",
        "item_total_price": "$2.39 ",
    }
    assert {order.queue for order in orders} == {"snacks"}


HEADER = b"order_id\tquantity\titem_name\tchoice_description\titem_total_price\n"


def test_in_the_sample_form_ordinals_count_per_order_also_over_bad_lines_and_gaps():
    rows = [
        b"1\t1\ta\tb\tc", b"2\t1\ta\tb\tc", b"1\t0\ta\tb\tc", b"1\t1\t\xff\tb\tc", b"1\t1\ta\tb", b"\t1\ta\tb\tc",
        b"1 \t1\ta\tb\tc", b"1\t1\t" + b"x" * 70_000 + b"\tb\tc", b"1\t1\ta\tb\tc", b"2\t1\ta\tb\tc",
    ]  # fmt: skip
    found = outcome(HEADER + b"\n".join(rows), sample=True)
    assert {line: why for line, why in found.items() if why.startswith("o")} == {
        2: "o1-1",
        3: "o2-1",
        10: "o1-6",
        11: "o2-2",
    }
    assert found[7] == "The order_id is missing."
    assert found[8].startswith("The order_id must be")


def test_the_sample_form_needs_its_columns_and_is_no_json():
    with pytest.raises(NotReadable, match="lacks the column item_total_price"):
        read_orders([HEADER.replace(b"\titem_total_price", b"")], sample=True)
    with pytest.raises(NotReadable, match="JSON lines"):
        read_orders([b"{}"], sample=True)


@given(st.binary(max_size=200), st.sampled_from(["tsv", "csv", "jsonl", "auto"]), st.booleans())
def test_no_bytes_whatever_raise_anything_but_not_readable(data, form, sample):
    head = HEADER if sample else b"id,quantity,x\n"
    for start in (b"", head, head.replace(b"\t", b",")):
        try:
            list(read_orders([start + data], form=form, sample=sample))
        except NotReadable as error:
            assert str(error).isascii()  # noqa: PT017 - both ways out are right here
