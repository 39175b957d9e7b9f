"""What each column of a table means: whole orders, whole refusals."""

import pytest

from queue_app.policy.columns import read_table
from queue_app.policy.lines import BadLine, Candidate, Line, NotReadable

PLAIN = "id,quantity,queue,order_key,max_attempts,deadline_ms,item"
SAMPLE = "quantity,item_name,choice_description,item_total_price,order_id"


def read(*texts: str, sample: bool = False, delimiter: str = ",") -> list[Candidate | BadLine]:
    lines = (Line(number, text) for number, text in enumerate(texts, start=1))
    return list(read_table(lines, delimiter=delimiter, sample=sample, queue="snacks"))


@pytest.mark.parametrize(
    ("header", "row", "order"),
    [
        (
            "id,quantity",
            "a,1000000",
            {
                "id": "a", "quantity": 1_000_000, "queue": "snacks", "order_key": "", "max_attempts": None,
                "deadline_ms": None, "payload": {},
            },
        ),
        (
            PLAIN,
            "a,7,,,,,",
            {
                "id": "a", "quantity": 7, "queue": "snacks", "order_key": "", "max_attempts": None,
                "deadline_ms": None, "payload": {"item": ""},
            },
        ),
        (
            PLAIN,
            "a,7,drinks,k,100,0,chips",
            {
                "id": "a", "quantity": 7, "queue": "drinks", "order_key": "k", "max_attempts": 100, "deadline_ms": 0,
                "payload": {"item": "chips"},
            },
        ),
        (
            "payload,deadline_ms,quantity,id",
            "x,999999999999999,1,",
            {
                "id": "", "quantity": 1, "queue": "snacks", "order_key": "", "max_attempts": None,
                "deadline_ms": 999_999_999_999_999, "payload": {"payload": "x"},
            },
        ),
    ],
)  # fmt: skip
def test_a_row_of_the_plain_form_is_an_order(header: str, row: str, order: dict[str, object]) -> None:
    assert read(header, "", row) == [Candidate(3, order, len(row))]
    assert read(header.replace(",", "\t"), row.replace(",", "\t"), delimiter="\t") == [Candidate(2, order, len(row))]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,,,,,,", "The quantity is missing."),
        ("a,0,,,,,", "The quantity must be a whole number from 1 to 1,000,000 in plain digits, and this is '0'."),
        (
            "a,１２,,,,,",
            r"The quantity must be a whole number from 1 to 1,000,000 in plain digits, and this is '\uff11\uff12'"
            "; in half-width: 12.",
        ),
        ("a,1,,,0,,", "The max_attempts must be a whole number from 1 to 100 in plain digits, and this is '0'."),
        ("a,1,,,,-1,", "The deadline_ms must be a whole number of milliseconds in plain digits, and this is '-1'."),
        (
            "a,1,,,,1000000000000000,",
            "The deadline_ms must be a whole number of milliseconds in plain digits, and this is '1000000000000000'.",
        ),
        ("a,1", "It has 2 cells where the header has 7."),
        ("a,0", "It has 2 cells where the header has 7."),
        ('a,1,"', "Its quotes do not close, or text follows a closing quote."),
    ],
)
def test_a_row_that_is_no_order_says_why(row: str, why: str) -> None:
    good = {
        "id": "b", "quantity": 1, "queue": "snacks", "order_key": "", "max_attempts": None, "deadline_ms": None,
        "payload": {"item": ""},
    }  # fmt: skip
    assert read(PLAIN, row, "b,1,,,,,") == [BadLine(2, why), Candidate(3, good, 8)]


SHAPE = "The order_id must be 1 to 48 of A-Z a-z 0-9 . _ : - and begin with a letter or digit, and this is"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("0,a,b,c,1", "The quantity must be a whole number from 1 to 1,000,000 in plain digits, and this is '0'."),
        (",a,b,c,1", "The quantity is missing."),
        ("1,a,b,c,", "The order_id is missing."),
        ("1,a,b,c,-1", f"{SHAPE} '-1'."),
        ("1,a,b,c,１", rf"{SHAPE} '\uff11'; in half-width: 1."),
        ("1,a,b,c," + "9" * 49, f"{SHAPE} '{'9' * 40}'...."),
        ("1,a,b,c", "It has 4 cells where the header has 5."),
        ("1", "It has 1 cell where the header has 5."),
        ("1,a,b,c,1,d", "It has 6 cells where the header has 5."),
    ],
)
def test_a_row_of_the_sample_form_that_is_no_order_says_why(row: str, why: str) -> None:
    assert read(SAMPLE, row, sample=True) == [BadLine(2, why)]


def test_a_row_of_the_sample_form_has_the_ordinal_of_its_order_and_a_refused_one_counts_where_its_order_is_known() -> (
    None
):
    rows = ["1,a,b,c,XXXX", "2,a,b,c", "0,a,b,c,XXXX", "3,a,b,c,XXXX,d", "4,a,b,c,XXXX", "5,d,e,f," + "9" * 48]
    found = read(SAMPLE, *rows, sample=True)

    def order(ordinal: str, quantity: int, *cells: str) -> dict[str, object]:
        names = ("item_name", "choice_description", "item_total_price")
        payload = dict(zip(names, cells, strict=True))
        return {"id": f"o{ordinal}", "quantity": quantity, "queue": "snacks", "payload": payload}

    assert [one for one in found if isinstance(one, Candidate)] == [
        Candidate(2, order("XXXX-1", 1, "a", "b", "c"), len(rows[0])),
        Candidate(6, order("XXXX-4", 4, "a", "b", "c"), len(rows[4])),
        Candidate(7, order(f"{'9' * 48}-1", 5, "d", "e", "f"), len(rows[5])),
    ]
    assert [one.line for one in found if isinstance(one, BadLine)] == [3, 4, 5]


NINE = ",".join("abcdefghi")


@pytest.mark.parametrize(
    ("lines", "sample", "why"),
    [
        ([], False, "It is empty, and a table of orders begins with a header line."),
        ([Line(1, " ")], True, "It is empty, and a table of orders begins with a header line."),
        ([Line(1, ""), Line(2, "id", "Cut.")], False, "Its header (line 2) cannot be read: Cut."),
        ([Line(1, 'id,"x')], False, "Its header (line 1) cannot be read: a quote in it is not closed."),
        ([Line(1, "id, ,quantity")], False, "Its header (line 1) has no usable name for column 2."),
        ([Line(1, "id,quantity,a\0")], False, "Its header (line 1) has no usable name for column 3."),
        ([Line(3, "id,quantity,id")], False, "Its header (line 3) names the column 'id' twice."),
        ([Line(1, "id,id,quantity")], False, "Its header (line 1) names the column 'id' twice."),
        ([Line(1, "id,amount")], False, "Its header (line 1) lacks the column quantity; it has 'id', 'amount'."),
        (
            [Line(1, NINE)],
            False,
            "Its header (line 1) lacks the column id, quantity; it has 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'.",
        ),
        (
            [Line(1, "order_id,quantity")],
            False,
            "Its header (line 1) lacks the column id; it has 'order_id', 'quantity' "
            "(the form of the sample is read with --sample).",
        ),
        (
            [Line(1, "id,order_id")],
            False,
            "Its header (line 1) lacks the column quantity; it has 'id', 'order_id'.",
        ),
        (
            [Line(1, "order_id,quantity")],
            True,
            "Its header (line 1) lacks the column item_name, choice_description, item_total_price; "
            "it has 'order_id', 'quantity'.",
        ),
    ],
)
def test_a_header_that_does_not_name_the_columns_is_refused_at_once(lines: list[Line], sample: bool, why: str) -> None:
    with pytest.raises(NotReadable) as caught:
        read_table(iter(lines), delimiter=",", sample=sample, queue="snacks")
    assert str(caught.value) == why
