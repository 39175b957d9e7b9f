"""What the columns of a table of orders mean: the plain form, and the form of the sample of real orders."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from queue_app.policy.errors import InvalidOrder
from queue_app.policy.lines import BadLine, Candidate, Line, NotReadable
from queue_app.policy.refusals import offer, shown
from queue_app.policy.tables import Record, header_cells, records

PLAIN_COLUMNS = ("id", "quantity", "queue", "order_key", "max_attempts", "deadline_ms")
SAMPLE_COLUMNS = ("order_id", "quantity", "item_name", "choice_description", "item_total_price")

# Text of a table, so digits only: int() alone would let "+1", " 1", "1_000" and the digits of other scripts through.
_QUANTITY = re.compile(r"[1-9][0-9]{0,6}")
_ATTEMPTS = re.compile(r"[1-9][0-9]{0,2}")
_INSTANT = re.compile(r"0|[1-9][0-9]{0,14}")
_ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,47}")  # "o", "-" and the ordinal still fit into the 64 of an id


def read_table(lines: Iterator[Line], *, delimiter: str, sample: bool, queue: str) -> Iterator[Candidate | BadLine]:
    """The orders of a TSV or CSV file; NotReadable, at once, if its header is missing or does not name the columns.

    `queue` is for the lines that name none.
    """
    header = next((line for line in lines if not line.blank), None)
    if header is None:
        raise NotReadable("It is empty, and a table of orders begins with a header line.")
    names = _checked(header, header_cells(header, delimiter), SAMPLE_COLUMNS if sample else PLAIN_COLUMNS[:2])
    rows: _Rows = _SampleRows(names, queue) if sample else _PlainRows(names, queue)
    return _read(records(lines, delimiter, len(names)), rows)


def _checked(line: Line, names: list[str] | None, needed: tuple[str, ...]) -> list[str]:
    where = f"Its header (line {line.number})"
    if names is None:
        raise NotReadable(f"{where} cannot be read: {line.problem or 'a quote in it is not closed.'}")
    for place, name in enumerate(names, start=1):
        if not name.strip() or "\0" in name:
            raise NotReadable(f"{where} has no usable name for column {place}.")
        if name in names[: place - 1]:
            raise NotReadable(f"{where} names the column {shown(name)} twice.")
    if missing := [name for name in needed if name not in names]:
        has = ", ".join(shown(name) for name in names[:8])
        hint = " (the form of the sample is read with --sample)" if "id" in missing and "order_id" in names else ""
        raise NotReadable(f"{where} lacks the column {', '.join(missing)}; it has {has}{hint}.")
    return names


class _Rows(Protocol):
    def order(self, record: Record) -> dict[str, object]:
        """The arguments for `enqueue`; InvalidOrder with one sentence. Also called for a record with a problem."""
        ...


def _read(found: Iterator[Record], rows: _Rows) -> Iterator[Candidate | BadLine]:
    for record in found:
        try:
            order = rows.order(record)
        except InvalidOrder as error:
            yield BadLine(record.number, record.problem or str(error))
            continue
        yield BadLine(record.number, record.problem) if record.problem else Candidate(record.number, order, record.size)


class _PlainRows:
    """`id` and `quantity`, optional columns by name, and every other column as text in the payload."""

    def __init__(self, names: list[str], queue: str) -> None:
        self._names = names
        self._queue = queue

    def order(self, record: Record) -> dict[str, object]:
        if record.problem:
            return {}
        cells = dict(zip(self._names, record.cells, strict=True))
        return {
            "id": cells.pop("id"),
            "quantity": _whole("quantity", cells.pop("quantity"), _QUANTITY, "from 1 to 1,000,000"),
            "queue": cells.pop("queue", "") or self._queue,
            "order_key": cells.pop("order_key", ""),
            "max_attempts": _optional("max_attempts", cells.pop("max_attempts", ""), _ATTEMPTS, "from 1 to 100"),
            "deadline_ms": _optional("deadline_ms", cells.pop("deadline_ms", ""), _INSTANT, "of milliseconds"),
            "payload": cells,
        }


class _SampleRows:
    """The id is `o{order_id}-{ordinal}`, where the ordinal counts the lines of that order id from 1.

    Lines that are refused count too, as far as their order id can be made out: a line repaired later must not give its
    neighbours other ids, for under a new id they would be delivered a second time. The price is one counter per order
    id in memory.
    """

    def __init__(self, names: list[str], queue: str) -> None:
        self._names = names
        self._place = names.index("order_id")
        self._queue = queue
        self._seen: Counter[str] = Counter()

    def order(self, record: Record) -> dict[str, object]:
        order_id = record.cells[self._place] if self._place < len(record.cells) else ""
        if not _ORDER_ID.fullmatch(order_id):
            raise InvalidOrder(
                "The order_id must be 1 to 48 of A-Z a-z 0-9 . _ : - and begin with a letter or digit, "
                f"and this is {shown(order_id)}{offer(order_id, _ORDER_ID)}."
                if order_id
                else "The order_id is missing."
            )
        self._seen[order_id] += 1
        if record.problem:
            return {}
        cells = dict(zip(self._names, record.cells, strict=True))
        del cells["order_id"]
        return {
            "id": f"o{order_id}-{self._seen[order_id]}",
            "quantity": _whole("quantity", cells.pop("quantity"), _QUANTITY, "from 1 to 1,000,000"),
            "queue": self._queue,
            "payload": cells,
        }


def _whole(name: str, text: str, digits: re.Pattern[str], span: str) -> int:
    if digits.fullmatch(text):
        return int(text)
    if not text:
        raise InvalidOrder(f"The {name} is missing.")
    raise InvalidOrder(
        f"The {name} must be a whole number {span} in plain digits, and this is {shown(text)}{offer(text, digits)}."
    )


def _optional(name: str, text: str, digits: re.Pattern[str], span: str) -> int | None:
    return _whole(name, text, digits, span) if text else None
