"""Bytes to numbered lines of text, with memory bounded by one line, and what a file of orders is read into."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from queue_app.policy.errors import SnackOpsError

MAX_LINE_BYTES = 65_536
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class NotReadable(SnackOpsError, ValueError):
    """The file as a whole cannot be read as orders: no header, a column missing or named twice."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end, counted from 1; `problem` says why it is not whole, and then `text` is a remainder."""

    number: int
    text: str
    problem: str = ""

    @property
    def blank(self) -> bool:
        """Nothing but spaces: no order and no mistake. Tabs are cells, so a line of tabs is not blank."""
        return not self.problem and not self.text.strip(" ")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that could be read; `order` has the argument names of `enqueue`, and its values are not checked yet.

    `size` is the length of the line, by which a batch bounds its memory.
    """

    line: int
    order: dict[str, object]
    size: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be read as an order; `why` is one sentence that never shows the payload."""

    line: int
    why: str


def text_lines(chunks: Iterable[bytes], *, limit: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of UTF-8 text that comes in pieces of any size; ends are LF or CR LF, a byte order mark is dropped.

    A line of more than `limit` bytes is never held whole: its first `limit` bytes come with a problem. A line that is
    not UTF-8 comes with the broken bytes replaced and a problem.
    """
    for number, (raw, whole) in enumerate(_cut(chunks, limit), start=1):
        if number == 1:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        if not whole:
            yield Line(number, raw.decode(errors="replace"), f"It is longer than {limit:,} bytes.")
            continue
        try:
            yield Line(number, raw.decode())
        except UnicodeDecodeError as error:
            yield Line(number, raw.decode(errors="replace"), f"It is not UTF-8 (byte {error.start + 1} of the line).")


def _cut(chunks: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, bool]]:
    """(line without its end, whether it is whole); one byte more than `limit` is held, for a CR before the LF."""
    held = bytearray()
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for piece in ends:
            _hold(held, piece, limit)
            yield _line_of(held, limit)
            held.clear()
        _hold(held, rest, limit)
    if held:
        yield _line_of(held, limit)


def _hold(held: bytearray, piece: bytes, limit: int) -> None:
    room = limit + 2 - len(held)
    if room > 0:
        held += piece[:room]


def _line_of(held: bytearray, limit: int) -> tuple[bytes, bool]:
    # Two spare bytes tell "limit bytes and CR" from "more than limit bytes".
    line = bytes(held)
    if len(line) <= limit + 1:
        line = line.removesuffix(b"\r")
    return line[:limit], len(line) <= limit
