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
    *(page(orders=row(id=value)) for value in ("", "-b", "b/c", "b\n", "ｂ", 5, None, "b" * 65)),
    *(page(orders=row(quantity=value)) for value in (0, 1_000_001, True, 1.0, "1", None)),
    *(page(orders=row(applied_at_ms=value)) for value in (-1, 1.5, "7", True, 253_402_300_800_000)),
    *(page(orders=row(requests=value)) for value in (0, True, "2", None, 2**63)),
    page(orders=[{name: value for name, value in ROW.items() if name != "applied_at_ms"}]),
]


OUT_OF_ORDER = [
    page(next="a"),
    page(next="c"),
    page(next=5),
    page(orders=[], next="b"),
    *(page(orders=row(id=value)) for value in ("a", "A")),
    page(orders=row(id="a"), next="a"),
]
REFUSED = [*((body, "bad_json") for body in BAD), *((body, "order") for body in OUT_OF_ORDER)]


@pytest.mark.parametrize(("body", "code"), REFUSED, ids=range(len(REFUSED)))
def test_anything_else_is_refused_in_one_sentence_without_a_word_of_it(body: bytes, code: str) -> None:
    with pytest.raises(BadLedger) as caught:
        read_page(body, "a", 1)
    assert (caught.value.code, caught.value.values) == (code, {"cause": code})
    assert str(caught.value) == f"The receiver's list is not as agreed ({code}), so nothing was compared."
    assert caught.value.__cause__ is None


MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("changes", "entry"),
    [
        ({"quantity": 1, "applied_at_ms": 0, "requests": 1}, Entry("b", 1, 0, 1)),
        (
            {"quantity": 1_000_000, "applied_at_ms": 253_402_300_799_999, "requests": MOST},
            Entry("b", 1_000_000, 253_402_300_799_999, MOST),
        ),
        ({"id": "b" * 64}, Entry("b" * 64, 5, 7, 2)),
    ],
)
def test_the_bounds_of_an_entry_belong_to_it(changes: dict[str, object], entry: Entry) -> None:
    assert read_page(page(orders=row(**changes)), "a", 1).entries == (entry,)
    assert (entry.applied, Entry("b", 1, None, 1).applied) == (True, False)


@pytest.mark.parametrize("n", [0, 1, MOST])
def test_the_bounds_of_a_sum_belong_to_it(n: int) -> None:
    assert read_page(page(totals=dict.fromkeys(TOTALS, n)), "a", 1).totals == Totals(n, n, n, n)


def test_the_first_page_has_nothing_before_it_and_each_id_is_greater_than_the_one_before() -> None:
    rows = [{**ROW, "id": job_id} for job_id in ("0", "A", "a")]
    assert [entry.id for entry in read_page(page(orders=rows, next="a"), None, 3).entries] == ["0", "A", "a"]
    with pytest.raises(BadLedger, match=r"\(order\)"):
        read_page(page(orders=[rows[1], rows[0]]), None, 3)
    with pytest.raises(BadLedger, match=r"\(order\)"):
        read_page(page(orders=[rows[1], rows[1]]), None, 3)


@pytest.mark.parametrize(
    ("job_id", "cursor"),
    [
        ("0", None),
        ("1", "0" + "z" * 63),
        ("A", "9" + "z" * 63),
        ("B", "A" + "z" * 63),
        ("a", "Z" + "z" * 63),
        ("z", "y" + "z" * 63),
        ("a-", "a"),
        ("a.", "a-" + "z" * 62),
        ("a0", "a." + "z" * 62),
        ("aA", "a:" + "z" * 62),
        ("aa", "a_" + "z" * 62),
        ("b" * 64, "b" * 63 + "a"),
    ],
)
def test_the_cursor_before_an_id(job_id: str, cursor: str | None) -> None:
    assert before(job_id) == cursor


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
