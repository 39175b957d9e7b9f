"""What the tests of the HTTP adapter share: an order and an adapter with small limits."""

import time
from dataclasses import dataclass

import pytest

from queue_app.delivery.http import HttpDelivery
from queue_app.policy.errors import BadAck, Permanent, Retryable

SOON_S = 4.0  # a limit that a test expects to act is below 0.5 s, any other is 20 s: a busy machine changes no outcome
KINDS = {Retryable: "retry", Permanent: "permanent", BadAck: "unknown"}


@dataclass(frozen=True)
class Order:
    id: str = "o1"
    quantity: int = 7
    payload_text: str = '{"item":"ramen"}'


@pytest.fixture
def adapter():
    """Makes adapters and closes them at the end."""
    made = []

    def make(url, *, connect_ms=20_000, read_ms=20_000, total_ms=60_000, **more):
        made.append(HttpDelivery(url, connect_ms=connect_ms, read_ms=read_ms, total_ms=total_ms, **more))
        return made[-1]

    yield make
    for delivery in made:
        delivery.close()


def outcome(delivery, order=None):
    """What a delivery came to: `("done", "")` or kind and code of the exception, which must give nothing else away."""
    try:
        result = delivery(order or Order())
    except tuple(KINDS) as caught:
        error = caught
    else:
        assert result is True
        return "done", ""
    assert str(error) == error.code
    assert (error.__cause__, error.__context__) == (None, None)
    return KINDS[type(error)], error.code


def timed(delivery, order=None):
    """The outcome of a delivery and how long it took, in seconds."""
    begun = time.monotonic()
    result = outcome(delivery, order)
    return result, time.monotonic() - begun
