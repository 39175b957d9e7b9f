"""When two orders of one id are the same order (DESIGN section 3): queue, quantity, payload and order_key, as bytes."""

import hashlib
import json
from typing import Any

from queue_app.policy.orders import Order


def body_digest(queue: str, quantity: int, payload: str, order_key: str) -> str:
    """SHA-256 (hex) of a body; `payload` is canonical text. The parts are length-prefixed so that none runs into another."""
    parts = (queue, str(quantity), payload, order_key)
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part.encode()), part.encode()) for part in parts)).hexdigest()


def digest_of(order: Order) -> str:
    """The digest of an order's body; its budget does not belong to it."""
    return body_digest(order.queue, order.quantity, order.payload, order.order_key)


def parsed(payload: str) -> dict[str, Any]:
    """The JSON object that a stored canonical text stands for."""
    value = json.loads(payload)
    assert isinstance(value, dict)  # noqa: S101 - nothing else passes the gate of `orders.check_order`
    return value
