"""A real receiver on a free port, with a ledger in a file of its own."""

import contextlib
import itertools

import pytest

from queue_app.clock import monotonic_ms
from queue_app.receiver.faults import check_faults
from queue_app.receiver.ledger import Ledger
from queue_app.receiver.server import serve


class Opened:
    """A running receiver and its ledger; `url` is what most tests need."""

    def __init__(self, ledger, receiver):
        self.ledger, self.receiver, self.url = ledger, receiver, receiver.url


@pytest.fixture
def open_receiver(tmp_path):
    """Start receivers that end with the test; a second one with the same `name` works on the same database."""
    ticks = itertools.count(1_700_000_000_000)
    with contextlib.ExitStack() as stack:

        def start(*faults, kind=Ledger, name="receiver.sqlite3", limits=None, **options):
            path = tmp_path / name
            ledger = kind(path, now_ms=lambda: next(ticks), faults=check_faults(list(faults)), **options)
            stack.callback(ledger.close)
            receiver = serve(ledger, "127.0.0.1", 0, monotonic_ms=monotonic_ms, limits=limits)
            stack.callback(receiver.close)
            return Opened(ledger, receiver)

        yield start


@pytest.fixture
def url(open_receiver):
    """The address of a receiver without faults."""
    return open_receiver().url
