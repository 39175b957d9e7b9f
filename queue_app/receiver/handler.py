"""One connection: requests are read within bounds, answered, and nothing that a peer sends ends the process."""

import contextlib
import http.server
import io
import json
import logging
import re
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from queue_app.receiver.routes import Answer, Request, answer, refusal
from queue_app.receiver.wire import READ_AHEAD, BoundedReader, TooLong

if TYPE_CHECKING:
    from queue_app.receiver.server import Server

MAX_LINE = 8 * 1024
DRAIN_BYTES = 1024 * 1024
DRAIN_S = 1.0
log = logging.getLogger(__name__)


class Handler(http.server.BaseHTTPRequestHandler):
    """HTTP/1.1 with keep-alive. Bodies need a Content-Length; chunked ones are refused."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "Server"

    def setup(self) -> None:
        """Put the bounded reader in place of the unbounded one."""
        super().setup()
        self.rfile.close()
        self._reader = BoundedReader(self.connection, self.server.limits, self.server.monotonic_ms)
        self.rfile = io.BufferedReader(self._reader, READ_AHEAD)
        self._unread = False

    def finish(self) -> None:
        """Let a peer that still sends read our refusal: closing on unread bytes would reset the connection."""
        super().finish()
        if not self._unread:
            return
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            deadline = self.server.monotonic_ms() + int(DRAIN_S * 1000)
            left = DRAIN_BYTES
            while left > 0 and (left_ms := deadline - self.server.monotonic_ms()) > 0:
                self.connection.settimeout(left_ms / 1000)
                got = len(self.connection.recv(min(left, READ_AHEAD)))
                left = left - got if got else 0

    def handle_one_request(self) -> None:
        """Read one request and answer it; any breach of a bound ends the connection."""
        self._reader.begin()
        self.close_connection = True
        self.command = self.requestline = self.request_version = ""
        try:
            request = self._read_request()
        except TooLong:
            self._cut(refusal(431, "The header is too long."))
        except TimeoutError:
            if self._reader.started:
                self._cut(refusal(408, "The request took too long."))
            self.close_connection = True
        else:
            if request is not None:
                self._send(self._safely(request))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """The base class's refusals, as JSON and without the texts that quote what was sent."""
        self._cut(refusal(int(code), f"{HTTPStatus(code).phrase}."))

    def handle_expect_100(self) -> bool:
        """Ask for the body only if its announced length is one that is taken."""
        length = self._length()
        if isinstance(length, Answer):
            self._cut(length)
            return False
        return super().handle_expect_100()

    def version_string(self) -> str:
        """The Server header: no versions for strangers."""
        return "receiver"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """No line for each request: it would hold what a stranger sent."""

    def _read_request(self) -> Request | None:
        """The next request, or None when there is none or it was refused already."""
        self.raw_requestline = self.rfile.readline(MAX_LINE + 1)
        if len(self.raw_requestline) > MAX_LINE:
            self._cut(refusal(414, "The request line is too long."))
            return None
        if not self.raw_requestline or not self.parse_request():
            return None
        length = self._length()
        if isinstance(length, Answer):
            self._cut(length)
            return None
        self._reader.expect(length)
        body = self.rfile.read(length) if length else b""
        if len(body) < length:
            self._cut(refusal(400, "The body is shorter than its Content-Length."))
            return None
        path, _, query = self.path.partition("?")
        return Request(self.command, path, query, self.headers.get_all("Idempotency-Key", []), body)

    def _length(self) -> int | Answer:
        """The length of the body in bytes, or the refusal of a body that cannot be taken."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers:
            return refusal(411, "Send the body with a Content-Length, not in chunks.")
        if self.headers.get("Content-Encoding", "identity") != "identity":
            return refusal(415, "Send the body without compression.")
        if not lengths:
            return refusal(411, "Send a Content-Length.") if self.command == "POST" else 0
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,19}", lengths[0]):
            return refusal(400, "Send one Content-Length that is a whole number.")
        if int(lengths[0]) > self.server.limits.body_bytes:
            return refusal(413, f"The body is larger than {self.server.limits.body_bytes:,} bytes.")
        return int(lengths[0])

    def _safely(self, request: Request) -> Answer:
        """The answer, or 500 for a fault of ours, of which only the kind is logged: texts may quote an order."""
        if "Origin" in self.headers:
            # Only browsers send it: some page tries to reach a service on its reader's own machine.
            return refusal(403, "Requests from web pages are not taken.")
        try:
            return answer(request, self.server.ledger)
        except Exception as error:  # one request must not end the process
            log.error("a request failed: %s", type(error).__name__)
            return refusal(500, "The receiver failed.")

    def _cut(self, refused: Answer) -> None:
        """Refuse and end the connection: where the next request begins is not known."""
        self.close_connection = self._unread = True
        with contextlib.suppress(OSError):
            self._send(refused)

    def _send(self, ready: Answer) -> None:
        if ready.delay_ms:
            self.server.closing.wait(ready.delay_ms / 1000)
        if ready.drop or self.server.closing.is_set():
            self.close_connection = True
        if ready.drop:
            return
        body = json.dumps(ready.document).encode()
        self.connection.settimeout(self.server.limits.send_ms / 1000)
        self.send_response(ready.status)
        fixed = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        for name, value in (fixed | ready.headers).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
