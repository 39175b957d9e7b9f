"""Connections that keep a total time.

A socket time-out bounds one wait, so a receiver that sends a byte now and then holds a worker for ever. Here every wait
is also capped by what is left of the exchange's total time, on the monotonic clock. One thing is not bounded: the name
look-up is a call into the system's resolver; the total is checked when it returns.
"""

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, override

import httpcore2

_START = b"HTTP/"


class Stopped(Exception):
    """The exchange cannot go on; `code` is a word of the table in policy/answers.py."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class Exchange:
    """One request and its answer: the limits (ms), and what the connection saw of it."""

    connect_ms: int
    read_ms: int
    ends_at_ms: int
    monotonic_ms: Callable[[], int]
    checkpoint: Callable[[], None] | None = None  # asked once, after connecting and before the first byte is sent
    start: bytes = b""
    last: bytes = b""
    reused: bool = False
    peer_closed: bool = False
    timed_out: bool = False
    stream: "DeadlineStream | None" = field(default=None, repr=False)

    def begin(self) -> None:
        """The last moment at which nothing has been sent: Cancelled goes through, whatever comes later cannot stop it."""
        if self.checkpoint is not None:
            check, self.checkpoint = self.checkpoint, None
            check()

    def wait_s(self, limit_ms: int, code: str) -> tuple[float, str]:
        """How long the next wait may last, and the code if it does; Stopped if no time is left."""
        left_ms = self.ends_at_ms - self.monotonic_ms()
        if left_ms <= 0:
            raise self.over("timeout_total")
        return (limit_ms / 1000, code) if limit_ms < left_ms else (left_ms / 1000, "timeout_total")

    def connect_wait_s(self, begun_at_ms: int) -> float:
        """How long connecting may still last; both limits have the one code that says that nothing was sent."""
        now_ms = self.monotonic_ms()
        left_ms = min(self.ends_at_ms, begun_at_ms + self.connect_ms) - now_ms
        if left_ms <= 0:
            raise self.over("timeout_connect")
        return left_ms / 1000

    def over(self, code: str) -> Stopped:
        """The end of this exchange by the clock."""
        self.timed_out = True
        return Stopped(code)

    def drop(self) -> None:
        """Close the connection, so that no other exchange gets it."""
        if self.stream is not None:
            self.stream.close()

    @property
    def stale(self) -> bool:
        """A kept connection that the peer had closed, or on which an answer lay that nobody had asked for."""
        return self.reused and not self.start and not self.timed_out

    def ended_with(self, body: bytes) -> bool:
        """Whether the last bytes that came were the answer's own end: what lies behind it would meet the next order."""
        return any(self.last.endswith(end) or end.endswith(self.last) for end in (body, b"0\r\n\r\n"))

    def take(self, data: bytes) -> None:
        """Note what came; RemoteProtocolError as soon as it cannot become an HTTP answer, not after a read time-out."""
        if not data:
            self.peer_closed = True
            return
        self.last = data
        if len(self.start) < len(_START):
            self.start = (self.start + data)[: len(_START)]
            if not _START.startswith(self.start):
                raise httpcore2.RemoteProtocolError("not an HTTP answer")


class DeadlineBackend(httpcore2.NetworkBackend):
    """Opens connections for the exchange of the calling thread, so that threads may share one pool."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def exchange(self) -> Exchange:
        """The exchange that this thread carries out."""
        current: Exchange = self._local.exchange
        return current

    @exchange.setter
    def exchange(self, exchange: Exchange) -> None:
        self._local.exchange = exchange

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Try the host's addresses in turn within one connect limit; the arguments after `port` are not used."""
        exchange = self.exchange
        begun_at_ms = exchange.monotonic_ms()
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Stopped("dns") from None
        code = "dns"
        for family, kind, protocol, _name, address in addresses:
            wait_s = exchange.connect_wait_s(begun_at_ms)
            try:
                sock = _connected(socket.socket(family, kind, protocol), address, wait_s)
            except OSError as error:
                code = _connect_code(error)
            else:
                return DeadlineStream(self, sock, begun_at_ms)
        raise Stopped(code)


def _connected(sock: socket.socket, address: Any, wait_s: float) -> socket.socket:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(wait_s)
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _connect_code(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timeout_connect"
    return "connect_refused" if isinstance(error, ConnectionRefusedError) else "connection_failed"


class DeadlineStream(httpcore2.NetworkStream):
    """One connection; its waits end with the exchange that uses it."""

    def __init__(self, backend: DeadlineBackend, sock: socket.socket, begun_at_ms: int) -> None:
        self._backend = backend
        self._sock = sock
        self._begun_at_ms = begun_at_ms
        self._last: Exchange | None = None

    def _adopt(self) -> Exchange:
        """The current exchange, which learns whether this connection has served another one before."""
        exchange = self._backend.exchange
        if exchange is not self._last:
            exchange.reused = self._last is not None
            exchange.stream = self
            self._last = exchange
        return exchange

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Up to `max_bytes`; empty at the peer's end. Stopped on time-out or a broken connection."""
        exchange = self._adopt()
        wait_s, code = exchange.wait_s(exchange.read_ms, "timeout_read")
        try:
            self._sock.settimeout(wait_s)
            data = self._sock.recv(max_bytes)
        except TimeoutError:
            raise exchange.over(code) from None
        except OSError:
            raise Stopped("connection_lost") from None
        exchange.take(data)
        return data

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all. WriteError on a broken connection, for an answer may have come first; Stopped on time-out; Cancelled
        before the first byte."""
        exchange = self._adopt()
        exchange.begin()
        view = memoryview(buffer)
        while view:
            wait_s, code = exchange.wait_s(exchange.read_ms, "timeout_write")
            try:
                self._sock.settimeout(wait_s)
                view = view[self._sock.send(view) :]
            except TimeoutError:
                raise exchange.over(code) from None
            except OSError:
                raise httpcore2.WriteError("the connection is broken") from None

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        self._sock.close()

    @override
    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same connection under TLS; the handshake counts against the connect limit."""
        exchange = self._backend.exchange
        try:
            self._sock.settimeout(exchange.connect_wait_s(self._begun_at_ms))
            sock = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except TimeoutError:
            self.close()
            raise exchange.over("timeout_connect") from None
        except (OSError, ValueError):
            self.close()
            raise Stopped("tls") from None
        except BaseException:
            self.close()
            raise
        return DeadlineStream(self._backend, sock, self._begun_at_ms)

    def get_extra_info(self, info: str) -> Any:
        """`is_readable`: an idle connection with something to read, or closed, must not be used again."""
        return self._readable() if info == "is_readable" else None

    def _readable(self) -> bool:
        if self._sock.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))
