"""Bytes to lines, and which form a file of orders has: no bytes whatever are more than not readable."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.lines import Line, NotReadable, text_lines
from queue_app.policy.order_files import read_orders
from tests.policy.readers import SAMPLE_HEADER, only

BOM = b"\xef\xbb\xbf"


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


@given(st.binary(max_size=200), st.sampled_from(["tsv", "csv", "jsonl", "auto"]), st.booleans())
def test_no_bytes_whatever_raise_anything_but_not_readable(data, form, sample):
    head = SAMPLE_HEADER if sample else b"id,quantity,x\n"
    for start in (b"", head, head.replace(b"\t", b",")):
        try:
            list(read_orders([start + data], form=form, sample=sample))
        except NotReadable as error:
            assert str(error).isascii()  # noqa: PT017 - both ways out are right here
