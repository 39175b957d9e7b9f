"""What an order is, and the one gate that every order passes before anything is written (DESIGN section 3).

All patterns match the whole text (`$` would let a trailing newline through) and only ASCII.
"""

import re
from typing import NamedTuple

from queue_app.policy.canonical import canonical_json
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.refusals import offer, shown

MAX_QUANTITY = 1_000_000
MAX_ATTEMPTS = 100
MAX_INSTANT_MS = 253_402_300_799_999  # the last millisecond of the year 9999, the last that a calendar here can show

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_QUEUE = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_CODE = re.compile(r"[a-z0-9][a-z0-9_]{0,47}")


class Order(NamedTuple):
    """An order that passed `check_order`; `payload` is the canonical text to be stored, `deadline_ms` an instant."""

    id: str
    queue: str
    quantity: int
    payload: str
    order_key: str
    max_attempts: int | None
    deadline_ms: int | None


def check_order(
    id: object,  # noqa: A002 - DESIGN section 5 names it
    quantity: object,
    *,
    queue: object = "snacks",
    payload: object = None,
    order_key: object = "",
    max_attempts: object = None,
    deadline_ms: object = None,
) -> Order:
    """The order, or InvalidOrder with one sentence that shows the refused value short and escaped, never the payload.

    `max_attempts` and `deadline_ms` None mean the queue's own; a deadline already past is not refused here.
    """
    return Order(
        id=check_id(id),
        queue=check_queue_name(queue),
        quantity=_check_whole("quantity", quantity, 1, MAX_QUANTITY),
        payload=_check_payload(payload),
        order_key=_check_order_key(order_key),
        max_attempts=None if max_attempts is None else _check_whole("max_attempts", max_attempts, 1, MAX_ATTEMPTS),
        deadline_ms=None if deadline_ms is None else _check_whole("deadline_ms", deadline_ms, 0, MAX_INSTANT_MS),
    )


def check_id(value: object) -> str:
    """The id of a job, or InvalidOrder: 1 to 64 of `A-Za-z0-9._:-`, beginning with a letter or digit."""
    if value is None or (isinstance(value, str) and value == ""):
        raise InvalidOrder("The id is missing.")
    return _check_shape("id", value)


def check_queue_name(value: object) -> str:
    """The name of a queue, or InvalidOrder: 1 to 32 of `a-z0-9_-`, beginning with a letter or digit."""
    if isinstance(value, str) and type(value) is str:
        if _QUEUE.fullmatch(value):
            return value
        hint = offer(value, _QUEUE)
    else:
        hint = ""
    raise InvalidOrder(
        f"The queue must be 1 to 32 of a-z 0-9 _ - and begin with a letter or digit, and this is {shown(value)}{hint}."
    )


def check_owner(value: object) -> str:
    """The name of a worker, or ValueError: 1 to 128 of `A-Za-z0-9._:@-`, beginning with a letter or digit."""
    if isinstance(value, str) and type(value) is str and _OWNER.fullmatch(value):
        return value
    raise ValueError(
        "The worker's name must be 1 to 128 of A-Z a-z 0-9 . _ : @ - and begin with a letter or digit, "
        f"and this is {shown(value)}."
    )


def check_code(value: object) -> str:
    """The short cause of a failure, or ValueError: empty, or 1 to 48 of `a-z0-9_`, beginning with a letter or digit."""
    if isinstance(value, str) and type(value) is str and (value == "" or _CODE.fullmatch(value)):
        return value
    raise ValueError(
        f"The code must be empty or 1 to 48 of a-z 0-9 _ and begin with a letter or digit, and this is {shown(value)}."
    )


def _check_shape(name: str, value: object) -> str:
    if isinstance(value, str) and type(value) is str:
        if _ID.fullmatch(value):
            return value
        hint = offer(value, _ID)
    else:
        hint = ""
    raise InvalidOrder(
        f"The {name} must be 1 to 64 of A-Z a-z 0-9 . _ : - and begin with a letter or digit, "
        f"and this is {shown(value)}{hint}."
    )


def _check_order_key(value: object) -> str:
    if isinstance(value, str) and value == "":
        return ""
    return _check_shape("order_key", value)


def _check_whole(name: str, value: object, low: int, high: int) -> int:
    # `True` and 1.0 equal 1 in Python; as a quantity they are a mistake of the caller, so the type is asked exactly.
    if isinstance(value, int) and type(value) is int and low <= value <= high:
        return value
    raise InvalidOrder(f"The {name} must be a whole number from {low:,} to {high:,}, and this is {shown(value)}.")


def _check_payload(value: object) -> str:
    if value is None:
        return "{}"
    if type(value) is not dict:
        raise InvalidOrder("The payload must be a JSON object.")
    try:
        return canonical_json(value)
    except ValueError as error:
        raise InvalidOrder(f"The payload cannot be kept: {error}.") from None
