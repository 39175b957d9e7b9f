"""Cells that no spreadsheet runs or rewrites, and that give back their value."""

import csv
import io
import json

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from queue_app.policy.cells import Column, csv_head, csv_records, harmless, json_records, plain, utc

TEXT = (Column("a"), Column("b", "number"))

RISKY = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "\nx",
    "\0x",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    " =1",
    "\u3000=1",
    "\u00a0-1",
]
RISKY += [
    "\ufeff=1",
    "\u200b@x",
    "\u202e=1",
    "\x0b=1",
    "\u2028+1",
    " \t =1",
    "'=1",
    "'",
    "=",
    " ",
    "＇=1",
    "\x01=1",
    "﹦1",
    "﹢1",
    "⩵1",  # one character that becomes two
    "\u2029=1",
]
SAFE = [
    "",
    "a",
    "o12-1",
    "INC-7",
    "a=b",
    "a,b",
    'a"b',
    '"',
    "a;b",
    "a\nb",
    "a\r\nb",
    "x\0",
    "注文",
    "1",
    "0012",
    "1E5",
    "_=1",
    "{=1}",
]


@pytest.mark.parametrize("text", RISKY)
def test_text_that_a_spreadsheet_would_run_gets_one_quote(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert plain(harmless(text)) == text


@pytest.mark.parametrize("text", SAFE)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == plain(harmless(text)) == text


IDS = [
    "0012",
    "1",
    "1E5",
    "1e5",
    "12-1",
    "2026-11-29",
    "12:30",
    "1.5",
    "1/2",
    "3-MAR",
    "MAR1",
    "Sept-2",
    "1dec",
    "TRUE",
    "1E-5",
]
PLAIN_IDS = [
    "o12-1",
    "a",
    "1a",
    "x1E5",
    "order-0012",
    "1E5x",
    "march-of-ants",
    "0x1F",
    "plan:12",
    "job:0012",
    "d41d8cd9",
]


@pytest.mark.parametrize("text", IDS)
def test_an_id_that_a_spreadsheet_would_take_for_a_number_or_a_date_stays_text(text: str) -> None:
    assert harmless(text, "id") == f"'{text}"
    assert plain(harmless(text, "id")) == text


@pytest.mark.parametrize("text", PLAIN_IDS)
def test_other_ids_stay_as_they_are(text: str) -> None:
    assert harmless(text, "id") == text


def test_a_number_is_never_quoted_and_text_always_is() -> None:
    assert csv_records(TEXT, [("x", -5), (None, None), (True, 0)]) == '"x",-5\r\n,\r\n"yes",0\r\n'
    assert csv_records(TEXT, [(5, "=1"), (False, False)]) == '"5","\'=1"\r\n"no","no"\r\n'


def test_an_id_stays_text_in_its_column_and_other_text_may_look_like_a_number() -> None:
    assert csv_records((Column("id", "id"), Column("text")), [("0012", "0012")]) == '"\'0012","0012"\r\n'


@given(st.text(), st.one_of(st.none(), st.integers()))
@example('a"b,c\r\n', 0)
@example("\0", None)
def test_reading_the_csv_again_gives_back_the_values(text: str, number: int | None) -> None:
    written = csv_records(TEXT, [(text, number)])
    ((cell, digits),) = csv.reader(io.StringIO(written, newline=""), strict=True)
    assert plain(cell) == text
    assert digits == ("" if number is None else str(number))
    assert written.endswith("\r\n")


@given(st.text(), st.sampled_from(["text", "id"]))
def test_no_cell_begins_like_a_formula(text: str, kind) -> None:
    cell = harmless(text, kind)
    assert cell.lstrip(" \u3000\u00a0")[:1] not in tuple("=+-@\t\r\n\0＝＋－＠")
    assert plain(cell) == text


@pytest.mark.parametrize("write", [csv_records, json_records])
@pytest.mark.parametrize("row", [(), ("x",), ("x", 1, 2)])
def test_a_row_of_another_width_is_a_mistake_of_the_program(write, row) -> None:
    with pytest.raises(ValueError, match="zip"):
        write(TEXT, [("x", 1), row])


def test_each_row_is_a_line_of_json() -> None:
    assert json_records(TEXT, [("é", 5), (None, None)]) == '{"a": "\\u00e9", "b": 5}\n{"a": null, "b": null}\n'
    assert json_records(TEXT, []) == ""


@given(st.text())
def test_json_lines_give_back_the_values_as_they_are(text: str) -> None:
    (line,) = json_records(TEXT, [(text, 5)]).splitlines()
    assert line.isascii()
    assert json.loads(line) == {"a": text, "b": 5}


def test_facts_stand_before_the_header_and_keep_the_width_of_the_table() -> None:
    columns = (Column("a"), Column("b"), Column("c"))
    text = csv_head(columns, [("filter", '{"who":"a,b"}'), ("evil", "=1")])
    assert [len(row) for row in csv.reader(io.StringIO(text, newline=""))] == [3, 3, 3]
    assert text.splitlines() == ['# filter,"{""who"":""a,b""}",', "# evil,'=1,", "a,b,c"]


def test_a_table_of_one_column_still_holds_its_facts() -> None:
    assert csv_head((Column("id"),), [("rows", "0")]) == "# rows,0\r\nid\r\n"


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_918_325_123, "2026-11-29T02:12:05.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (10**18, f"{10**18} ms"),
    ],
)
def test_instants_are_written_in_utc(at_ms: int, text: str) -> None:
    assert utc(at_ms) == text
