"""A manifest and the data that it speaks of."""

import hashlib
from typing import Any

from queue_app.policy.chain import Anchor
from queue_app.policy.manifests import Manifest, Standing
from queue_app.store.backups import FILES

STANDING = Standing({"done": 1}, 2, 3, 4, 5, "d" * 64, Anchor(1, "a" * 64), ("auth.0001_initial",))
DATA = b"whole " * 10
SHA = hashlib.sha256(DATA).hexdigest()


def manifest(kind: str = "sqlite", **changes: Any) -> Manifest:
    values: dict[str, Any] = {
        "made_at_ms": 7, "database": kind, "server": "SQLite 3", "file": FILES[kind], "bytes": len(DATA), "sha256": SHA,
        "standing": STANDING,
    }  # fmt: skip
    return Manifest(**values | changes)
