"""A TCP proxy between the product and PostgreSQL that does harm when told: it cuts around a COMMIT, or goes silent."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field


class Proxy:
    """Listens on a port of its own. One of the ways of doing harm, as often as `times` says:

    `before_commit`: the client's COMMIT never reaches the server. `after_commit`: it does, and its answer is lost.
    `silent`: everything is taken and nothing is passed on, from the next COMMIT on, until `heal`.
    """

    def __init__(self, server_port: int) -> None:
        self._server = ("127.0.0.1", server_port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.harm, self.times, self.done = "", 0, 0
        self._whole = threading.Event()
        self._whole.set()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def break_at_commit(self, harm: str, times: int = 1) -> None:
        """From now on."""
        self.harm, self.times, self.done = harm, times, 0

    def heal(self) -> None:
        """Cut what is silent; new connections work."""
        self.harm, self.times = "", 0
        for end in self._ends:
            _close(end)
        self._ends.clear()
        self._whole.set()

    def close(self) -> None:
        """End everything."""
        _close(self._door)
        self.heal()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._door.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:  # it is down just now
                    _close(client)
                    continue
                self._ends += [client, server]
                pair = _Pair(client, server)
                threading.Thread(target=self._asks, args=(pair,), daemon=True).start()
                threading.Thread(target=self._answers, args=(pair,), daemon=True).start()

    def _asks(self, pair: "_Pair") -> None:
        with suppress(OSError):
            while data := pair.client.recv(65_536):
                if self.times and b"COMMIT\0" in data:  # a simple query: its text ends with a zero
                    self.times -= 1
                    self.done += 1
                    if self.harm == "silent":
                        self._whole.clear()
                    elif self.harm == "before_commit":
                        break
                    else:
                        pair.muted.set()
                        pair.server.sendall(data)
                        pair.answered.wait(30)  # it is done now, and nobody hears of it
                        break
                if self._whole.is_set():
                    pair.server.sendall(data)
        _close(pair.client, pair.server)

    def _answers(self, pair: "_Pair") -> None:
        with suppress(OSError):
            while data := pair.server.recv(65_536):
                if pair.muted.is_set():
                    pair.answered.set()
                elif self._whole.is_set():
                    pair.client.sendall(data)
        _close(pair.client, pair.server)


@dataclass
class _Pair:
    client: socket.socket
    server: socket.socket
    muted: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
