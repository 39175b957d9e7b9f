"""One value, one text: the canonical JSON that bodies are compared by and audit records are hashed over.

Two bodies are the same when their canonical bytes are (DESIGN section 3). Comparing Python dicts would not do: there
`1 == 1.0 == True`, three different bodies. Only exact types are taken, so that no subclass brings its own idea of text.
"""

import json
import math
from types import NoneType

MAX_BODY_BYTES = 16_384
MAX_RECORD_BYTES = 1_000_000
MAX_DEPTH = 64
_INTEGERS = range(-(2**63), 2**64)


def canonical_json(value: object, *, max_bytes: int = MAX_BODY_BYTES) -> str:
    """The canonical text of a body: keys sorted by code point, no blanks, UTF-8 and not escapes.

    `max_bytes` is measured on the UTF-8 bytes of the text returned. ValueError, one clause that never shows the value,
    for a type outside str, int, float, bool, None, list and dict, a key that is no text, NaN or Infinity, an integer
    beyond 64 bits, NUL, a lone surrogate, more than 64 levels or too many bytes.
    """
    _check(value, max_bytes, floats=True)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if len(text.encode()) > max_bytes:
        raise _too_big(max_bytes)
    return text


def canonical_ascii(value: object, *, max_bytes: int = MAX_RECORD_BYTES) -> str:
    """The canonical text of an audit record: as `canonical_json`, but ASCII only, and floats are refused.

    A float's text differs between languages, and whoever proves the hash chain elsewhere must get the same bytes.
    """
    if not _is_flat_record(value):
        _check(value, max_bytes, floats=False)
        text = _ASCII.encode(value)
    elif "\\u" in (text := _ASCII.encode(value)):  # perhaps a NUL or half of a character
        _check(value, max_bytes, floats=False)
    if len(text) > max_bytes:
        raise _too_big(max_bytes)
    return text


_ASCII = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_FLAT_FIELDS = 64
_FLAT_KEYS, _FLAT_VALUES = frozenset({str}), frozenset({str, int, bool, NoneType})
_LOWEST, _BEYOND = _INTEGERS.start, _INTEGERS.stop


def _is_flat_record(value: object) -> bool:
    """Whether it is a small flat record, of which only the texts may have no canonical form: nearly every row is.

    A redrive of many orders hashes thousands of rows a second, and the walk of `_check` would be most of its work.
    """
    if type(value) is not dict or len(value) > _FLAT_FIELDS:
        return False
    if not (_FLAT_KEYS.issuperset(map(type, value)) and _FLAT_VALUES.issuperset(map(type, value.values()))):
        return False
    return all(type(item) is not int or _LOWEST <= item < _BEYOND for item in value.values())


def _check(value: object, room: int, *, floats: bool) -> None:
    """Refuse what has no canonical text. The walk needs no recursion and ends once `max_bytes` must be exceeded.

    The second point matters for a value that holds the same list many times over: small in memory, endless as text.
    """
    max_bytes = room
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, (dict, list)):
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
            room -= max(2, 1 + len(item))  # brackets, and the commas between: the least, as for a leaf
            if room < 0:
                raise _too_big(max_bytes)
            waiting.extend((child, depth + 1) for child in _children(item))
        else:
            room -= _check_leaf(item, room, floats=floats)
        if room < 0:
            raise _too_big(max_bytes)


def _children(item: dict[object, object] | list[object]) -> list[object]:
    if type(item) is list:
        return item
    if type(item) is not dict:
        raise ValueError(f"it holds a value of a type that JSON does not have ({_type_name(item)})")
    for key in item:
        if type(key) is not str:
            raise ValueError("it has a key that is not text")
    return [*item.keys(), *item.values()]


def _check_leaf(item: object, room: int, *, floats: bool) -> int:
    """The least number of bytes that the value takes as text."""
    if isinstance(item, str) and type(item) is str:
        if len(item) <= room:
            _check_text(item)
        return len(item) + 2
    if item is None or type(item) is bool:
        return 4
    if type(item) is int:
        if item not in _INTEGERS:
            raise ValueError("it holds an integer beyond 64 bits")
        return 1
    if isinstance(item, float) and type(item) is float:
        if not floats:
            raise ValueError("it holds a number that is not whole")
        if not math.isfinite(item):
            raise ValueError("it holds a number that JSON does not have (NaN or Infinity)")
        return 3
    raise ValueError(f"it holds a value of a type that JSON does not have ({_type_name(item)})")


def _check_text(text: str) -> None:
    if "\0" in text:
        raise ValueError("it holds the character NUL")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("it holds a lone surrogate, which is no character") from None


def _type_name(item: object) -> str:
    return ascii(type(item).__name__)[1:-1][:40]


def _too_big(max_bytes: int) -> ValueError:
    return ValueError(f"it is larger than {max_bytes:,} bytes")
