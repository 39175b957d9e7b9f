"""What a backup says of itself: written beside the data, and held against what is read back (DESIGN section 10). Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from queue_app.policy.chain import Anchor, InvalidAnchor, parse_anchor
from queue_app.policy.errors import SnackOpsError

FORMAT = 1
DATABASES = ("sqlite", "postgresql")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadManifest(SnackOpsError):
    """The manifest is missing, damaged, or of a format that this version does not know."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where every order stands: counts by state, and what shows that no token fell.

    `digest`: SHA-256 over id, state, token and quantity of every order and tombstone, in bytewise order of id.
    """

    orders: dict[str, int]
    tombstones: int
    redrives: int
    token_sum: int
    token_max: int
    digest: str
    anchor: Anchor
    migrations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One backup: when (database's clock, ms), of which database, where everything stood, and the data's own checksum."""

    made_at_ms: int
    database: str
    server: str
    file: str
    bytes: int
    sha256: str
    standing: Standing

    def text(self) -> str:
        """As the file `manifest.json`: for people and programs, one value a line."""
        record = asdict(self)
        record["standing"]["anchor"] = str(self.standing.anchor)
        return json.dumps({"format": FORMAT, **record}, indent=2) + "\n"


def parse(raw: bytes) -> Manifest:
    """The manifest in a file. Raises BadManifest with one sentence."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadManifest("The backup's manifest cannot be read: it is damaged.") from None
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise BadManifest("The backup's manifest is none of this product.")
    if found["format"] != FORMAT:
        raise BadManifest(f"The backup is of format {found['format']}, and this version reads format {FORMAT} only.")
    try:
        return _manifest(found)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidAnchor):
        raise BadManifest("The backup's manifest is damaged: a value is missing or of a wrong kind.") from None


def _manifest(found: Mapping[str, Any]) -> Manifest:
    database, file, sha256 = found["database"], found["file"], found["sha256"]
    if database not in DATABASES or not re.fullmatch(r"[a-z0-9.]{1,32}", file) or not _DIGEST.fullmatch(sha256):
        raise ValueError
    return Manifest(
        made_at_ms=_whole(found["made_at_ms"]),
        database=database,
        server=str(found["server"])[:64],
        file=file,
        bytes=_whole(found["bytes"]),
        sha256=sha256,
        standing=_standing(found["standing"]),
    )


def _standing(found: Mapping[str, Any]) -> Standing:
    if not _DIGEST.fullmatch(found["digest"]) or not isinstance(found["migrations"], list):
        raise ValueError
    return Standing(
        orders={str(state): _whole(n) for state, n in found["orders"].items()},
        digest=found["digest"],
        anchor=parse_anchor(found["anchor"]),
        migrations=tuple(map(str, found["migrations"])),
        **{name: _whole(found[name]) for name in ("tombstones", "redrives", "token_sum", "token_max")},
    )


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def contradictions(told: Standing, found: Standing) -> list[str]:
    """What a restored copy has that its manifest does not say, one sentence each; [] when it is what was backed up."""
    sentences = []
    for state in sorted(told.orders.keys() | found.orders.keys()):
        was, now = told.orders.get(state, 0), found.orders.get(state, 0)
        if was != now:
            sentences.append(f"The backup had {was:,} orders in state {state}, and the copy has {now:,}.")
    for name, words in (("tombstones", "tombstones"), ("redrives", "redrives")):
        was, now = getattr(told, name), getattr(found, name)
        if was != now:
            sentences.append(f"The backup had {was:,} {words}, and the copy has {now:,}.")
    if found.token_sum < told.token_sum or found.token_max < told.token_max:
        sentences.append("Tokens are lower than they were: a worker of that time could finish an order again.")
    if not sentences and found.digest != told.digest:
        sentences.append("An order's id, state, token or quantity is not what it was: the digest over all is another.")
    if found.anchor != told.anchor:
        sentences.append(f"The record ends at {found.anchor}, and the backup's ended at {told.anchor}.")
    return sentences
