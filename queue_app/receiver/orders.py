"""What an order is at this door (DESIGN sections 3 and 6). Pure: bytes in, an order or a refusal out."""

import re
from dataclasses import dataclass

from queue_app.receiver import strict_json

MAX_QUANTITY = 1_000_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")


class Refused(Exception):
    """A request that is answered with `status` and one sentence, and leaves no trace."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Order:
    """An id, which is also the idempotency key, and how much stock it takes (1 to 1,000,000)."""

    id: str
    quantity: int


def is_id(value: object) -> bool:
    """Whether `value` is a text of 1 to 64 of the ASCII characters that an id may have."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def read_order(body: bytes, keys: list[str]) -> Order:
    """The order in a request's body. `keys` are all its Idempotency-Key headers, of which there must be one.

    Other fields of the body are ignored. Raises `Refused`: 400 for a request that contradicts itself or cannot be read,
    422 for an order that is readable and wrong.
    """
    if len(keys) != 1:
        raise Refused(400, "Send exactly one Idempotency-Key header.")
    try:
        fields = strict_json.read(body)
    except ValueError as error:
        raise Refused(400, str(error)) from None
    if not isinstance(fields, dict):
        raise Refused(400, "The body must be a JSON object.")
    order_id, quantity = fields.get("id"), fields.get("quantity")
    if not is_id(order_id):
        raise Refused(422, "The id must be 1 to 64 of A-Z a-z 0-9 . _ : - and begin with a letter or digit.")
    if keys[0] != order_id:
        raise Refused(400, "The Idempotency-Key header differs from the id in the body.")
    # `type` and not isinstance: True is an int to isinstance, and would move stock by one.
    if type(quantity) is not int or not 1 <= quantity <= MAX_QUANTITY:
        raise Refused(422, "The quantity must be a whole number from 1 to 1,000,000.")
    return Order(order_id, quantity)
