"""Feeds the demo: first the sample, then the same snacks again and again under new ids, a few each second."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from django.db import DatabaseError, connection

from queue_app.policy.lines import Candidate
from queue_app.policy.order_files import read_orders
from queue_app.services import queue
from queue_app.services.intake import SAMPLE_FILE, chunks_of

FIRST_PER_BEAT = 120  # the sample's pace: 4,622 orders in about 40 seconds
LATER_PER_BEAT = 3
BEAT_S = 1.0


def feed(wait: Callable[[float], bool], tag: str) -> None:
    """Feed until `wait(seconds)` returns True. `tag` makes the ids of this start new: `o1-2.<tag>-1`."""
    for batch in _batches(_all_orders(tag)):
        while not _take(batch):
            if wait(BEAT_S):
                return
        if wait(BEAT_S):
            return


def feed_until(stop: threading.Event, tag: str) -> None:
    """Feed until the event is set."""
    feed(stop.wait, tag)


def _batches(orders: Iterator[tuple[dict[str, Any], bool]]) -> Iterator[list[dict[str, Any]]]:
    while True:
        first = next(orders)
        size = FIRST_PER_BEAT if first[1] else LATER_PER_BEAT
        yield [first[0], *(order for order, _sample in islice(orders, size - 1))]


def _all_orders(tag: str) -> Iterator[tuple[dict[str, Any], bool]]:
    yield from ((order, True) for order in _sample())
    turn = 0
    while True:
        turn += 1
        for order in _sample():
            yield {**order, "id": f"{order['id']}.{tag}-{turn}"}, False


def _sample() -> Iterator[dict[str, Any]]:
    with SAMPLE_FILE.open("rb") as source:
        for entry in read_orders(chunks_of(source), form="tsv", name="sample", sample=True, queue="snacks"):
            if isinstance(entry, Candidate):
                yield dict(entry.order)


def _take(batch: list[dict[str, Any]]) -> bool:
    try:
        queue.enqueue_many(batch)
    except DatabaseError:
        connection.close()
        return False
    return True
