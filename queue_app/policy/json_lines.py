"""JSON lines to orders: one JSON object a line."""

import json
from collections.abc import Iterable, Iterator

from queue_app.policy.columns import PLAIN_COLUMNS
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.lines import BadLine, Candidate, Line

MAX_DIGITS = 20  # the longest integer of 64 bits; int() of a long text is slow, and beyond 4,300 digits an error


def read_json_lines(lines: Iterable[Line], *, queue: str) -> Iterator[Candidate | BadLine]:
    """The orders of a JSON lines file; `queue` is for the lines that name none. Blank lines are passed over.

    The payload is the object under `payload`, or else all keys that are not an argument of `enqueue`.
    """
    for line in lines:
        if line.problem:
            yield BadLine(line.number, line.problem)
        elif line.text.strip():
            try:
                order = {"queue": queue, **_order(_parse(line.text))}
            except InvalidOrder as error:
                yield BadLine(line.number, str(error))
                continue
            yield Candidate(line.number, order, len(line.text))


def _order(found: dict[str, object]) -> dict[str, object]:
    order = {name: found.pop(name) for name in PLAIN_COLUMNS if name in found}
    if "quantity" not in order:
        raise InvalidOrder("The quantity is missing.")
    order.setdefault("id", None)
    payload = found.pop("payload", found)
    if type(payload) is not dict:  # also null, which in Python would stand for "none given"
        raise InvalidOrder("The payload must be a JSON object.")
    if found and payload is not found:
        raise InvalidOrder("It has a payload and further keys beside it, so what belongs to the order is not clear.")
    order["payload"] = payload
    return order


def _parse(text: str) -> dict[str, object]:
    try:
        found = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidOrder(f"It is not JSON (character {error.pos + 1} of the line).") from None
    except RecursionError:
        raise InvalidOrder("It is nested too deeply.") from None
    if type(found) is not dict:
        raise InvalidOrder("It is not a JSON object.")
    return found


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidOrder("It has a key twice in one object.")
    return found


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise InvalidOrder("It holds an integer beyond 64 bits.")
    return int(digits)


def _constant(name: str) -> object:
    raise InvalidOrder(f"It holds {name}, which JSON does not have.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
