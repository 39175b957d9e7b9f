"""JSON as a receiver's answer must be: one reading, or none.

A reader that is generous here would take a stranger's answer for a receipt.
"""

import json
from typing import Any


def read_object(body: bytes) -> dict[str, Any] | None:
    """The one JSON object of the body, or None: not UTF-8, a byte order mark, a key twice, NaN, too deep, another kind."""
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
