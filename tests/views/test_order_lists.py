"""The list of orders outside the quarantine: each state, each page once, any id; what cannot be meant is refused."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queue_app.reads import orders
from queue_app.services import leases, queue
from tests.conftest import Clock
from tests.reads.stories import accept, declare, deliver, die
from tests.views.seen import rows_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def mixed(clock: Clock) -> Clock:
    """Orders in every state and two queues: waiting w*, being delivered l*, lease over o1, unproved u1, done d*, dead x1."""
    declare("drinks")
    for job_id in ("d1", "d2", "d3"):
        accept([job_id])
        deliver(job_id)
    die(clock, ["x1"])
    accept(["o1"])
    queue.claim("old", lease_ms=1_000)
    clock.advance(2_000)
    accept(["u1", "l1"], at="drinks")
    for lease in queue.claim("new", queue="drinks", limit=2):
        if lease.id == "u1":
            leases.record_unknown(lease.id, lease.token, "bad_ack")
    accept(["w1"])
    accept(["w2"], at="drinks")
    return clock


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({}, ["w1", "w2"]),
        ({"state": "pending"}, ["w1", "w2"]),
        ({"state": "pending", "queue": "drinks"}, ["w2"]),
        ({"state": "leased"}, ["o1", "l1", "u1"]),
        ({"state": "leased", "unknown": "yes"}, ["o1", "u1"]),
        ({"state": "done"}, ["d3", "d2", "d1"]),
        ({"id": "x1"}, ["x1"]),
        ({"id": "d"}, ["d1", "d2", "d3"]),
        ({"id": "D"}, []),
        ({"id": "d%"}, None),
        ({"state": "dead"}, None),
        ({"state": "nonsense"}, None),
        ({"unknown": "1"}, None),
        ({"queue": "nowhere"}, None),
        ({"after": "1"}, None),
        ({"after": "99999999999999999999.1"}, None),
        ({"state": "done", "after": "9999999999999999999"}, None),
        ({"state": "leased", "after": "1.'"}, None),
        ({"id": "a", "after": "%"}, None),
        ({"order": "id"}, None),
        ({"state": ["done", "leased"]}, None),
    ],
)
def test_each_list_shows_its_orders_and_nonsense_gets_a_sentence(mixed, console: Client, query, ids) -> None:
    answer = console.get("/orders/", query)
    if ids is None:
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
        assert rows_of(answer.text) == []
    else:
        assert answer.status_code == 200
        assert rows_of(answer.text) == ids or sorted(rows_of(answer.text)) == sorted(ids) == ["l1", "o1", "u1"]


def test_the_overviews_figures_lead_to_lists_of_that_many(mixed, console: Client) -> None:
    page = console.get("/").text
    links = re.findall(r'<a class="figure-number" href="(/orders/[^"]*)">(\d+)</a>', page)
    links += re.findall(r'<a href="(/orders/[^"]*)">(\d+) with an unknown answers?</a>', page)
    assert len(links) == 4
    for address, number in links:
        assert len(rows_of(console.get(address.replace("&amp;", "&")).text)) == int(number), address


@pytest.mark.parametrize("which", orders.LISTS)
def test_pages_of_two_hold_each_order_once(mixed: Clock, which: str) -> None:
    whole = orders.page(which, ["drinks", "snacks"], mixed.now)
    assert whole.next is None
    seen, after = [], ""
    while True:
        part = orders.page(which, ["drinks", "snacks"], mixed.now, after=after, size=2)
        seen += [row.id for row in part.rows]
        if part.next is None:
            break
        after = part.next
    assert seen == [row.id for row in whole.rows]


def test_a_search_that_is_cut_short_says_so_and_goes_on(mixed: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "LOOKED_AT", 2)
    seen, after, searching = [], "", 0
    while True:
        part = orders.page("done", ["snacks"], mixed.now, after=after)
        seen += [row.id for row in part.rows]
        searching += part.searching
        if part.next is None:
            break
        after = part.next
    assert seen == ["d3", "d2", "d1"]
    assert searching >= 3  # nine orders, two at a time


def test_the_number_of_queries_does_not_grow(mixed: Clock, console: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert console.get("/orders/", {"state": "pending"}).status_code == 200
        return len(asked)

    console.get("/orders/")
    few = queries()
    accept([f"w-{n}" for n in range(40)])
    assert queries() == few


def test_an_id_that_is_not_in_quarantine_is_found_from_there(mixed, console: Client) -> None:
    page = console.get("/quarantine/", {"id": "d1"}).text
    assert 'href="/orders/?id=d1"' in page
    assert "delivered" in text_of(console.get("/orders/", {"id": "d1"}).text)
