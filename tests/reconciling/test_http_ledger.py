"""The reader of the ledger against a receiver without manners: bounded in bytes and time, and never sent elsewhere."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queue_app.delivery.ledger import TRIES, HttpLedger
from queue_app.policy.ledgers import BadLedger
from tests.delivery.rawserver import FIN, HOLD, RESET, Drip, Flood, RawServer, answer
from tests.receiver.conftest import open_receiver
from tests.receiver.http_client import post_order

__all__ = ["open_receiver"]

Make = Callable[..., HttpLedger]
PAGE = json.dumps(
    {"orders": [], "next": None, "totals": {"keys": 0, "stock": 0, "writes": 0, "requests": 0}, "as_of_ms": 1}
).encode()
GET = b"GET"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def make() -> Iterator[Make]:
    """Readers that are closed at the end; waits between tries are noted, not waited."""
    made: list[HttpLedger] = []

    def reader(url: str, *, connect_ms: int = 20_000, read_ms: int = 20_000, total_ms: int = 60_000) -> HttpLedger:
        waits: list[float] = []
        made.append(HttpLedger(url, connect_ms=connect_ms, read_ms=read_ms, total_ms=total_ms, wait=waits.append))
        made[-1].waits = waits
        return made[-1]

    yield reader
    for ledger in made:
        ledger.close()


class Server(RawServer):
    """Reads requests without a body."""

    def _play(self, sock: Any, step: Any) -> None:
        if step != GET:
            super()._play(sock, step)
            return
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                raise ConnectionError("the client has gone")
            data += more
        self.requests.append(data)


def code_of(ledger: HttpLedger, limit: int = 10) -> str:
    with pytest.raises(BadLedger) as caught:
        ledger.page(None, limit)
    assert caught.value.__cause__ is None
    return caught.value.code


def test_a_real_ledger_page_by_page_over_one_connection(make: Make, open_receiver: Any) -> None:
    receiver = open_receiver()
    for n in range(5):
        post_order(receiver.url, f"a-{n}", 2)
    ledger = make(receiver.url)
    first = ledger.page(None, 2)
    assert ([entry.id for entry in first.entries], first.next) == (["a-0", "a-1"], "a-1")
    last = ledger.page("a-2", 2)
    assert ([entry.id for entry in last.entries], last.next, last.totals.stock) == (["a-3", "a-4"], None, 10)


def test_the_request_asks_for_one_page_and_says_nothing_else(make: Make) -> None:
    with Server([GET, answer(PAGE), HOLD]) as server:
        make(server.url + "/base/").page("a:b_c.d-e", 400)
    head = server.requests[0].decode().splitlines()
    assert head[0] == "GET /base/ledger?limit=400&after=a:b_c.d-e HTTP/1.1"
    assert {line.split(":")[0] for line in head[1:] if line} == {"Host", "User-Agent", "Accept", "Accept-Encoding"}


FINAL = [
    (answer(PAGE, b"301 Moved", b"Location: http://127.0.0.1:9/"), "redirect"),
    (answer(PAGE, b"404 Not Found"), "http_404"),
    (answer(PAGE, b"204 No Content"), "http_204"),
    (answer(PAGE, b"200 OK", b"Content-Encoding: gzip"), "compressed"),
    (answer(b"<html>sign in</html>"), "bad_json"),
    (answer(PAGE, b"200 OK", *[b"X-%d: 1" % n for n in range(120)]), "bad_http"),
    (b"nonsense\r\n\r\n", "bad_http"),
    (answer(json.dumps({"orders": [], "next": "a", "totals": {}}).encode()), "order"),
]


@pytest.mark.parametrize(("sent", "code"), FINAL, ids=[code for _sent, code in FINAL])
def test_an_answer_that_is_not_the_list_ends_the_walk_at_once(make: Make, sent: bytes, code: str) -> None:
    with Server([GET, sent, FIN, HOLD]) as server:
        ledger = make(server.url)
        assert code_of(ledger) == code
        assert ledger.waits == []
    assert server.connections == 1


def test_an_answer_without_end_is_cut_off_at_its_bound(make: Make) -> None:
    flood = Flood(b" " * 65_536, 100_000_000)
    with Server([GET, HEAD + b"Content-Length: 100000000\r\n\r\n", flood]) as server:
        assert code_of(make(server.url), limit=10) == "oversize"
        assert server.client_gone.wait(20)
    assert server.sent < 20_000_000


PASSING = [
    ([GET, answer(PAGE, b"503 Busy")], "http_503"),
    ([GET, RESET], "connection_lost"),
    ([GET], "connection_lost"),
    ([GET, HEAD + b"Content-Length: 500\r\n\r\nhalf"], "short_body"),
]


@pytest.mark.parametrize(("script", "code"), PASSING, ids=range(len(PASSING)))
def test_what_may_pass_is_tried_again_a_few_times_and_no_more(make: Make, script: list[Any], code: str) -> None:
    with Server(script) as server:
        ledger = make(server.url)
        assert code_of(ledger) == code
    assert server.connections == TRIES
    assert len(ledger.waits) == TRIES - 1
    with Server(script, [GET, answer(PAGE), HOLD]) as server:
        assert make(server.url).page(None, 1).next is None


@pytest.mark.parametrize(("limits", "code"), [({"read_ms": 100}, "timeout_read"), ({"total_ms": 300}, "timeout_total")])
def test_silence_and_single_bytes_end_by_the_clock(make: Make, limits: dict[str, int], code: str) -> None:
    script = [GET, HOLD] if code == "timeout_read" else [GET, Drip(answer(PAGE), 0.05)]
    with Server(script) as server:
        begun = time.monotonic()
        assert code_of(make(server.url, **limits)) == code
        assert time.monotonic() - begun < 10


def test_an_address_with_a_password_is_refused_without_a_word_of_it(make: Make) -> None:
    for url in ("http://u:secret@host", "ftp://host", "http://host/?q", "nonsense"):
        with pytest.raises(ValueError) as caught:
            make(url)
        assert "secret" not in str(caught.value)
    with pytest.raises(ValueError):
        make("http://host", total_ms=0)
