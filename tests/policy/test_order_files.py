"""Which form a file of orders has, and what its lines are read as."""

import pytest

from queue_app.policy.lines import BadLine, Candidate, NotReadable
from queue_app.policy.order_files import read_orders

TABLE = {"queue": "snacks", "order_key": "", "max_attempts": None, "deadline_ms": None}


@pytest.mark.parametrize(
    ("data", "named", "payload"),
    [
        (b"id\tquantity\ta,b\na\t1\tx", {}, {"a,b": "x"}),
        (b"id,quantity,x\na,1,y\tz", {}, {"x": "y\tz"}),
        *((b"id\tquantity\tx\na\t1\ty", {"name": name}, {"x": "y"}) for name in ("x.tsv", "x.tab", "x.TAB")),
        *((b"id\tquantity\na\t1", {"form": "tsv", "name": name}, {}) for name in ("x.csv", "x.jsonl")),
        (b"id,quantity\na,1", {"form": "csv", "name": "x.tsv"}, {}),
        (b'\n  \n"id",quantity\na,1', {"name": "csv"}, {}),
        (b"id,quantity\na,1", {"name": "x.csv.old"}, {}),
    ],
)
def test_a_table_is_told_by_option_then_by_name_then_by_its_first_line(data, named, payload):
    (found,) = read_orders([data], **named)
    assert found.order == {**TABLE, "id": "a", "quantity": 1, "payload": payload}


@pytest.mark.parametrize("named", [{}, {"name": "x.jsonl"}, {"name": "x.NDJSON"}, {"form": "jsonl", "name": "x.tsv"}])
@pytest.mark.parametrize("queue", [None, "drinks"])
def test_json_lines_are_told_alike(named, queue):
    data = b'\n {"id":"a","quantity":1}\n\n{\n'
    assert list(read_orders([data], **named, **({"queue": queue} if queue else {}))) == [
        Candidate(2, {"queue": queue or "snacks", "id": "a", "quantity": 1, "payload": {}}, 24),
        BadLine(4, "It is not JSON (character 2 of the line)."),
    ]


@pytest.mark.parametrize(
    ("data", "named", "why"),
    [
        (b"", {}, "It is empty."),
        (b" \n\n", {"name": "x.txt"}, "It is empty."),
        (b"", {"name": "x.csv"}, "It is empty, and a table of orders begins with a header line."),
        (b"{}", {"sample": True}, "The form of the sample is a table, and this is JSON lines."),
        (
            b"id,quantity",
            {"form": "jsonl", "sample": True},
            "The form of the sample is a table, and this is JSON lines.",
        ),
    ],
)
def test_a_file_without_a_line_of_orders_is_refused_at_once(data, named, why):
    with pytest.raises(NotReadable) as refused:
        read_orders([data], **named)
    assert str(refused.value) == why
