"""Rows of CSV and TSV to orders: cells, quotes, the sample's own form; a bad row is named with why and costs only itself."""

import json
from pathlib import Path

import pytest

from queue_app.policy.lines import Candidate, NotReadable
from queue_app.policy.order_files import read_orders
from queue_app.policy.orders import check_order
from tests.policy.readers import BAD_QUANTITY, SAMPLE_HEADER, only, outcome

SAMPLE = Path(__file__).resolve().parents[2] / "queue_app" / "sample" / "snack-orders.tsv"
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


def test_in_the_sample_form_ordinals_count_per_order_also_over_bad_lines_and_gaps():
    rows = [
        b"1\t1\ta\tb\tc", b"2\t1\ta\tb\tc", b"1\t0\ta\tb\tc", b"1\t1\t\xff\tb\tc", b"1\t1\ta\tb", b"\t1\ta\tb\tc",
        b"1 \t1\ta\tb\tc", b"1\t1\t" + b"x" * 70_000 + b"\tb\tc", b"1\t1\ta\tb\tc", b"2\t1\ta\tb\tc",
    ]  # fmt: skip
    found = outcome(SAMPLE_HEADER + b"\n".join(rows), sample=True)
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
        read_orders([SAMPLE_HEADER.replace(b"\titem_total_price", b"")], sample=True)
    with pytest.raises(NotReadable, match="JSON lines"):
        read_orders([b"{}"], sample=True)
