"""Connections that are kept between orders, and what must not travel over them (DESIGN section 6)."""

import threading

import pytest

from tests.delivery.conftest import SOON_S, outcome, timed
from tests.delivery.rawserver import HOLD, LIMIT_S, READ, RESET, RawServer, answer

OK = b'{"ok":true,"id":"o1"}'


def test_a_connection_is_kept_between_orders(adapter):
    with RawServer([READ, answer(), READ, answer(), READ, answer()]) as server:
        delivery = adapter(server.url)
        assert [outcome(delivery) for _ in range(3)] == [("done", "")] * 3
        assert server.connections == 1


def test_cookies_are_not_kept(adapter):
    with RawServer([READ, answer(OK, b"200 OK", b"Set-Cookie: a=b; Path=/"), READ, answer()]) as server:
        delivery = adapter(server.url)
        assert [outcome(delivery), outcome(delivery)] == [("done", ""), ("done", "")]
    assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize("end", [[], [RESET]])
def test_a_kept_connection_that_the_peer_has_closed_costs_no_attempt(adapter, end):
    with RawServer([READ, answer(), *end], [READ, answer()]) as server:
        delivery = adapter(server.url)
        assert outcome(delivery) == ("done", "")
        assert server.ended.acquire(timeout=LIMIT_S)
        assert outcome(delivery) == ("done", "")
        assert server.connections == 2


@pytest.mark.parametrize("end", [[], [RESET]])
def test_a_kept_connection_closed_under_the_request_is_replaced_once_with_the_same_key(adapter, end):
    with RawServer([READ, answer(), READ, *end], [READ, answer()]) as server:
        delivery = adapter(server.url)
        assert [outcome(delivery), outcome(delivery)] == [("done", ""), ("done", "")]
    assert server.requests[1] == server.requests[2]
    assert len(server.requests) == 3


def test_the_replacement_is_made_once_and_only_for_a_kept_connection(adapter):
    with RawServer([READ, answer(), READ], [READ]) as server:
        delivery = adapter(server.url)
        assert [outcome(delivery), outcome(delivery)] == [("done", ""), ("retry", "connection_lost")]
    assert len(server.requests) == 3


def test_a_kept_connection_that_falls_silent_is_not_replaced(adapter):
    with RawServer([READ, answer(), READ, HOLD]) as server:
        delivery = adapter(server.url, read_ms=400)
        assert [outcome(delivery), outcome(delivery)] == [("done", ""), ("retry", "timeout_read")]
    assert len(server.requests) == 2


def test_the_replacement_shares_the_total_time_of_the_call(adapter):
    with RawServer([READ, answer(), READ], [READ, HOLD]) as server:
        delivery = adapter(server.url, total_ms=250)
        outcome(delivery)
        result, took_s = timed(delivery)
    assert result == ("retry", "timeout_total")
    assert took_s < SOON_S


@pytest.mark.parametrize("stray", [answer(), answer(b'{"ok":true,"id":"o0"}'), b"HTTP/1.1 200 OK\r\n\r\n", b"junk"])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_order(adapter, stray):
    with RawServer([READ, answer() + stray, HOLD], [READ, answer()]) as server:
        delivery = adapter(server.url)
        assert [outcome(delivery), outcome(delivery)] == [("done", ""), ("done", "")]
        assert server.connections == 2


@pytest.mark.parametrize("first", [answer(b'{"ok":true,"id":"o0"}'), answer(b"", b"503 No"), answer(b"", b"404 No")])
def test_a_connection_is_not_used_again_after_anything_but_success(adapter, first):
    with RawServer([READ, first, HOLD], [READ, answer()]) as server:
        delivery = adapter(server.url)
        assert outcome(delivery) != ("done", "")
        assert server.client_gone.wait(LIMIT_S)
        assert outcome(delivery) == ("done", "")


def test_threads_may_share_an_adapter_without_sharing_their_time(adapter):
    with RawServer([READ, HOLD], [READ, answer()]) as server:
        delivery = adapter(server.url, total_ms=400)
        results = []
        slow = threading.Thread(target=lambda: results.append(timed(delivery)))
        slow.start()
        while not server.requests:
            assert slow.is_alive()
        assert outcome(delivery) == ("done", "")
        slow.join(LIMIT_S)
    assert results[0][0] == ("retry", "timeout_total")
    assert results[0][1] < SOON_S


def test_environment_proxies_and_certificates_are_ignored(adapter, monkeypatch):
    with RawServer([READ, answer()]) as server, RawServer([READ]) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
        assert outcome(adapter(server.url)) == ("done", "")
        assert proxy.connections == 0
        adapter("https://receiver.invalid")
