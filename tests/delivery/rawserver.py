"""A receiver without manners: plays a script of sends, pauses and closes on raw sockets, and remembers what came."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass

LIMIT_S = 60.0


@dataclass(frozen=True)
class Drip:
    """Send one byte, wait, send the next; `first` goes out at once."""

    data: bytes
    every_s: float
    first: bytes = b""


@dataclass(frozen=True)
class Flood:
    """Send `block` over and over up to `total` bytes, or until the client has gone."""

    block: bytes
    total: int


READ = "read one request"
TAKE = "wait for the first bytes"
HOLD = "stay silent until the client goes"
RESET = "reset the connection"
WAIT = "stay without reading until the test is over"
FIN = "end the sending side and stay"
Step = bytes | Drip | Flood | str


class RawServer:
    """Plays `scripts[n]` on the n-th connection (the last one again and again); a script's end closes."""

    def __init__(self, *scripts: Sequence[Step], tls: ssl.SSLContext | None = None) -> None:
        self.scripts: Sequence[Sequence[Step]] = scripts
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.sent = 0
        self.client_gone = threading.Event()
        self.ended = threading.Semaphore(0)

    def __enter__(self):
        self._spawn(self._accept)
        return self

    def __exit__(self, *error):
        self._stopping.set()
        # shutdown() wakes the accept() of the other thread; close() alone would leave it waiting.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
        self._listener.close()

    def _spawn(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(LIMIT_S)
            script = self.scripts[min(self.connections, len(self.scripts) - 1)]
            self.connections += 1
            self._spawn(self._serve, sock, script)

    def _serve(self, sock, script):
        with sock:
            try:
                channel = self._tls.wrap_socket(sock, server_side=True) if self._tls else sock
                with channel:
                    for step in script:
                        self._play(channel, step)
            except OSError:
                self.client_gone.set()
        self.ended.release()

    def _play(self, sock, step):
        if isinstance(step, bytes):
            self._send(sock, step)
        elif isinstance(step, Drip):
            self._send(sock, step.first)
            for byte in step.data:
                self._send(sock, bytes([byte]))
                if self._stopping.wait(step.every_s):
                    return
        elif isinstance(step, Flood):
            while self.sent < step.total and not self._stopping.is_set():
                self._send(sock, step.block)
        elif step == READ:
            self.requests.append(_request(sock))
        elif step == TAKE:
            _some(sock)
        elif step == FIN:
            sock.shutdown(socket.SHUT_WR)
        elif step == WAIT:
            self._stopping.wait(LIMIT_S)
        elif step == HOLD:
            self._hold(sock)
        elif step == RESET:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _send(self, sock, data):
        sock.sendall(data)
        self.sent += len(data)

    def _hold(self, sock):
        sock.settimeout(0.05)
        while not self._stopping.is_set():
            try:
                if not sock.recv(65536):
                    self.client_gone.set()
                    return
            except TimeoutError:
                continue


def _request(sock) -> bytes:
    """One request: its head and the body that Content-Length announces."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(sock)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += _some(sock)
    return head + b"\r\n\r\n" + body


def _some(sock) -> bytes:
    data = sock.recv(65536)
    if not data:
        raise ConnectionError("the client has gone")
    return data


def answer(body: bytes = b'{"ok":true,"id":"o1"}', status: bytes = b"200 OK", *headers: bytes) -> bytes:
    """A well-formed answer with Content-Length."""
    lines = [b"HTTP/1.1 " + status, b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
