"""The ledger is read page by page, each id once, and its totals are what the pages add up to."""

import sqlite3

import pytest

from tests.receiver.http_client import get, post_order, totals

IDS = ["0", "A", "B", "Z", "a", "a-1", "a.1", "a:1", "a_1", "aa", "b", "o1", "o10", "o2", "z"]


@pytest.fixture
def filled(open_receiver):
    """Orders posted out of order; "b" fails always, "z" was posted twice."""
    url = open_receiver({"ids": ["b"], "status": 503}).url
    for order_id in reversed([*IDS, "z"]):
        post_order(url, order_id, 2)
    return url


def walk(url, limit):
    pages, cursor = [], ""
    while cursor is not None:
        page = get(url, f"/ledger?limit={limit}{cursor and '&after=' + cursor}").document
        pages.append(page["orders"])
        cursor = page["next"]
    return pages


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 14, 15, 16, 1000])
def test_pages_of_any_size_show_each_id_once_in_bytewise_order(filled, limit):
    pages = walk(filled, limit)
    assert [row["id"] for page in pages for row in page] == sorted(IDS)
    assert all(len(page) == limit for page in pages[:-1])
    assert len(pages) == -(-len(IDS) // limit)


def test_the_totals_stand_on_every_page_and_equal_the_sum_of_all_rows(filled):
    rows = [row for page in walk(filled, 4) for row in page]
    applied = [row for row in rows if row["applied_at_ms"] is not None]
    expected = {
        "keys": len(applied),
        "stock": sum(row["quantity"] for row in applied),
        "writes": len(applied),
        "requests": sum(row["requests"] for row in rows),
    }
    assert expected == {"keys": 14, "stock": 28, "writes": 14, "requests": 16}
    assert totals(filled) == get(filled, "/ledger?after=o2&limit=1").document["totals"] == expected


def test_a_row_says_when_it_was_applied_and_how_often_it_was_asked_for(filled):
    rows = {row["id"]: row for row in get(filled, "/ledger").document["orders"]}
    assert (rows["z"]["requests"], rows["a"]["requests"], rows["b"]["requests"]) == (2, 1, 1)
    assert rows["b"]["applied_at_ms"] is None
    assert rows["z"]["applied_at_ms"] < rows["a"]["applied_at_ms"]
    assert get(filled, "/ledger").document["as_of_ms"] > rows["a"]["applied_at_ms"]


def test_a_cursor_between_two_ids_is_as_good_as_one_that_exists(filled):
    page = get(filled, "/ledger?after=a.5&limit=2").document
    assert [row["id"] for row in page["orders"]] == ["a:1", "a_1"]


def test_after_the_last_id_and_in_an_empty_ledger_the_page_is_empty(filled, open_receiver):
    empty = open_receiver(name="empty.sqlite3").url
    for answer in (get(filled, "/ledger?after=zz"), get(empty, "/ledger")):
        assert (answer.status, answer.document["orders"], answer.document["next"]) == (200, [], None)


def test_the_quantity_of_an_order_that_was_never_applied_is_the_one_asked_for_last(open_receiver):
    url = open_receiver({"ids": ["a"], "status": 503, "first": 2}).url
    for quantity in (1, 2, 3, 4):
        post_order(url, "a", quantity)
    [row] = get(url, "/ledger").document["orders"]
    assert (row["quantity"], row["requests"], totals(url)["stock"]) == (3, 4, 3)


@pytest.mark.parametrize(
    "query",
    [
        *[
            "after=",
            "after=-1",
            "after=a%00",
            "after=%D9%A1",
            "after=a%20",
            "after=a/b",
            "after=" + "x" * 65,
            "after=%ff",
        ],
        *["after=';--", "after=a&after=b", "after", "&", "x", "=", "order=id", "limit=1;drop", "after=a&page=2"],
        *["limit=0", "limit=-1", "limit=1001", "limit=", "limit=1.0", "limit=1e2", "limit=%D9%A1", "limit=1_0"],
        *["limit=%2B1", "limit=%201", "limit=" + "9" * 5000, "limit=99999", "limit=1&limit=2", "LIMIT=1"],
    ],
    ids=lambda query: query[:24],
)
def test_a_bad_cursor_or_limit_is_refused_with_a_sentence(url, query):
    reply = get(url, f"/ledger?{query}")
    assert reply.status == 400
    assert reply.document["error"].endswith(".")


def test_records_cannot_be_deleted_by_plain_sql_either(filled, tmp_path):
    link = sqlite3.connect(tmp_path / "receiver.sqlite3")
    try:
        with pytest.raises(sqlite3.IntegrityError, match="records are kept"):
            link.execute("DELETE FROM orders")
    finally:
        link.close()
    assert totals(filled)["keys"] == 14
