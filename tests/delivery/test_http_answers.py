"""What the adapter makes of an answer, well-formed or not (DESIGN section 6)."""

import gzip
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_app.policy.errors import BadAck, Permanent, Retryable
from tests.delivery.conftest import Order, outcome
from tests.delivery.rawserver import FIN, HOLD, LIMIT_S, READ, Drip, Flood, RawServer, answer

OK = b'{"ok":true,"id":"o1"}'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
NOW_MS = 784_111_777_000  # Sun, 06 Nov 1994 08:49:37 GMT


def outcome_of(adapter, *script, order=None, **limits):
    with RawServer([READ, *script]) as server:
        return outcome(adapter(server.url, **limits), order)


def test_the_request_is_what_the_contract_says(adapter):
    order = Order("o1-2", 3, '{"price":1.10,"big":12345678901234567890123,"name":"辛ラーメン"}')
    with RawServer([READ, answer(b'{"ok":true,"id":"o1-2"}')]) as server:
        assert outcome(adapter(server.url + "/base/"), order) == ("done", "")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    assert lines[0] == "POST /base/orders HTTP/1.1"
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert headers["host"] == server.url.removeprefix("http://")
    assert headers["idempotency-key"] == "o1-2"
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert "cookie" not in headers
    assert json.loads(body) == {"id": "o1-2", "quantity": 3, "payload": json.loads(order.payload_text)}
    assert order.payload_text.encode() in body


@pytest.mark.parametrize("status", [b"200 OK", b"201 Created", b"200", b"200 "])
def test_200_and_201_with_the_agreed_body_are_done(adapter, status):
    assert outcome_of(adapter, answer(OK, status)) == ("done", "")


@pytest.mark.parametrize(
    "script",
    [
        [b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", answer(OK)],
        [CHUNKED + b"5\r\n" + OK[:5] + b"\r\n10\r\n" + OK[5:] + b"\r\n0\r\n\r\n"],
        [CHUNKED + b"15;note=1\r\n" + OK + b"\r\n0\r\nTrailer: x\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n\r\n" + OK],
        [b"HTTP/1.0 200 OK\r\n\r\n" + OK, FIN],
        [Drip(answer(OK), 0.0)],
        [answer(OK, b"200 OK", b"Content-Encoding: identity", b"X-Two: 1", b"X-Two: 2")],
        [answer(OK, b"200 OK", *(b"X-Some: %d" % n for n in range(90)))],
    ],
)
def test_unusual_but_lawful_answers_are_read(adapter, script):
    assert outcome_of(adapter, *script) == ("done", "")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"ok":true,"id":"o2"}', "wrong_id"),
        (b'{"ok":"true","id":"o1"}', "not_ok"),
        (b'{"ok":1,"id":"o1"}', "not_ok"),
        (b'{"id":"o1"}', "not_ok"),
        (b'[{"ok":true,"id":"o1"}]', "bad_json"),
        (b'"ok"', "bad_json"),
        (b"", "bad_json"),
        (b"<html>Please sign in to the network</html>", "bad_json"),
        (b"\xef\xbb\xbf" + OK, "bad_json"),
        (OK.decode().encode("utf-16"), "bad_json"),
        (b'{"ok":false,"ok":true,"id":"o1"}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":NaN}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":' + b"9" * 5_000 + b"}", "bad_json"),
        (b"[" * 60_000, "bad_json"),
        (b"[" * 100_000, "oversize"),
    ],
)
def test_a_200_without_the_agreed_body_is_an_unknown_outcome(adapter, body, code):
    assert outcome_of(adapter, answer(body)) == ("unknown", code)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(status, "retry") for status in (408, 425, 429, 500, 502, 503, 504, 599)]
    + [(status, "permanent") for status in (400, 409, 410, 413, 422)]
    + [(status, "unknown") for status in (202, 204, 206, 304, 401, 403, 404, 405, 418, 999)],
)
def test_the_status_decides_even_if_the_body_says_ok(adapter, status, kind):
    assert outcome_of(adapter, answer(OK, b"%d Whatever" % status)) == (kind, f"http_{status}")


@pytest.mark.parametrize(
    ("status", "headers", "wait_ms"),
    [
        (b"503", [b"Retry-After: 7"], 7_000),
        (b"429", [b"retry-after: Sun, 06 Nov 1994 08:49:57 GMT"], 20_000),
        (b"503", [b"Retry-After: 99999999999999999999"], 3_600_000),
        (b"503", [b"Retry-After: -5"], None),
        (b"503", [b"Retry-After: \xd9\xa3"], None),
        (b"503", [b"Retry-After: 5", b"Retry-After: 5"], None),
        (b"503", [], None),
        (b"500", [b"Retry-After: 7"], None),
    ],
)
def test_retry_after_is_passed_on_within_its_bounds(adapter, status, headers, wait_ms):
    with RawServer([READ, answer(OK, status, *headers)]) as server:
        delivery = adapter(server.url, now_ms=lambda: NOW_MS)
        with pytest.raises(Retryable) as caught:
            delivery(Order())
    assert caught.value.retry_after_ms == wait_ms


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["itself", "elsewhere", "file:///etc/passwd", "//", "http://[", "\xff"])
def test_a_redirect_is_never_followed(adapter, status, where):
    with RawServer([READ, answer(OK)]) as elsewhere, RawServer() as server:
        target = {"itself": server.url + "/orders", "elsewhere": elsewhere.url}.get(where, where).encode("latin-1")
        server.scripts = [[READ, answer(b"", b"%d Go" % status, b"Location: " + target), HOLD]]
        assert outcome(adapter(server.url)) == ("unknown", "redirect")
        assert (server.connections, elsewhere.connections) == (1, 0)


@pytest.mark.parametrize("value", [b"gzip", b"GZIP", b"deflate", b"br", b"zstd", b"identity, gzip", b"x", b""])
def test_a_compressed_body_is_not_decoded(adapter, value):
    body = gzip.compress(OK) if value.lower() == b"gzip" else OK
    assert outcome_of(adapter, answer(body, b"200 OK", b"Content-Encoding: " + value)) == ("unknown", "compressed")


def flat_memory(adapter, script):
    """The outcome of a huge answer; it must leave less than 2 MB behind at any moment and end the connection."""
    with RawServer([READ, *script, HOLD]) as server:
        delivery = adapter(server.url)
        tracemalloc.start()
        try:
            result = outcome(delivery)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert server.client_gone.wait(LIMIT_S)
        assert server.sent < 30_000_000  # what socket buffers swallow; the script goes on to 1 GB
    assert peak < 2_000_000
    return result


BLOCK = b"x" * 65_536
GZIP_BOMB = gzip.compress(b"\0" * 10_000_000)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", Flood(BLOCK, 10**9)], "oversize"),
        ([b"HTTP/1.1 200 OK\r\n\r\n", Flood(BLOCK, 10**9)], "oversize"),
        ([CHUNKED, Flood(b"10000\r\n" + BLOCK + b"\r\n", 10**9)], "oversize"),
        ([CHUNKED, Flood(b"1\r\nx\r\n" * 8_000, 10**9)], "oversize"),
        ([CHUNKED + b"1;", Flood(BLOCK, 10**9)], "bad_http"),
        ([CHUNKED + b"0\r\n", Flood(b"X-Trailer: 1\r\n" * 4_000, 10**9)], "bad_http"),
        ([b"HTTP/1.1 200 ", Flood(BLOCK, 10**9)], "bad_http"),
        ([b"HTTP/1.1 200 OK\r\n", Flood(b"X-Header: 1\r\n" * 4_000, 10**9)], "bad_http"),
        ([answer(GZIP_BOMB, b"200 OK", b"Content-Encoding: gzip")], "compressed"),
    ],
)
def test_memory_stays_flat_and_the_connection_ends_when_an_answer_is_huge(adapter, script, code):
    assert flat_memory(adapter, script) == ("unknown", code)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nContent-Length: 22\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 21, 22\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: -21\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: +21\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x15\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n" + OK + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nX-Nul: a\0b\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nno colon\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n" + OK,
        answer(OK, b"200 OK", *(b"X-Many: %d" % n for n in range(100))),
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"HTTP/x 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"\r\n\r\n",
        b"ICY 200 OK\r\n\r\n" + OK,
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        OK,
        CHUNKED + b"zz\r\n" + OK,
        CHUNKED + b"-15\r\n" + OK,
        CHUNKED + b"15\r\n" + OK + b"xx0\r\n\r\n",
    ],
)
def test_broken_http_is_an_unknown_outcome_and_ends_the_connection(adapter, raw):
    with RawServer([READ, raw, HOLD]) as server:
        assert outcome(adapter(server.url)) == ("unknown", "bad_http")
        assert server.client_gone.wait(LIMIT_S)


@pytest.mark.parametrize(
    ("script", "result"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n" + OK], ("retry", "short_body")),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n"], ("retry", "short_body")),
        ([CHUNKED + b"15\r\n" + OK[:9]], ("retry", "short_body")),
        ([CHUNKED + b"15\r\n" + OK + b"\r\n"], ("retry", "short_body")),
        ([CHUNKED], ("retry", "short_body")),
        ([b"HTTP/1.1 200 OK\r\nConte"], ("retry", "connection_lost")),
        ([b"HT"], ("retry", "connection_lost")),
        ([b"HTTP/1.0 200 OK\r\n\r\n" + OK[:9]], ("unknown", "bad_json")),
    ],
)
def test_an_answer_that_breaks_off_may_be_asked_for_again(adapter, script, result):
    assert outcome_of(adapter, *script) == result


def test_an_exception_carries_no_word_of_the_answer(adapter):
    secret = b"card 4111-1111"
    for status, body in ((b"200 " + secret, secret), (b"422 " + secret, secret), (b"503 " + secret, secret)):
        with RawServer([READ, answer(body, status, b"X-Secret: " + secret)]) as server:
            delivery = adapter(server.url)
            with pytest.raises((Retryable, Permanent, BadAck)) as caught:
                delivery(Order())
        assert "4111" not in repr(caught.value) + str(caught.value.__dict__)
        assert caught.value.__context__ is None


FRAGMENTS = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 C\r\n\r\n", b"HTTP/1.1 503 No\r\n", b"Content-Length: 21\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"15\r\n", b"0\r\n\r\n", b"Retry-After: ", b"Connection: close\r\n"),
        *(b"\r\n", b"\0", OK),
    ]
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FRAGMENTS | st.binary(max_size=40), max_size=8).map(b"".join))
def test_random_bytes_end_as_done_or_as_one_of_the_three_kinds(adapter, raw):
    with RawServer([READ, raw, FIN]) as server:
        kind, code = outcome(adapter(server.url))
    assert kind in ("done", "retry", "permanent", "unknown")
    assert code or OK in raw
