"""What the columns of a table of orders mean: the plain form, and the form of the sample of real orders."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from queue_app.policy.lines import BadLine, Candidate, Line, NotReadable
from queue_app.policy.refusals import offer, shown
from queue_app.policy.tables import Record, header_cells, records

SAMPLE_COLUMNS = ("order_id", "quantity", "item_name", "choice_description", "item_total_price")

_QUANTITY = re.compile(r"[1-9][0-9]{0,6}")
_ATTEMPTS = re.compile(r"[1-9][0-9]{0,2}")
_INSTANT = re.compile(r"0|[1-9][0-9]{0,14}")
_ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,47}")  # leaves room for "o" and the ordinal in the 64 of an id


def read_table(lines: Iterator[Line], *, delimiter: str, sample: bool, queue: str) -> Iterator[Candidate | BadLine]:
    """The orders of a TSV or CSV file; NotReadable, at once, if its header is missing or does not name the columns.

    `queue` is for the lines that name none. In the sample's form an id is `o{order_id}-{ordinal}`; the ordinal counts the
    lines of that order from 1, bad ones too, so that a repaired line does not rename its neighbours. That keeps one
    counter per order id in memory.
    """
    header = next((line for line in lines if not line.blank), None)
    if header is None:
        raise NotReadable("It is empty, and a table of orders begins with a header line.")
    names = _check_header(header, header_cells(header, delimiter), SAMPLE_COLUMNS if sample else ("id", "quantity"))
    row = _SampleRows(names).order if sample else _PlainRows(names, queue).order
    if sample:
        row = _with_queue(row, queue)
    return _orders(records(lines, delimiter, len(names)), row)


def _check_header(line: Line, names: list[str] | None, needed: tuple[str, ...]) -> list[str]:
    if names is None:
        raise NotReadable(f"Its header (line {line.number}) cannot be read: {line.problem or 'its quotes do not close.'}")
    for place, name in enumerate(names, start=1):
        if not name.strip() or "\0" in name:
            raise NotReadable(f"Column {place} of its header (line {line.number}) has no name that can be kept.")
        if name in names[: place - 1]:
            raise NotReadable(f"Its header (line {line.number}) names the column {shown(name)} twice.")
    if missing := [name for name in needed if name not in names]:
        has = ", ".join(shown(name) for name in names[:8])
        hint = "; is it in the form of --sample?" if "order_id" in names and "id" in missing else ""
        raise NotReadable(f"Its header (line {line.number}) lacks {', '.join(missing)}; it has {has}{hint}.")
    return names
