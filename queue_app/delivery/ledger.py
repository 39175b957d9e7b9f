"""The receiver's ledger over HTTP: one page a request, every one bounded in bytes and in time (DESIGN section 6).

The connection, the checks of the address and of the answer's head are those of the deliveries (`delivery/http.py`).
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import httpcore2
import httpx2

from queue_app import clock
from queue_app.delivery.deadline_stream import DeadlineBackend, Exchange, Stopped
from queue_app.delivery.http import KEEP_ALIVE_S, bounded_body, breaks_rules, checked_url, header_values
from queue_app.policy.answers import answer_for
from queue_app.policy.errors import gettext_noop
from queue_app.policy.ledgers import BadLedger, LedgerPage, read_page

ENTRY_BYTES_MAX = 256  # the longest honest one has 160
TRIES = 4
WAITS_S = (0.1, 0.5, 2.0)  # a walk of thousands of pages must outlive a receiver's restart


class HttpLedger:
    """Asks one receiver for pages of its ledger. All limits in ms of the monotonic clock; for one thread.

    `total_ms` bounds one request from connecting to the answer's last byte. `wait` sleeps so many seconds between tries.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_ms: int,
        read_ms: int,
        total_ms: int,
        monotonic_ms: Callable[[], int] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """ValueError with a sentence for an address or a limit that cannot be used."""
        if min(connect_ms, read_ms, total_ms) <= 0:
            raise ValueError("The connect, read and total time of a request must be above 0 ms.")
        self._base = checked_url(url)
        self._limits = connect_ms, read_ms, total_ms
        self._monotonic_ms = monotonic_ms or clock.monotonic_ms
        self._wait = wait
        self._backend = DeadlineBackend()
        secure = self._base.scheme == "https"
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False) if secure else None,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=self._backend,
        )

    def page(self, after: str | None, limit: int) -> LedgerPage:
        """Up to `limit` entries whose id comes after `after`. Raises BadLedger, with a sentence and a code.

        What may pass (a restart, a busy receiver) is tried again a few times; reading changes nothing there.
        """
        request = self._request(after, limit)
        for tried in range(TRIES):
            try:
                return read_page(self._body(request, limit * ENTRY_BYTES_MAX + 1024), after, limit)
            except BadLedger as bad:
                if answer_for(bad.code).kind != "retry" or tried == TRIES - 1:
                    raise
            self._wait(WAITS_S[tried])
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close the kept connection."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, after: str | None, limit: int) -> httpcore2.Request:
        query = f"?limit={limit}" + (f"&after={after}" if after else "")  # an id needs no escapes
        target = self._base.raw_path.rstrip(b"/") + b"/ledger" + query.encode("ascii")
        headers = [
            (b"Host", self._base.netloc),
            (b"User-Agent", b"SnackOps"),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"identity"),
        ]
        url = httpcore2.URL(scheme=self._base.raw_scheme, host=self._base.raw_host, port=self._base.port, target=target)
        return httpcore2.Request(b"GET", url, headers=headers)

    def _body(self, request: httpcore2.Request, most: int) -> bytes:
        """The body of a 200; BadLedger for every other end."""
        connect_ms, read_ms, total_ms = self._limits
        exchange = Exchange(connect_ms, read_ms, self._monotonic_ms() + total_ms, self._monotonic_ms)
        self._backend.exchange = exchange
        began = False
        try:
            response = self._pool.handle_request(request)
            began = True
            try:
                return _taken(response, exchange, most)
            except BaseException:
                exchange.drop()
                raise
            finally:
                response.close()
        except Stopped as stop:
            raise _refused(stop.code) from None
        except httpcore2.ProtocolError:
            lost = exchange.stale or exchange.peer_closed
            raise _refused(("short_body" if began else "connection_lost") if lost else "bad_http") from None


def _taken(response: httpcore2.Response, exchange: Exchange, most: int) -> bytes:
    headers = [(name.lower(), value) for name, value in response.headers]
    if exchange.stale or breaks_rules(headers):
        raise _refused("bad_http")
    if response.status != 200:
        raise _refused("redirect" if 300 <= response.status < 400 else f"http_{response.status}")
    if any(value.strip().lower() != "identity" for value in header_values(headers, b"content-encoding")):
        raise _refused("compressed")
    body = bounded_body(response, most)
    if body is None:
        raise _refused("oversize")
    if not exchange.ended_with(body):
        exchange.drop()
    return body


def _refused(code: str) -> BadLedger:
    sentence = gettext_noop("The receiver's list cannot be read (%(cause)s), so the comparison was not made.")
    return BadLedger(sentence, code, cause=code)
