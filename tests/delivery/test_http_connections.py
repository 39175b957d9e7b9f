"""Connections that fail, hang or drip, and requests that are never sent (DESIGN section 6)."""

import socket

import pytest

from queue_app.delivery.http import HttpDelivery
from queue_app.policy.answers import effect_possible
from queue_app.policy.errors import Cancelled
from tests.delivery.conftest import SOON_S, Order, outcome, timed
from tests.delivery.rawserver import FIN, HOLD, LIMIT_S, READ, RESET, WAIT, Drip, RawServer, answer

OK = b'{"ok":true,"id":"o1"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n"


def test_a_refused_connection_may_be_tried_again_and_had_no_effect(adapter):
    with RawServer() as server:
        url = server.url
    assert outcome(adapter(url)) == ("retry", "connect_refused")
    assert not effect_possible("connect_refused")


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long"), OSError("no files")])
def test_a_name_that_does_not_resolve_may_be_tried_again(adapter, monkeypatch, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert outcome(adapter("http://receiver.invalid")) == ("retry", "dns")


def addresses(*ports):
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]


def test_each_address_of_a_name_is_tried(adapter, monkeypatch):
    with RawServer() as gone:
        closed_port = gone.port
    with RawServer([READ, answer()]) as server:
        found = [(99, socket.SOCK_STREAM, 6, "", ("::1", 1)), *addresses(closed_port, server.port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert outcome(adapter("http://receiver.invalid")) == ("done", "")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found[:1])
        assert outcome(adapter("http://other.invalid")) == ("retry", "connection_failed")


def test_the_connect_limit_holds_for_all_addresses_together(adapter, monkeypatch):
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        # One waiting connection fills the backlog: the kernel then leaves further ones without an answer.
        waiting = [socket.socket() for _ in range(3)]
        try:
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", port))
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses(*[port] * 5))
            result, took_s = timed(adapter("http://receiver.invalid", connect_ms=150))
            assert result == ("retry", "timeout_connect")
            assert 0.1 < took_s < SOON_S
            result, took_s = timed(adapter("http://receiver.invalid", total_ms=100))
            assert result == ("retry", "timeout_connect")
            assert took_s < SOON_S
        finally:
            for sock in waiting:
                sock.close()


@pytest.mark.parametrize(
    "script", [[READ, RESET], [READ], [], [READ, HEAD, RESET], [READ, HEAD + b"\r\n" + OK[:9], RESET]]
)
def test_a_connection_that_breaks_may_be_tried_again(adapter, script):
    with RawServer(script) as server:
        assert outcome(adapter(server.url)) == ("retry", "connection_lost")
        assert server.connections == 1
    assert effect_possible("connection_lost")


def test_a_connection_reset_at_once_may_be_tried_again(adapter):
    with RawServer([RESET]) as server:
        # The kernel reports the reset at connecting or at writing, whichever comes first.
        assert outcome(adapter(server.url)) in [("retry", "connection_lost"), ("retry", "connection_failed")]


SILENT = [
    [HOLD],
    [READ, HOLD],
    [READ, b"HTTP/1.1 100 Continue\r\n\r\n", HOLD],
    [READ, HEAD, HOLD],
    [READ, HEAD + b"\r\n" + OK[:9], HOLD],
]


@pytest.mark.parametrize("script", SILENT)
def test_a_silent_receiver_ends_at_the_read_limit(adapter, script):
    with RawServer(script) as server:
        result, took_s = timed(adapter(server.url, read_ms=120))
        assert server.client_gone.wait(LIMIT_S)
    assert result == ("retry", "timeout_read")
    assert 0.1 < took_s < SOON_S


@pytest.mark.parametrize("script", SILENT)
def test_a_silent_receiver_ends_at_the_total_limit_if_that_comes_first(adapter, script):
    with RawServer(script) as server:
        result, took_s = timed(adapter(server.url, read_ms=20_000, total_ms=120))
    assert result == ("retry", "timeout_total")
    assert 0.1 < took_s < SOON_S


@pytest.mark.parametrize(
    "drip",
    [
        Drip(HEAD + b"\r\n" + OK, 0.05),
        Drip(b"x" * 100, 0.05, first=HEAD + b"X-Drip: "),
        Drip(OK * 9, 0.05, first=HEAD + b"\r\n"),
        Drip(b"1;" + b"x" * 99, 0.05, first=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Drip(b"x" * 100, 0.05, first=b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
)
def test_a_byte_now_and_then_ends_at_the_total_limit(adapter, drip):
    with RawServer([READ, drip, HOLD]) as server:
        result, took_s = timed(adapter(server.url, read_ms=20_000, total_ms=300))
    assert result == ("retry", "timeout_total")
    assert 0.25 < took_s < SOON_S


def test_endless_interim_answers_end_at_the_total_limit(adapter):
    with RawServer([READ, *[Drip(b"\n", 0.03, first=b"HTTP/1.1 102 Wait\r\n\r")] * 100]) as server:
        result, took_s = timed(adapter(server.url, read_ms=20_000, total_ms=300))
    assert result == ("retry", "timeout_total")
    assert took_s < SOON_S


def test_a_receiver_that_takes_nothing_ends_at_the_limit_for_writing(adapter):
    order = Order(payload_text='{"x":"' + "x" * 20_000_000 + '"}')
    with RawServer([WAIT]) as server:
        result, took_s = timed(adapter(server.url, read_ms=150), order)
    assert result == ("retry", "timeout_write")
    assert took_s < SOON_S


def test_an_answer_that_comes_before_the_request_was_read_still_counts(adapter):
    with RawServer([answer(OK, b"422 No"), FIN, HOLD]) as server:
        assert outcome(adapter(server.url)) == ("permanent", "http_422")


def test_time_is_taken_from_the_clock_that_is_given(adapter):
    ticks = iter([1_000, 1_000, 1_000, *[6_000] * 99])
    with RawServer([READ, answer()]) as server:
        assert outcome(adapter(server.url, total_ms=5_000, monotonic_ms=lambda: next(ticks)))[1].startswith("timeout")


@pytest.mark.parametrize(
    "url",
    ["", "receiver", "ftp://r", "http://", "http://u:p@r", "http://r?a=1", "http://r/?", "http://r#x", "http://["],
)
def test_a_url_that_cannot_be_meant_is_refused_without_being_repeated(url):
    with pytest.raises(ValueError, match=r"^The receiver's URL [a-z].*\.$") as caught:
        HttpDelivery(url, connect_ms=1, read_ms=1, total_ms=1)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("limit", ["connect_ms", "read_ms", "total_ms"])
def test_a_time_of_nothing_is_refused(limit):
    with pytest.raises(ValueError, match="above 0 ms"):
        HttpDelivery("http://r", **{"connect_ms": 1, "read_ms": 1, "total_ms": 1, limit: 0})


@pytest.mark.parametrize(
    "order",
    [
        Order(id="ö1"),
        Order(id="o1\r\nX-Evil: 1"),
        Order(id="o\0"),
        Order(payload_text=""),
        Order(payload_text="[1]"),
        Order(payload_text='{"x":"\ud800"}'),
    ],
)
def test_an_order_that_cannot_be_a_request_is_not_sent(adapter, order):
    with RawServer([READ, answer()]) as server:
        assert outcome(adapter(server.url), order) == ("unknown", "bad_order")
    assert server.requests == []
    assert not effect_possible("bad_order")


def test_a_closed_adapter_sends_nothing(adapter):
    with RawServer([READ, answer()]) as server:
        with HttpDelivery(server.url, connect_ms=20_000, read_ms=20_000, total_ms=20_000) as delivery:
            assert delivery(Order()) is True
        with pytest.raises(Cancelled):
            delivery(Order())
        assert server.connections == 1


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_a_wall_clock_that_jumps_neither_ends_a_delivery_nor_lets_it_last(adapter, jump_ms):
    """F39: all limits are of the monotonic clock."""
    now = [1_800_000_000_000]

    def jumping():
        now[0] += jump_ms
        return now[0]

    with RawServer([READ, answer(), READ, HOLD]) as server:
        delivery = adapter(server.url, total_ms=400, now_ms=jumping)
        assert outcome(delivery) == ("done", "")
        result, took_s = timed(delivery)
    assert result == ("retry", "timeout_total")
    assert took_s < SOON_S
