"""A page of the receiver's ledger, read strictly (DESIGN section 6: `GET /ledger`). Pure: bytes in, values or a refusal out.

A generous reader would compare with numbers that nobody meant, so whatever is not exactly the agreed document is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.orders import MAX_INSTANT_MS
from queue_app.policy.strict_json import read_object

MAX_QUANTITY = 1_000_000
MOST = 2**63 - 1
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_ALPHABET = "-.0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # of ids, in bytewise order
_ID_LENGTH = 64


class BadLedger(SnackOpsError):
    """The ledger cannot be read: no answer, or one that is not as agreed. `code` is a short cause such as `http_503`."""

    def __init__(self, template: str, code: str, **values: object) -> None:
        super().__init__(template, **values)
        self.code = code


@dataclass(frozen=True, slots=True)
class Entry:
    """What the receiver knows of one id. `applied_at_ms` None: it was asked, and nothing was applied; its clock counts."""

    id: str
    quantity: int
    applied_at_ms: int | None
    requests: int

    @property
    def applied(self) -> bool:
        """Whether the order had its effect at the receiver."""
        return self.applied_at_ms is not None


@dataclass(frozen=True, slots=True)
class Totals:
    """The receiver's own sums: ids with an effect, pieces moved, writes of an effect, requests."""

    keys: int
    stock: int
    writes: int
    requests: int


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Entries in bytewise order of id, the cursor to ask on with (None at the end), and the totals of that instant."""

    entries: tuple[Entry, ...]
    next: str | None
    totals: Totals


def read_page(body: bytes, after: str | None, limit: int) -> LedgerPage:
    """The page that was asked for with `after` and `limit`. Raises BadLedger for anything else.

    Ids must grow bytewise from `after` on, so that a walk over the pages always ends and meets no id twice.
    """
    found = read_object(body)
    if found is None:
        raise _broken()
    rows = found.get("orders")
    if not isinstance(rows, list) or len(rows) > limit:
        raise _broken()
    entries, last = [], after or ""
    for row in rows:
        entry = _entry(row)
        if entry.id <= last:
            raise _broken("order")
        entries.append(entry)
        last = entry.id
    onward = found.get("next")
    if onward is not None and (not entries or onward != last):
        raise _broken("order")
    return LedgerPage(tuple(entries), onward, _totals(found.get("totals")))


def before(job_id: str) -> str | None:
    """The greatest text below an id that may stand as a cursor, to ask for that id alone; None for the very first."""
    head, last = job_id[:-1], job_id[-1]
    place = _ALPHABET.index(last)
    if place == 0:
        return head
    lower = _ALPHABET[place - 1]
    if not head and not lower.isalnum():  # an id begins with a letter or a digit
        lower = {"A": "9", "a": "Z"}.get(last, "")
        if not lower:
            return None
    return (head + lower).ljust(_ID_LENGTH, _ALPHABET[-1])


def _entry(row: object) -> Entry:
    if not isinstance(row, Mapping):
        raise _broken()
    job_id, applied = row.get("id"), row.get("applied_at_ms", "missing")
    if not isinstance(job_id, str) or not _ID.fullmatch(job_id):
        raise _broken()
    return Entry(
        id=job_id,
        quantity=_whole(row.get("quantity"), 1, MAX_QUANTITY),
        applied_at_ms=None if applied is None else _whole(applied, 0, MAX_INSTANT_MS),
        requests=_whole(row.get("requests"), 1, MOST),
    )


def _totals(found: object) -> Totals:
    if not isinstance(found, Mapping):
        raise _broken()
    return Totals(*(_whole(found.get(name), 0, MOST) for name in Totals.__slots__))


def _whole(value: object, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise _broken()
    return value


def _broken(code: str = "bad_json") -> BadLedger:
    sentence = gettext_noop("The receiver's list is not as agreed (%(cause)s), so nothing was compared.")
    return BadLedger(sentence, code, cause=code)
