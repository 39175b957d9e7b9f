"""Where a reader of a list stands: an opaque text that goes on from a row though that row may be gone.

A cursor holds nothing secret and grants nothing, so it is not signed; it is read back strictly, and it is bound to its
filter and sort, so that a cursor of another list is refused and never skips or repeats rows.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.orders import MAX_INSTANT_MS
from queue_app.policy.refusals import shown

PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
OLDEST, NEWEST = "oldest", "newest"  # first
SORTS = (OLDEST, NEWEST)

_MAX_SEQ = 2**63 - 1
_TEXT = re.compile(r"1\.([0-9a-f]{16})\.(oldest|newest)\.(on|back)\.([0-9]{1,15})\.([0-9]{1,15})\.([0-9]{1,19})")
_OPAQUE = re.compile(r"[A-Za-z0-9_-]{1,160}")


class CursorError(SnackOpsError, ValueError):
    """A cursor, sort or page size that cannot be meant. `field` names which."""

    def __init__(self, field: str, template: str, **values: object) -> None:
        super().__init__(template, **values)
        self.field = field


@dataclass(frozen=True, slots=True)
class Cursor:
    """Go on beyond (`at_ms`, `seq`) in the direction of the sort, or `back` before it, in the list as of `as_of_ms`."""

    filter_digest: str
    sort: str
    back: bool
    as_of_ms: int
    at_ms: int
    seq: int

    def encode(self) -> str:
        """The text for an address."""
        way = "back" if self.back else "on"
        text = f"1.{self.filter_digest}.{self.sort}.{way}.{self.as_of_ms}.{self.at_ms}.{self.seq}"
        return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What an address says of the page itself. `sort` is the cursor's where one is given."""

    sort: str = OLDEST
    size: int = PAGE_SIZE
    cursor: Cursor | None = None


def decode(text: str, filter_digest: str) -> Cursor:
    """The cursor, or CursorError unless it is whole, unchanged and of the list with this filter."""
    cursor = _decoded(text)
    if cursor is None:
        raise CursorError("cursor", gettext_noop("This link into the list cannot be read; start at its beginning."))
    if cursor.filter_digest != filter_digest:
        raise CursorError(
            "cursor", gettext_noop("This link belongs to a list with another filter; start at its beginning.")
        )
    return cursor


def _decoded(text: str) -> Cursor | None:
    if type(text) is not str or not _OPAQUE.fullmatch(text):
        return None
    try:
        plain = base64.urlsafe_b64decode(text + "==").decode("ascii")  # padding too many is passed over
    except (binascii.Error, UnicodeDecodeError):
        return None
    match = _TEXT.fullmatch(plain)
    if match is None:
        return None
    digest, sort, way, as_of_ms, at_ms, seq = match.groups()
    cursor = Cursor(digest, sort, way == "back", int(as_of_ms), int(at_ms), int(seq))
    # one text per cursor: leading zeros or stray bits at the end of base64 mean that somebody changed it
    if cursor.as_of_ms > MAX_INSTANT_MS or cursor.seq > _MAX_SEQ or cursor.encode() != text:
        return None
    return cursor


def page_request(given: Mapping[str, Sequence[str]], filter_digest: str) -> PageRequest:
    """Sort, size and cursor of an address (name -> all its values); other names are ignored. Raises CursorError."""
    size = _size(_one(given, "size"))
    sort = _one(given, "sort") or ""
    if sort not in ("", *SORTS):
        raise CursorError(
            "sort", gettext_noop("The list is sorted oldest or newest first, not %(value)s."), value=shown(sort)
        )
    text = _one(given, "cursor")
    if not text:
        return PageRequest(sort or OLDEST, size)
    cursor = decode(text, filter_digest)
    if sort not in ("", cursor.sort):
        raise CursorError(
            "cursor", gettext_noop("This link belongs to a list sorted the other way; start at its beginning.")
        )
    return PageRequest(cursor.sort, size, cursor)


def _one(given: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = given.get(name, ())
    if len(values) > 1:
        raise CursorError(name, gettext_noop("%(name)s is given more than once."), name=name)
    return values[0] if values else None


def _size(text: str | None) -> int:
    if not text:
        return PAGE_SIZE
    if re.fullmatch("[0-9]{1,3}", text) and 1 <= int(text) <= MAX_PAGE_SIZE:
        return int(text)
    raise CursorError(
        "size",
        gettext_noop("A page has 1 to %(most)s orders, and this is %(value)s."),
        most=MAX_PAGE_SIZE,
        value=shown(text),
    )
