"""The hash chain over audit events and redrives rows (DESIGN section 9).

hash = SHA-256(prev + newline + canonical ASCII JSON of every other column); `version` inside the JSON is 1.
It makes tampering evident, not impossible: whoever can rewrite the whole table can rewrite the chain, which is why an
anchor (seq:hash) belongs outside the database.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.errors import SnackOpsError, gettext_noop
from queue_app.policy.refusals import offer, shown

GENESIS = "0" * 64
VERSION = 1

# what is hashed, besides `version`; a redrives row's id is its link
REDRIVE_FIELDS = (
    "job_id",
    "token",
    "at_ms",
    "note",
    "queue",
    "reason",
    "code",
    "old_attempts",
    "old_max_attempts",
    "old_deadline",
    "new_max_attempts",
    "new_deadline",
    "requested_by",
    "approved_by",
    "batch",
    "solo",
    "link",
)
AUDIT_FIELDS = (
    "seq",
    "link",
    "at_ms",
    "actor",
    "name",
    "roles",
    "action",
    "target",
    "note",
    "source",
    "proof",
    "detail",
)
USERS = frozenset({"requested_by", "approved_by", "actor"})  # by id: the column's name ends in _id

_ANCHOR = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class InvalidAnchor(SnackOpsError, ValueError):
    """Text that is no anchor of the record."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last event's `seq` and the hash of the chain there, to be kept outside the database."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


@dataclass(frozen=True, slots=True)
class Link:
    """A stored row of the chain as it was found; `key` is an event's seq or a redrives row's id.

    Nothing is taken for granted: after tampering any value may be of any type.
    """

    table: str
    key: object
    link: object
    record: Mapping[str, object]
    prev: object
    hash: object
    version: object

    @property
    def title(self) -> str:
        """What a person looks for in the table: `audit seq 7 (link 9)`."""
        if self.table == "audit":
            return f"audit seq {shown(self.key)} (link {shown(self.link)})"
        job, token = shown(self.record.get("job_id")), shown(self.record.get("token"))
        return f"redrives id {shown(self.key)} (order {job}, token {token}, link {shown(self.link)})"


def link_hash(prev: str, record: Mapping[str, object]) -> str:
    """The hash (64 hex digits) of a record that follows `prev`. Values: str, int, bool or None."""
    text = f"{prev}\n{canonical_ascii({**record, 'version': VERSION})}"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def faults(row: Link, *, link: int, seq: int, prev: str) -> tuple[str, ...]:
    """What is wrong with the row that should follow this place of the chain, the gravest first; () when it fits.

    gap, repeated, order: the link; seq; id; prev; version; hash: the content is not what was written.
    """
    found = []
    if row.link != link + 1:
        found.append(_misplaced(row.link, link))
    if row.table == "audit":
        if row.key != seq + 1:
            found.append("seq")
        if row.prev != prev:
            found.append("prev")
        if row.version != VERSION:
            found.append("version")
    elif row.key != row.link:
        found.append("id")
    try:
        right = row.hash == link_hash(prev, row.record)
    except ValueError:  # a value of a type that nobody could have written
        right = False
    return tuple(found) if right else (*found, "hash")


def _misplaced(found: object, last: int) -> str:
    if not isinstance(found, int):
        return "order"
    return "gap" if found > last else "repeated" if found == last and last else "order"


def parse_anchor(text: str) -> Anchor:
    """The anchor that a person pasted. Raises InvalidAnchor with a sentence."""
    match = _ANCHOR.fullmatch(text.strip(" ").lower())
    if match is None:
        raise InvalidAnchor(
            gettext_noop("An anchor is written SEQ:HASH with 64 hex digits, as audit head prints it, not %(text)s."),
            text=shown(text) + offer(text, _ANCHOR),
        )
    return Anchor(int(match[1]), match[2])
