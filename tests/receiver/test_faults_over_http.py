"""Faults as a sender sees them, and what they leave in the ledger."""

import functools
import time

import pytest

from tests.receiver.http_client import get, post_order, request, requests_of, set_faults, together, totals


def outcome(url, order_id, quantity=1):
    """The status of one post, or "lost" when no answer came."""
    try:
        return post_order(url, order_id, quantity).status
    except ConnectionError:
        return "lost"


@pytest.mark.parametrize("status", [400, 408, 422, 429, 500, 503, 599])
def test_a_status_fault_leaves_a_counted_request_and_no_effect(open_receiver, status):
    url = open_receiver({"ids": ["a"], "status": status}).url
    assert [outcome(url, "a", 9) for _ in range(3)] == [status] * 3
    assert totals(url) == {"keys": 0, "stock": 0, "writes": 0, "requests": 3}
    [row] = get(url, "/ledger").document["orders"]
    assert row == {"id": "a", "quantity": 9, "applied_at_ms": None, "requests": 3}


def test_an_answer_dropped_after_the_commit_keeps_its_effect_and_the_next_request_is_a_duplicate(open_receiver):
    url = open_receiver({"ids": ["a"], "drop": "after", "first": 1}).url
    assert outcome(url, "a", 7) == "lost"
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 1}
    again = post_order(url, "a", 7)
    assert (again.status, again.document["duplicate"]) == (200, True)
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 2}


def test_a_request_dropped_before_the_commit_has_no_effect_and_the_next_one_is_the_first(open_receiver):
    url = open_receiver({"ids": ["a"], "drop": "before", "first": 1}).url
    assert outcome(url, "a", 7) == "lost"
    assert totals(url) == {"keys": 0, "stock": 0, "writes": 0, "requests": 1}
    assert post_order(url, "a", 7).document["duplicate"] is False
    assert totals(url) == {"keys": 1, "stock": 7, "writes": 1, "requests": 2}


def test_a_delay_holds_back_the_answer_and_neither_the_effect_nor_other_senders(open_receiver):
    opened = open_receiver({"ids": ["slow"], "delay_ms": 60_000})
    wait_for_effect_then_stop = functools.partial(_stop_when_applied, opened)
    reply, stock_before_answer = together(lambda: post_order(opened.url, "slow", 7), wait_for_effect_then_stop)
    assert stock_before_answer == 8  # another order went through while "slow" waited
    assert (reply.status, reply.headers["Connection"]) == (201, "close")  # the stop ended the wait, not the answer


def _stop_when_applied(opened):
    limit = time.monotonic() + 20
    while totals(opened.url)["keys"] == 0:
        assert time.monotonic() < limit
    post_order(opened.url, "quick", 1)
    stock = totals(opened.url)["stock"]
    opened.receiver.close()
    return stock


def test_the_same_run_has_the_same_failures(open_receiver):
    faults = [
        {"share": 0.1, "status": 422, "for_good": True},
        {"share": 0.1, "drop": "after"},
        {"share": 0.2, "status": 503},
    ]
    runs = []
    for name in ("one.sqlite3", "two.sqlite3"):
        url = open_receiver(*faults, name=name).url
        runs.append([[outcome(url, f"o{number}") for number in range(60)] for _ in range(3)])
        counts = set(requests_of(url).values())
        assert counts == {3}
    assert runs[0] == runs[1]
    assert {200, 201, 422, 503, "lost"} == {status for tries in runs[0] for status in tries}
    refused_for_good = [{number for number, status in enumerate(tries) if status == 422} for tries in runs[0]]
    assert refused_for_good[0] == refused_for_good[1] == refused_for_good[2] != set()


def test_a_restart_goes_on_with_the_request_numbers(open_receiver):
    fault = {"ids": ["a"], "status": 503, "first": 2}
    first = open_receiver(fault)
    assert outcome(first.url, "a") == 503
    first.receiver.close()
    url = open_receiver(fault).url
    assert [outcome(url, "a") for _ in range(2)] == [503, 201]


def test_without_demo_mode_the_faults_have_no_address(open_receiver):
    url = open_receiver({"ids": ["a"], "status": 503}).url
    assert [request(url, method, "/faults", b"{}").status for method in ("GET", "POST", "PUT")] == [404] * 3
    assert outcome(url, "a") == 503


def test_in_demo_mode_the_faults_can_be_seen_and_repaired(open_receiver):
    url = open_receiver({"ids": ["a"], "status": 503}, demo=True).url
    assert get(url, "/faults").document == {"faults": [{"name": "503", "status": 503, "ids": ["a"]}]}
    assert outcome(url, "a") == 503
    assert set_faults(url).document == {"faults": []}
    assert outcome(url, "a") == 201
    assert set_faults(url, {"share": 1, "status": 422}).status == 200
    assert outcome(url, "a") == 422


def test_replaced_faults_outlive_a_restart_in_demo_mode_and_win_over_those_of_the_start(open_receiver):
    start = {"share": 1, "status": 503}
    first = open_receiver(start, demo=True)
    set_faults(first.url, {"ids": ["a"], "status": 422})
    first.receiver.close()
    second = open_receiver(start, demo=True)
    assert [outcome(second.url, order_id) for order_id in ("a", "b")] == [422, 201]
    set_faults(second.url)
    second.receiver.close()
    assert get(open_receiver(start, demo=True).url, "/faults").document == {"faults": []}


def test_without_demo_mode_faults_replaced_in_an_earlier_demo_do_not_hold(open_receiver):
    first = open_receiver(demo=True)
    set_faults(first.url, {"share": 1, "status": 422})
    first.receiver.close()
    assert outcome(open_receiver().url, "a") == 201


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"faults": null}',
        b'{"faults": [{"share": NaN, "status": 503}]}',
        b'{"faults": [{}]}',
        b"\xff",
    ],
)
def test_bad_faults_are_refused_with_a_sentence_and_the_old_ones_stay(open_receiver, body):
    url = open_receiver({"share": 1, "status": 503}, demo=True).url
    reply = request(url, "POST", "/faults", body)
    assert reply.status == 400
    assert reply.document["error"].endswith(".")
    assert outcome(url, "a") == 503


def test_the_faults_address_takes_no_other_method(open_receiver):
    url = open_receiver(demo=True).url
    reply = request(url, "DELETE", "/faults")
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, POST")
