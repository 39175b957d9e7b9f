"""Delivery over HTTP: one order, one POST, one of four verdicts (DESIGN section 6).

It speaks through httpcore2, the core of httpx2, because what must never happen does not exist on that level: redirects,
cookies, proxies from the environment, decompression, and log lines with the receiver's words.
"""

import json
import re
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import httpcore2
import httpx2

from queue_app import clock
from queue_app.delivery.deadline_stream import DeadlineBackend, Exchange, Stopped
from queue_app.policy.answers import Verdict, ack_fault, failed, refused
from queue_app.policy.errors import BadAck, Cancelled, Permanent, Retryable
from queue_app.services.runs import Held

BODY_MAX = 64 * 1024
HEADERS_MAX = 100
HEADER_BYTES_MAX = 32 * 1024
KEEP_ALIVE_S = 5.0

_DONE = Verdict("done", "")
_HOST = re.compile(rb"[a-z0-9._:%-]+")


class Order(Protocol):
    """What the adapter needs of a lease; `payload_text` is the canonical JSON text of an object."""

    @property
    def id(self) -> str: ...
    @property
    def quantity(self) -> int: ...
    @property
    def payload_text(self) -> str: ...


class HttpDelivery:
    """Posts orders to one receiver. All limits in milliseconds of the monotonic clock; threads may share it.

    `total_ms` bounds one call from connecting to the answer's last byte, a repeated connection included. The system's
    name look-up cannot be interrupted; the total is checked right after it.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_ms: int,
        read_ms: int,
        total_ms: int,
        ssl_context: ssl.SSLContext | None = None,
        now_ms: Callable[[], int] | None = None,
        monotonic_ms: Callable[[], int] | None = None,
    ) -> None:
        """ValueError with a sentence for a URL or a limit that cannot be used; `ssl_context` serves a private CA."""
        if min(connect_ms, read_ms, total_ms) <= 0:
            raise ValueError("The connect, read and total time of a delivery must be above 0 ms.")
        base = checked_url(url)
        secure = base.scheme == "https"
        self._connect_ms, self._read_ms, self._total_ms = connect_ms, read_ms, total_ms
        self._now_ms = now_ms or clock.now_ms
        self._monotonic_ms = monotonic_ms or clock.monotonic_ms
        self._target = httpcore2.URL(
            scheme=base.raw_scheme,
            host=base.raw_host,
            port=base.port,
            target=base.raw_path.rstrip(b"/") + b"/orders",
        )
        self._host = base.netloc
        self._backend = DeadlineBackend()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=(ssl_context or httpx2.create_ssl_context(trust_env=False)) if secure else None,
            max_connections=None,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=self._backend,
        )
        self._closed = False

    def __call__(self, order: Order) -> Literal[True]:
        """True if the receiver took the order; else Retryable, Permanent or BadAck with a code of policy/answers.py.

        Cancelled once the adapter is closed, or if a `Held` order says so right before the first byte: nothing was sent
        then. No exception carries a word of the answer.
        """
        if self._closed:
            raise Cancelled
        verdict = self._deliver(order)
        if verdict.kind == "retry":
            raise Retryable(verdict.code, verdict.retry_after_ms)
        if verdict.kind == "permanent":
            raise Permanent(verdict.code)
        if verdict.kind != "done":
            raise BadAck(verdict.code)
        return True

    def close(self) -> None:
        """Close all kept connections; later calls are Cancelled."""
        self._closed = True
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _deliver(self, order: Order) -> Verdict:
        request = self._request(order)
        if request is None:
            return failed("bad_order")
        ends_at_ms = self._monotonic_ms() + self._total_ms
        checkpoint = order.checkpoint if isinstance(order, Held) else None
        verdict, stale = self._send(request, order.id, ends_at_ms, checkpoint)
        if stale:
            # The peer closed a kept connection: not the order's fault, so it costs no attempt. The id makes it safe. No
            # checkpoint: the first request may have had its effect, so that "not started" could be untrue.
            verdict, _ = self._send(request, order.id, ends_at_ms, None)
        return verdict

    def _request(self, order: Order) -> httpcore2.Request | None:
        """The request, or None if the order cannot be written as one."""
        if not (order.payload_text.startswith("{") and order.payload_text.endswith("}")):
            return None
        # The payload's text goes in as it is: reading and writing it again could change its numbers.
        head = json.dumps({"id": order.id, "quantity": order.quantity})
        try:
            body = f'{head[:-1]}, "payload": {order.payload_text}}}'.encode()
            key = order.id.encode("ascii")
        except UnicodeEncodeError:
            return None
        headers = [
            (b"Host", self._host),
            (b"User-Agent", b"SnackOps"),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"identity"),
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Idempotency-Key", key),
        ]
        return httpcore2.Request(b"POST", self._target, headers=headers, content=body)

    def _send(
        self, request: httpcore2.Request, order_id: str, ends_at_ms: int, checkpoint: Callable[[], None] | None
    ) -> tuple[Verdict, bool]:
        """One exchange: its verdict, and whether it failed only because a kept connection was stale."""
        exchange = Exchange(self._connect_ms, self._read_ms, ends_at_ms, self._monotonic_ms, checkpoint)
        self._backend.exchange = exchange
        began = False
        try:
            response = self._pool.handle_request(request)
            began = True
            try:
                verdict = failed("bad_http") if exchange.stale else self._judge(response, order_id, exchange)
                if verdict.kind != "done":
                    exchange.drop()
            finally:
                response.close()
        except Stopped as stop:
            verdict = failed(stop.code)
        except httpcore2.LocalProtocolError:
            verdict = failed("bad_order")
        except httpcore2.ProtocolError:
            cut = "short_body" if began else "connection_lost"
            verdict = failed(cut if exchange.peer_closed else "bad_http")
        return verdict, exchange.stale

    def _judge(self, response: httpcore2.Response, order_id: str, exchange: Exchange) -> Verdict:
        headers = [(name.lower(), value) for name, value in response.headers]
        if breaks_rules(headers):
            return failed("bad_http")
        if response.status not in (200, 201):
            return refused(response.status, header_values(headers, b"retry-after"), self._now_ms())
        if any(value.strip().lower() != "identity" for value in header_values(headers, b"content-encoding")):
            return failed("compressed")
        body = bounded_body(response, BODY_MAX)
        if body is None:
            return failed("oversize")
        if not exchange.ended_with(body):
            exchange.drop()
        fault = ack_fault(body, order_id)
        return _DONE if fault is None else failed(fault)


def checked_url(url: str) -> httpx2.URL:
    """The receiver's base address; ValueError with a sentence that repeats nothing of it, for it may hold a secret."""
    try:
        base = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, ValueError):
        raise ValueError("The receiver's URL cannot be read.") from None
    if base.scheme not in ("http", "https") or not _HOST.fullmatch(base.raw_host):
        raise ValueError("The receiver's URL must begin with http:// or https:// and name a host.")
    if base.userinfo or "?" in url or "#" in url:
        raise ValueError("The receiver's URL must not hold a user, a password, a query or a fragment.")
    return base


def breaks_rules(headers: list[tuple[bytes, bytes]]) -> bool:
    """More headers than any honest answer has, or two statements of the body's length (a sign of smuggling)."""
    names = {name for name, _ in headers}
    size = sum(len(name) + len(value) for name, value in headers)
    both = b"content-length" in names and b"transfer-encoding" in names
    return len(headers) > HEADERS_MAX or size > HEADER_BYTES_MAX or both


def header_values(headers: list[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    """All values of a header by its lower-case name."""
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def bounded_body(response: httpcore2.Response, most: int) -> bytes | None:
    """The whole body, or None as soon as it is known to be above `most` bytes."""
    # One buffer: a list of parts would cost forty times the limit when every chunk holds one byte.
    body = bytearray()
    stream: Any = response.stream
    for part in stream:
        body += part
        if len(body) > most:
            return None
    return bytes(body)
