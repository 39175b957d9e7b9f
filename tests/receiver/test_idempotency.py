"""One id, one effect: also when two requests come at the same moment, and only because of the one transaction."""

import contextlib
import functools
import sqlite3
import threading

import pytest

from queue_app.receiver import ledger as ledger_module
from queue_app.receiver.faults import choose
from queue_app.receiver.ledger import Applied, Ledger
from tests.receiver.http_client import LIMIT_S, get, post_order, request, requests_of, together, totals

ROUNDS = 100
LOSE_FIRST = {"ids": ["a"], "drop": "after", "first": 1}


class MeetAtTheDoor(Ledger):
    """Both requests of a round are inside the server before either begins."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.door = threading.Barrier(2)

    def apply(self, order_id, quantity):
        self.door.wait(LIMIT_S)
        return super().apply(order_id, quantity)


class CheckAndWriteApart(Ledger):
    """The mistake: the check ends its transaction before the write begins another."""

    def apply(self, order_id, quantity):
        with self._database.transaction() as link:
            number = ledger_module._count_request(link, order_id, quantity)
            known = ledger_module._applied_quantity(link, order_id)
        self._between()
        if known is not None:
            return Applied("duplicate", number)
        with self._database.transaction() as link:
            ledger_module._record(link, order_id, quantity, self._now_ms())
        return Applied("applied", number)


class TryToGetBetween:
    """Between check and write of one request, try to begin a write of another; count how often that was refused."""

    def __init__(self, path):
        self.path = path
        self.refused = self.admitted = 0

    def __call__(self):
        with contextlib.closing(sqlite3.connect(self.path, timeout=0, isolation_level=None)) as link:
            try:
                link.execute("BEGIN IMMEDIATE")
                self.admitted += 1
            except sqlite3.OperationalError:
                self.refused += 1


class WithoutRecord(Ledger):
    """A receiver that does not look whether it knows the id."""

    def apply(self, order_id, quantity):
        with self._database.transaction() as link:
            number = ledger_module._count_request(link, order_id, quantity)
            ledger_module._record(link, order_id, quantity, self._now_ms())
            return Applied("applied", number, choose(self._faults_in(link), order_id, number))


def post_twice(url, order_id, quantity):
    replies = together(*[lambda: post_order(url, order_id, quantity)] * 2)
    return sorted((reply.status, reply.document["duplicate"]) for reply in replies)


def test_of_two_posts_released_together_one_is_applied_and_one_is_a_duplicate_in_every_round(open_receiver, tmp_path):
    intruder = TryToGetBetween(tmp_path / "receiver.sqlite3")
    opened = open_receiver(kind=MeetAtTheDoor, between=intruder)
    for number in range(1, ROUNDS + 1):
        assert post_twice(opened.url, f"o{number}", 7) == [(200, True), (201, False)]
        assert totals(opened.url) == {"keys": number, "stock": 7 * number, "writes": number, "requests": 2 * number}
    assert (intruder.admitted, intruder.refused) == (0, 2 * ROUNDS)


def test_with_check_and_write_in_two_transactions_the_barrier_shows_two_effects_in_every_round(open_receiver):
    opened = open_receiver(kind=CheckAndWriteApart, between=lambda: None)
    for number in range(1, ROUNDS + 1):
        opened.ledger._between = threading.Barrier(2, timeout=LIMIT_S).wait
        assert post_twice(opened.url, f"o{number}", 7) == [(201, False), (201, False)]
        assert totals(opened.url) == {
            "keys": number,
            "stock": 14 * number,
            "writes": 2 * number,
            "requests": 2 * number,
        }


def test_two_quantities_of_one_id_at_the_same_moment_give_one_effect_and_one_conflict(open_receiver):
    opened = open_receiver(kind=MeetAtTheDoor)
    for number in range(1, 21):
        before = totals(opened.url)["stock"]
        calls = [functools.partial(post_order, opened.url, f"o{number}", quantity) for quantity in (3, 5)]
        replies = together(*calls)
        assert sorted(reply.status for reply in replies) == [201, 409]
        winner = 3 if replies[0].status == 201 else 5
        assert totals(opened.url)["stock"] - before == winner


def test_the_same_order_again_says_duplicate_and_moves_nothing(url):
    first, *later = [post_order(url, "a", 7) for _ in range(4)]
    assert (first.status, first.document) == (201, {"ok": True, "id": "a", "duplicate": False})
    assert {(reply.status, reply.document["duplicate"]) for reply in later} == {(200, True)}
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 4}


def test_the_same_id_with_another_quantity_is_a_conflict_that_counts_as_a_request_only(url):
    post_order(url, "a", 7)
    reply = post_order(url, "a", 8)
    assert reply.status == 409
    assert reply.document == {"ok": False, "error": "This id is known with another quantity."}
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 2}
    assert post_order(url, "a", 7).status == 200


def test_ids_that_differ_in_case_are_two_orders(url):
    assert [post_order(url, order_id, 1).status for order_id in ("a", "A")] == [201, 201]


def test_other_fields_are_accepted_and_mean_nothing_to_the_record(url):
    first = post_order(url, "a", 7, queue="snacks", payload={"item": "Chips", "price": 1.5, "id": "z"})
    again = post_order(url, "a", 7, queue="drinks", payload=None, attempt=2)
    assert (first.status, again.status) == (201, 200)


@pytest.mark.parametrize("order_id", ["0", "a.b_c:d-e", "A" * 64, "o1-2"])
def test_every_id_that_the_queue_may_have_is_taken(url, order_id):
    assert post_order(url, order_id, 1_000_000).status == 201


def test_the_poison_story_leaves_two_effects_and_every_request_counted(open_receiver):
    opened = open_receiver(LOSE_FIRST, {"ids": ["poison"], "status": 503})
    url = opened.url
    with pytest.raises(ConnectionError):
        post_order(url, "a", 7)
    statuses = [post_order(url, *order).status for order in [("a", 7), ("a", 7)] + [("poison", 99)] * 3 + [("b", 3)]]
    assert statuses == [200, 200, 503, 503, 503, 201]
    assert totals(url) == {"keys": 2, "stock": 10, "writes": 2, "requests": 7}
    assert requests_of(url) == {"a": 3, "poison": 3, "b": 1}
    rows = {row["id"]: row["applied_at_ms"] for row in get(url, "/ledger").document["orders"]}
    assert rows["poison"] is None
    assert rows["a"] < rows["b"]


def test_without_the_record_one_lost_answer_moves_the_stock_twice(open_receiver):
    stock = {}
    for kind in (Ledger, WithoutRecord):
        url = open_receiver(LOSE_FIRST, kind=kind, name=f"{kind.__name__}.sqlite3").url
        with pytest.raises(ConnectionError):
            post_order(url, "a", 7)
        assert post_order(url, "a", 7).document["ok"] is True
        stock[kind] = totals(url)["stock"]
    assert stock == {Ledger: 7, WithoutRecord: 14}


def test_livez_says_that_the_process_answers(url):
    assert request(url, "GET", "/livez").document == {"ok": True}
