"""One body, one digest: over the bytes of its four parts, each with its length in front."""

import hashlib

import pytest

from queue_app.policy.bodies import body_digest, digest_of, parsed
from queue_app.policy.orders import check_order


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (check_order("a", 7), "6:snacks1:72:{}0:"),
        (check_order("b", 1_000_000, queue="drinks", order_key="k-1"), "6:drinks7:10000002:{}3:k-1"),
        (check_order("a", 1, payload={"x": "\u5bff"}, max_attempts=3, deadline_ms=9), '6:snacks1:111:{"x":"\u5bff"}0:'),
    ],
)
def test_the_digest_is_over_queue_quantity_payload_and_key(order, text):
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert digest_of(order) == body_digest(order.queue, order.quantity, order.payload, order.order_key) == expected


def test_no_part_runs_into_another():
    bodies = [
        ("q1", 1, "{}", "k"),
        ("q", 11, "{}", "k"),
        ("q", 1, "{}", "1k"),
        ("q", 1, "{}k", "1"),
        ("q", 1, "{}", ""),
    ]
    assert len({body_digest(*body) for body in bodies}) == len(bodies)


def test_a_stored_text_gives_its_object_and_nothing_but_an_object():
    assert parsed('{"x":[1.0,true,null]}') == {"x": [1.0, True, None]}
    with pytest.raises(AssertionError):
        parsed("[]")
