"""Sockets and threads: one thread for each connection, their number bounded, and an orderly end."""

import contextlib
import logging
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from typing import Any

from queue_app.receiver.handler import Handler
from queue_app.receiver.ledger import Ledger
from queue_app.receiver.wire import Limits

log = logging.getLogger(__name__)
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Server(socketserver.TCPServer):
    """The listening socket and the connections that are open."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, ledger: Ledger, host: str, port: int, *, monotonic_ms: Callable[[], int], limits: Limits
    ) -> None:
        """Listen at once. Raises OSError for an address that is taken or is none of this machine."""
        self.ledger = ledger
        self.limits = limits
        self.monotonic_ms = monotonic_ms
        self.closing = threading.Event()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__(address[:2], Handler)  # type: ignore[arg-type]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread of its own, or say 503 when there are as many as may be."""
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        with self._lock:
            room = len(self._open) < self.limits.connections
            if room:
                self._open[request] = thread
        if room:
            thread.start()
            return
        with contextlib.suppress(OSError):
            request.setblocking(False)  # a fresh socket has room for this line; the accepting thread never waits
            request.sendall(_BUSY)
        self.shutdown_request(request)

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the peer went away; what it asked for is recorded or not, and it will ask again
        except Exception:  # one connection must not end the process, nor print what it sent
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)
            with self._lock:
                self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log the kind of a fault of ours; the base class would print its whole text."""
        log.error("a connection failed: %s", sys.exc_info()[0])
        with self._lock:
            self._open.pop(request, None)

    def end_connections(self) -> None:
        """Let requests that were read get their answer, wake idle peers, and end all within `close_ms`.

        Only the receiving side is shut first: a thread that waits for a request sees the end, one that answers goes on.
        """
        self.closing.set()
        deadline = self.monotonic_ms() + self.limits.close_ms
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):
            with self._lock:
                left = dict(self._open)
            for link in left:
                with contextlib.suppress(OSError):
                    link.shutdown(how)
            for thread in left.values():
                thread.join(max(0.1, (deadline - self.monotonic_ms()) / 1000))


class Receiver:
    """A receiver that runs in threads of this process until `close`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        host, self.port = server.server_address[:2]
        name = f"[{host!s}]" if server.address_family == socket.AF_INET6 else str(host)
        self.url = f"http://{name}:{self.port}"

    def close(self) -> None:
        """Take no more connections and end the open ones; the ledger stays open. A second call does nothing."""
        if self._server.closing.is_set():
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.end_connections()

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def serve(
    ledger: Ledger, host: str, port: int, *, monotonic_ms: Callable[[], int], limits: Limits | None = None
) -> Receiver:
    """Start a receiver at `host` and `port` (0: a free one; see `url` of the answer). It answers when this returns.

    `monotonic_ms` is a clock for time-outs that never goes back. Raises OSError for an address that cannot be had.
    """
    return Receiver(Server(ledger, host, port, monotonic_ms=monotonic_ms, limits=limits or Limits()))
