"""Reading from a peer that may be slow, endless or malicious: bounded in bytes and in time."""

import io
import socket
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one peer may use. Times in ms, sizes in bytes.

    `idle_ms` bounds the wait for a request on an open connection, `request_ms` the time from its first byte to its
    last, `send_ms` the sending of the answer. `close_ms` bounds how long a stop waits for requests that still run.
    """

    header_bytes: int = 16 * 1024
    body_bytes: int = 64 * 1024
    idle_ms: int = 30_000
    request_ms: int = 10_000
    send_ms: int = 10_000
    close_ms: int = 10_000
    connections: int = 128


READ_AHEAD = 8 * 1024  # what the buffer above this reader asks for at a time


class TooLong(Exception):
    """The peer sent more than the request may have."""


class BoundedReader(io.RawIOBase):
    """The bytes of one connection, with a budget of bytes and a deadline for each request.

    A socket time-out alone bounds each wait, not their sum: one byte every few seconds would hold a thread for ever.
    """

    def __init__(self, link: socket.socket, limits: Limits, monotonic_ms: Callable[[], int]) -> None:
        self._link = link
        self._limits = limits
        self._monotonic_ms = monotonic_ms
        self._started = False
        self._left = 0
        self._deadline = 0
        self.begin()

    def begin(self) -> None:
        """A new request: a fresh budget for its header (and what the buffer above reads ahead), and the idle limit."""
        self._left = self._limits.header_bytes + READ_AHEAD
        self._started = False
        self._deadline = self._monotonic_ms() + self._limits.idle_ms

    def expect(self, length: int) -> None:
        """Allow a body of `length` bytes."""
        self._left += length

    @property
    def started(self) -> bool:
        """Whether the peer has sent a part of this request."""
        return self._started

    def readable(self) -> bool:
        """Part of the interface of a raw stream."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read what is there. Raises TimeoutError after the deadline, `TooLong` beyond the budget."""
        if self._left <= 0:
            raise TooLong
        left_ms = self._deadline - self._monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError
        self._link.settimeout(left_ms / 1000)
        count = self._link.recv_into(buffer[: self._left])
        self._left -= count
        if count and not self._started:
            self._started = True
            self._deadline = self._monotonic_ms() + self._limits.request_ms
        return count
