"""A page of the receiver's ledger is read as agreed or not at all."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.ledgers import BadLedger, Entry, Totals, before, read_page

TOTALS = {"keys": 1, "stock": 5, "writes": 1, "requests": 3}
ROW = {"id": "b", "quantity": 5, "applied_at_ms": 7, "requests": 2}
GOOD: dict[str, Any] = {"orders": [ROW], "next": None, "totals": TOTALS, "as_of_ms": 9}


def page(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def row(**changes: object) -> list[dict[str, object]]:
    return [{**ROW, **changes}]


def test_a_good_page_gives_its_values() -> None:
    found = read_page(page(orders=[{**ROW, "applied_at_ms": None}, {**ROW, "id": "c"}], next="c"), "a", 2)
    assert found.entries == (Entry("b", 5, None, 2), Entry("c", 5, 7, 2))
    assert (found.next, found.totals) == ("c", Totals(1, 5, 1, 3))
    assert read_page(page(orders=[]), None, 1).entries == ()


BAD = [
    b"",
    b"\xff",
    b"[]",
    b"null",
    b"{",
    b'{"orders": [], "orders": []}',
    b'{"a": NaN}',
    b"[" * 100_000,
    b'{"a": ' + b"9" * 5_000 + b"}",
    b"<html></html>",
    page(orders=None),
    page(orders={}),
    page(orders=[1]),
    page(orders=[ROW, {**ROW, "id": "c"}]),  # more than asked for
    page(totals=None),
    page(totals={**TOTALS, "keys": -1}),
    page(totals={**TOTALS, "keys": True}),
    page(totals={**TOTALS, "stock": 2**63}),
    page(totals={"keys": 1}),
    page(next="a"),
    page(next="c"),
    page(next=5),
    page(orders=[], next="b"),
    *(page(orders=row(id=value)) for value in ("", "a", "-b", "b/c", "b\n", "ｂ", 5, None, "b" * 65, "A")),
    *(page(orders=row(quantity=value)) for value in (0, 1_000_001, True, 1.0, "1", None)),
    *(page(orders=row(applied_at_ms=value)) for value in (-1, 1.5, "7", True, 10**18)),
    *(page(orders=row(requests=value)) for value in (0, True, "2", None)),
    page(orders=[{name: value for name, value in ROW.items() if name != "applied_at_ms"}]),
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_anything_else_is_refused_in_one_sentence_without_a_word_of_it(body: bytes) -> None:
    with pytest.raises(BadLedger) as caught:
        read_page(body, "a", 1)
    assert caught.value.code in ("bad_json", "order")
    assert str(caught.value).endswith("so nothing was compared.")
    assert caught.value.__cause__ is None


ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", fullmatch=True)
ALPHABET = sorted(string.ascii_letters + string.digits + "._:-")


@given(ids)
def test_the_cursor_before_an_id_is_a_possible_id_right_below_it(job_id: str) -> None:
    cursor = before(job_id)
    if cursor is None:
        assert job_id == "0"
        return
    assert cursor < job_id
    assert read_page(page(orders=row(id=cursor)), None, 1).entries[0].id == cursor
    # the least longer text is already the id or beyond it, unless the cursor has all its characters
    assert len(cursor) == 64 or cursor + ALPHABET[0] >= job_id
    assert len(cursor) < 64 or cursor[: len(job_id) - 1] == job_id[:-1] or len(job_id) == 1
