"""Lines of TSV or CSV to records of cells.

TSV knows no quotes: a quote is a character like any other. CSV knows quoted cells, also with line breaks inside; a
quote that is never closed spoils its own line only and not the rest of the file.
"""

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from queue_app.policy.lines import MAX_LINE_BYTES, Line

UNCLOSED = "Its quotes do not close, or text follows a closing quote."


@dataclass(frozen=True, slots=True)
class Record:
    """The cells of one row, numbered by its first line; with a `problem` the cells are what could be made out."""

    number: int
    cells: list[str]
    size: int
    problem: str = ""


def header_cells(line: Line, delimiter: str) -> list[str] | None:
    """The names in a header line, or None if it is not whole or its quotes do not close (it must be a single line)."""
    if line.problem:
        return None
    if delimiter == "\t":
        return line.text.split("\t")
    return _parse([line.text])[0]


def records(lines: Iterable[Line], delimiter: str, width: int) -> Iterator[Record]:
    """The records after the header, which has `width` cells; blank lines between records are passed over."""
    found = _tsv(lines) if delimiter == "\t" else _csv(lines, width)
    for record in found:
        if not record.problem and len(record.cells) != width:
            why = f"It has {_cells(len(record.cells))} where the header has {width}."
            yield Record(record.number, record.cells, record.size, why)
        else:
            yield record


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"


def _tsv(lines: Iterable[Line]) -> Iterator[Record]:
    for line in lines:
        if not line.blank:
            yield Record(line.number, line.text.split("\t"), len(line.text), line.problem)


def _csv(lines: Iterable[Line], width: int) -> Iterator[Record]:
    source = iter(lines)
    ahead: deque[Line] = deque()
    while line := (ahead.popleft() if ahead else next(source, None)):
        if line.blank:
            continue
        if line.problem:
            yield _spoilt(line, line.problem)
            continue
        cells, _ = _parse([line.text])
        size = len(line.text)
        if cells is None and _odd(line):
            cells, used = _parse_across(line, ahead, source, width)
            for _ in range(used):
                size += len(ahead.popleft().text)
        yield _spoilt(line, UNCLOSED) if cells is None else Record(line.number, cells, size)


def _spoilt(line: Line, problem: str) -> Record:
    return Record(line.number, [cell.strip('"') for cell in line.text.split(",")], len(line.text), problem)


def _odd(line: Line) -> bool:
    return line.text.count('"') % 2 == 1


def _parse(texts: list[str]) -> tuple[list[str] | None, int]:
    """The cells of the first record and how many lines it took; None if it is malformed or does not end."""
    reader = csv.reader((text + "\n" for text in texts), strict=True)
    try:
        return next(reader), reader.line_num
    except csv.Error:
        return None, 0


def _parse_across(first: Line, ahead: deque[Line], source: Iterator[Line], width: int) -> tuple[list[str] | None, int]:
    """A record whose quoted cell goes on over the next lines: its cells and how many further lines it took.

    Only a line with an odd number of quotes can end what `first` opened, so the look ahead stops there, and at the size
    of the longest line allowed. If that makes no record of the header's width, the quote was a mistake of `first`, and
    the lines looked at are read again as lines of their own.
    """
    texts, size, index = [first.text], len(first.text), 0
    while size <= MAX_LINE_BYTES:
        if index == len(ahead):
            following = next(source, None)
            if following is None:
                break
            ahead.append(following)
        line = ahead[index]
        if line.problem:
            break
        index += 1
        texts.append(line.text)
        size += len(line.text) + 1
        if _odd(line):
            break
    cells, used = _parse(texts)
    if size > MAX_LINE_BYTES or cells is None or len(cells) != width:
        return None, 0
    return cells, used - 1
