"""The hash chain over audit events and redrives rows (DESIGN section 9).

hash = SHA-256(prev + newline + canonical ASCII JSON of every other column); `version` inside the JSON is 1.
It makes tampering evident, not impossible: whoever can rewrite the whole table can rewrite the chain, which is why an
anchor (seq:hash) belongs outside the database.
"""

import hashlib
from collections.abc import Mapping

from queue_app.policy.canonical import canonical_ascii

GENESIS = "0" * 64
VERSION = 1


def link_hash(prev: str, record: Mapping[str, object]) -> str:
    """The hash (64 hex digits) of a record that follows `prev`. Values: str, int, bool or None."""
    text = f"{prev}\n{canonical_ascii({**record, 'version': VERSION})}"
    return hashlib.sha256(text.encode("ascii")).hexdigest()
