"""JSON as it was meant: one reading only, and bounded in depth and in the length of its numbers."""

import json
import re
from typing import Any, NoReturn

MAX_DEPTH = 100
MAX_DIGITS = 1_000
# A string (an unclosed one reaches to the end, so that one pass is enough whatever was sent) or a bracket.
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def read(raw: bytes) -> Any:
    """The value of a JSON text in UTF-8.

    Raises ValueError with one sentence for a person for anything else, also for what most parsers let pass: a key twice
    in one object, NaN and Infinity, a byte order mark, nesting beyond 100, whole numbers beyond 1,000 digits.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("The text is not UTF-8.") from None
    _check_depth(text)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer)
    except json.JSONDecodeError:
        raise ValueError("The text is not JSON.") from None


def _check_depth(text: str) -> None:
    depth = 0
    for piece in _PIECE.finditer(text):
        first = text[piece.start()]
        depth += (first in "[{") - (first in "]}")
        if depth > MAX_DEPTH:
            raise ValueError(f"The text is nested deeper than {MAX_DEPTH} levels.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("The text has the same key twice in one object.")
    return found


def _constant(_word: str) -> NoReturn:
    raise ValueError("The text holds NaN or Infinity, which JSON does not have.")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"The text holds a number of more than {MAX_DIGITS} digits.")
    return int(digits)
