"""Raw bytes from peers that are slow, endless, wrong or gone: bounded, answered if possible, never the end of us."""

import contextlib
import json
import select
import socket
import threading
import time

import pytest

from queue_app.receiver.wire import Limits
from tests.receiver.http_client import LIMIT_S, connect, get, post_order, raw_socket, read_all, totals

BODY = b'{"id": "a", "quantity": 1}'
HEAD = b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\n"
GOOD = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
QUICK = Limits(idle_ms=60_000, request_ms=300)


def exchange(url, raw, *, end=True):
    """Send `raw`, end our side unless told otherwise, and give back the status of every answer, and the last text."""
    with contextlib.closing(raw_socket(url)) as link:
        with contextlib.suppress(OSError):  # refused before all was sent
            link.sendall(raw)
            if end:
                link.shutdown(socket.SHUT_WR)
        answer = read_all(link)
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]], answer


def still_well(url):
    assert post_order(url, "well", 1).status in (200, 201)


BAD_REQUESTS = {
    "chunked": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 411),
    "chunked and a length": (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", 411),
    "no length": (HEAD + b"\r\n" + BODY, 411),
    "two lengths": (HEAD + b"Content-Length: 26\r\nContent-Length: 26\r\n\r\n" + BODY, 400),
    "negative length": (HEAD + b"Content-Length: -1\r\n\r\n" + BODY, 400),
    "signed length": (HEAD + b"Content-Length: +26\r\n\r\n" + BODY, 400),
    "list of lengths": (HEAD + b"Content-Length: 26, 26\r\n\r\n" + BODY, 400),
    "length of no number": (HEAD + b"Content-Length: \xb2\xb3\r\n\r\n" + BODY, 400),
    "huge length": (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
    "one byte too large": (HEAD + b"Content-Length: 65537\r\n\r\n" + b" " * 65537, 413),
    "far too large": (HEAD + b"Content-Length: 1000000000\r\n\r\n" + b" " * 500_000, 413),
    "too large, waiting for leave": (HEAD + b"Expect: 100-continue\r\nContent-Length: 70000\r\n\r\n", 413),
    "shorter than its length": (HEAD + b"Content-Length: 27\r\n\r\n" + BODY, 400),
    "compressed": (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 26\r\n\r\n" + BODY, 415),
    "long request line": (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n", 414),
    "long header line": (HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\n", 431),
    "long header": (HEAD + b"X: " + b"a" * 900 + (b"\r\nX: " + b"a" * 900) * 40 + b"\r\n\r\n", 431),
    "many headers": (HEAD + b"X: y\r\n" * 200 + b"\r\n", 431),
    "bad version": (b"GET /livez HTTP/x\r\n\r\n", 400),
    "version 2": (b"GET /livez HTTP/2.0\r\n\r\n", 505),
    "two words too many": (b"GET /livez it is HTTP/1.1\r\n\r\n", 400),
    "binary": (b"\x16\x03\x01\x02\x00\x01\x00\xff\r\n\r\n", 400),
}


@pytest.mark.parametrize(("raw", "status"), BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_a_request_outside_the_bounds_is_refused_in_one_sentence_and_ends_the_connection(url, raw, status):
    _, answer = exchange(url, raw, end=status == 400)
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1"):
        assert int(head[9:12]) == status
        assert b"Connection: close" in head
    else:  # a request line without a readable version is answered as HTTP/0.9: the body alone
        body = answer
    assert json.loads(body)["ok"] is False
    assert totals(url)["requests"] == 0
    still_well(url)


def test_a_refused_peer_that_goes_on_sending_can_still_do_so_and_read_the_refusal(url):
    with contextlib.closing(raw_socket(url)) as link:
        link.sendall(HEAD + b"Content-Length: 200000\r\n\r\n")
        assert link.recv(100).startswith(b"HTTP/1.1 413")
        assert read_all(link).endswith(b"}")
        for _ in range(
            50
        ):  # closing at once would answer one of these with a reset, and that could overtake the answer
            link.sendall(b" " * 1_000)
            select.select([], [], [link], 0.004)


def test_a_body_of_exactly_the_limit_is_taken(url):
    body = BODY + b" " * (65_536 - len(BODY))
    statuses, _ = exchange(url, HEAD + b"Content-Length: 65536\r\n\r\n" + body)
    assert statuses == [201]


def test_requests_sent_ahead_are_answered_in_order_and_nothing_after_a_refusal(url):
    bad = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    statuses, _ = exchange(url, GOOD + GOOD + bad + GOOD)
    assert statuses == [201, 200, 411]
    assert totals(url)["requests"] == 2


def test_a_connection_is_kept_for_further_requests(url):
    with contextlib.closing(connect(url)) as link:
        sockets = set()
        for _ in range(3):
            link.request("POST", "/orders", BODY, {"Idempotency-Key": "a"})
            assert link.getresponse().read()
            sockets.add(link.sock)
    assert len(sockets) == 1
    assert None not in sockets


def test_a_body_is_asked_for_when_the_sender_waits_for_leave(url):
    with contextlib.closing(raw_socket(url)) as link:
        link.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert link.recv(100).startswith(b"HTTP/1.1 100")
        link.sendall(BODY)
        assert link.recv(100).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize("start", [HEAD + b"Content-Length: 60000\r\n\r\n", HEAD + b"X: ", b"POST "])
def test_one_byte_at_a_time_without_end_is_cut_off_at_the_total_limit(open_receiver, start):
    url = open_receiver(limits=QUICK).url
    began = time.monotonic()
    with contextlib.closing(raw_socket(url)) as link:
        link.sendall(start)
        while not select.select([link], [], [], 0.02)[0]:
            assert time.monotonic() - began < LIMIT_S
            link.sendall(b"a")
        assert link.recv(100).startswith(b"HTTP/1.1 408")
    assert totals(url)["requests"] == 0
    still_well(url)


def test_a_peer_that_never_asks_anything_is_let_go_without_an_answer(open_receiver):
    url = open_receiver(limits=Limits(idle_ms=100)).url
    assert exchange(url, b"", end=False) == ([], b"")


def test_a_peer_that_resets_in_the_middle_is_no_failure_of_ours(url, caplog):
    for raw in (b"", b"POST", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", GOOD):
        with contextlib.closing(raw_socket(url)) as link:
            link.sendall(raw)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    still_well(url)
    assert caplog.records == []


def test_connections_beyond_the_limit_are_told_to_come_again_and_served_when_there_is_room(open_receiver):
    url = open_receiver(limits=Limits(connections=2)).url
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(contextlib.closing(connect(url))) for _ in range(2)]
        for link in held:
            link.request("GET", "/livez")
            assert link.getresponse().read()
        refused, answer = exchange(url, b"", end=False)
        assert refused == [503]
        assert b"Retry-After: 1" in answer
    limit = time.monotonic() + LIMIT_S
    while not taken(url):
        assert time.monotonic() < limit


def taken(url):
    """Whether an order was answered; one that came too early may see a reset instead of the refusal."""
    try:
        return exchange(url, GOOD)[0] in ([201], [200])
    except OSError:
        return False


def test_closing_ends_idle_connections_at_once_and_leaves_no_thread(open_receiver):
    before = threading.active_count()
    opened = open_receiver()
    with contextlib.closing(connect(opened.url)) as link:
        link.request("GET", "/livez")
        link.getresponse().read()
        began = time.monotonic()
        opened.receiver.close()
        opened.receiver.close()  # a second call does nothing
        assert time.monotonic() - began < 5
        assert link.sock.recv(1) == b""
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        get(opened.url, "/livez")


def test_a_fault_of_ours_is_500_without_details_and_the_log_holds_only_its_kind(open_receiver, caplog):
    def burst():
        raise RuntimeError("secret of order a")

    url = open_receiver(between=burst).url
    reply = post_order(url, "a", 1)
    assert (reply.status, reply.document) == (500, {"ok": False, "error": "The receiver failed."})
    assert [record.getMessage() for record in caplog.records] == ["a request failed: RuntimeError"]
    assert totals(url)["requests"] == 0


def test_no_answer_names_versions_or_may_be_stored(url):
    headers = get(url, "/ledger").headers
    assert (headers["Server"], headers["Cache-Control"]) == ("receiver", "no-store")
