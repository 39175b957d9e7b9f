"""Cells of exports: CSV that no spreadsheet runs or rewrites, and JSON lines (FAULTS C, OWASP ASVS 1.2.10).

A spreadsheet takes a cell that begins with = + - @ for a formula, looks past blanks and control characters in front,
and some treat the full-width forms alike; it also turns the id 0012 into 12 and 1E5 into 100000. Such text gets one
single quote in front. Text that itself begins with a quote gets one too, so that `plain` always gives back the value.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Value = str | int | bool | None
Row = Sequence[Value]
Kind = Literal["text", "id", "number"]

BOM = "\ufeff"  # without it a spreadsheet reads UTF-8 as the machine's old code page, and names become noise
_STARTS = frozenset(["", *"=+-@\t\r\n\0'"])  # '' : text of blanks alone, of which nothing would be seen
# digits with what makes them a number, a date or a time for a spreadsheet: 0012, 1E5, 1-2, 12:30, 1.5
_LIKE_A_NUMBER = re.compile(r"[0-9][0-9.:/-]*(?:[eE][0-9.-]*)?")
_LIKE_A_DATE = re.compile(
    r"[0-9]{1,4}[-.:/]?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}[-.:/]?[0-9]{0,4}"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}[-.:/]?[0-9]{1,4}|true|false",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an export. Kind `id`: text that must stay the text it is; `number`: int or None, never quoted."""

    name: str
    kind: Kind = "text"


def harmless(text: str, kind: Kind = "text") -> str:
    """The text, with a single quote in front if a spreadsheet would run it or read it as something else."""
    first = next((char for char in text if not _unseen(char)), "")
    risky = text[:1] in _STARTS or unicodedata.normalize("NFKC", first)[:1] in _STARTS
    if kind == "id":
        risky = risky or bool(_LIKE_A_NUMBER.fullmatch(text) or _LIKE_A_DATE.fullmatch(text))
    return f"'{text}" if text and risky else text


def _unseen(char: str) -> bool:
    """Whether a spreadsheet may look past it: blanks, control and format characters."""
    return char.isspace() or unicodedata.category(char) in {"Cc", "Cf"}


def plain(cell: str) -> str:
    """The value that `harmless` was given: the cell less the one quote in front."""
    return cell[1:] if cell.startswith("'") else cell


def csv_records(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """RFC 4180 records of the rows, each ended by CRLF. Text stands in double quotes, numbers do not, None is empty."""
    return _written([_cells(columns, row) for row in rows], csv.QUOTE_STRINGS)


def csv_facts(columns: Sequence[Column], facts: Sequence[tuple[str, str]]) -> str:
    """One record `# name,value` for each fact about the file, as wide as the table (a table has one width)."""
    width = max(len(columns), 2)
    return _written([[f"# {name}", harmless(value), *[""] * (width - 2)] for name, value in facts], csv.QUOTE_MINIMAL)


def csv_head(columns: Sequence[Column], facts: Sequence[tuple[str, str]]) -> str:
    """What stands before the rows: the facts, then the names of the columns."""
    return csv_facts(columns, facts) + _written([[column.name for column in columns]], csv.QUOTE_MINIMAL)


def json_records(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """One JSON object a line; values are as they are, because nothing runs them."""
    names = [column.name for column in columns]
    return "".join(json_line(dict(zip(names, row, strict=True))) for row in rows)


def json_line(record: dict[str, Value]) -> str:
    """One ASCII line of JSON."""
    return json.dumps(record, ensure_ascii=True) + "\n"


def utc(at_ms: int) -> str:
    """An instant as `2026-11-29T03:12:05.123Z`; beyond the years of a calendar `N ms`."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    except OverflowError:
        return f"{at_ms} ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{at_ms % 1000:03d}Z"


def _cells(columns: Sequence[Column], row: Row) -> list[str | int | None]:
    return [
        value
        if value is None or (column.kind == "number" and type(value) is int)
        else harmless(_text(value), column.kind)
        for column, value in zip(columns, row, strict=True)
    ]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _written(records: Sequence[Sequence[str | int | None]], quoting: Literal[0, 4]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator="\r\n").writerows(records)
    return text.getvalue()
