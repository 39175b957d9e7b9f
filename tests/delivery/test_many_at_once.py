"""Many deliveries at once: as many as there are hands, in groups when they are fast, over connections that are kept."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from queue_app import clock
from queue_app.delivery.http import HttpDelivery
from queue_app.delivery.worker import Settings, Worker
from queue_app.models import Job, Process
from queue_app.policy import paces
from queue_app.policy.errors import Permanent
from queue_app.services import leases, queue
from queue_app.services.runs import Held
from tests.conftest import RealDatabase
from tests.waiting import came_true

pytestmark = pytest.mark.django_db

LIMIT_S = 20


def accept(n: int) -> None:
    queue.enqueue_many([{"id": f"m-{k}", "quantity": 1} for k in range(n)])


def test_as_many_are_delivered_at_once_as_there_are_hands_and_slow_ones_are_not_taken_ahead(
    real_database: RealDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(12)
    spent_ms, real = [0], clock.monotonic_ms
    monkeypatch.setattr(clock, "monotonic_ms", lambda: real() + spent_ms[0])
    together = threading.Barrier(4, timeout=LIMIT_S)
    leased: list[int] = []

    def deliver(_lease: Held) -> bool:
        if together.wait() == 0:
            leased.append(Job.objects.filter(state="leased").count())
            spent_ms[0] += 200  # that long does each of these four take
        together.wait()
        return True

    tally = Worker(deliver, Settings("w", concurrency=4, until_idle=True)).run()
    assert tally.ok == 12
    assert max(leased) == 4, "what nobody could begin with was left to other workers"


def test_fast_orders_end_in_groups_and_never_too_many_are_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1_500
    for first in range(0, n, 500):
        queue.enqueue_many([{"id": f"m-{k}", "quantity": 1} for k in range(first, first + 500)])
    groups: list[int] = []
    in_hand: list[int] = []
    real = leases.finish_and_claim

    def finish_and_claim(results: list[leases.Result], *arguments: object, **options: object) -> object:
        groups.append(len(results))
        in_hand.append(Job.objects.filter(state="leased").count())
        return real(results, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "finish_and_claim", finish_and_claim)
    tally = Worker(lambda _lease: True, Settings("w", concurrency=4, until_idle=True)).run()
    assert tally.ok == n
    assert len(groups) < n / 5
    assert max(groups) > 20
    assert max(in_hand) <= paces.MAX_AHEAD + 4


def test_what_waits_in_hand_of_a_receiver_that_became_slow_is_given_back(real_database: RealDatabase) -> None:
    accept(3)
    given_back: list[bool] = []

    def deliver(lease: Held) -> bool:
        if not given_back:
            given_back.append(came_true(lambda: Job.objects.filter(state="leased").count() == 1, limit_s=LIMIT_S))
        return True

    worker = Worker(deliver, Settings("w", until_idle=True))
    worker._mean_us = 500  # it thinks that they are fast
    tally = worker.run()
    assert given_back == [True]
    assert (tally.ok, tally.back) == (3, 2)
    assert set(Job.objects.values_list("attempts", flat=True)) == {1}


def test_a_worker_says_what_it_did() -> None:
    accept(5)

    def deliver(lease: Held) -> bool:
        if lease.id in ("m-1", "m-3"):
            raise Permanent("http_422")
        return True

    Worker(deliver, Settings("w", concurrency=2, until_idle=True)).run()
    row = Process.objects.get(pk="w")
    assert (row.concurrency, row.ended_n, row.failed_n, row.draining) == (2, 5, 2, False)
    assert row.host
    Worker(lambda _lease: True, Settings("w", until_idle=True)).run()
    row.refresh_from_db()
    assert (row.concurrency, row.ended_n, row.failed_n) == (1, 0, 0), "a process that begins anew counts anew"


def test_told_to_stop_it_says_at_once_that_it_takes_nothing_new(real_database: RealDatabase) -> None:
    accept(1)
    seen: list[bool] = []

    def deliver(_lease: Held) -> bool:
        worker.stop()
        seen.append(came_true(lambda: Process.objects.filter(pk="w", draining=True).exists(), limit_s=LIMIT_S))
        return True

    worker = Worker(deliver, Settings("w"))
    worker.run()
    assert seen == [True]
    assert Job.objects.get().state == "done"


class Counting(BaseHTTPRequestHandler):
    """Takes every order and counts the connections."""

    protocol_version = "HTTP/1.1"
    connections: list[object]

    def setup(self) -> None:
        super().setup()
        self.connections.append(self.client_address)

    def do_POST(self) -> None:
        """Say yes."""
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"ok": True, "id": order["id"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_what: object) -> None:
        """Be quiet."""


@pytest.fixture
def counting() -> Iterator[tuple[str, list[object]]]:
    """A receiver's address and its connections so far."""
    connections: list[object] = []
    handler = type("Here", (Counting,), {"connections": connections})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", connections
    server.shutdown()
    server.server_close()
    thread.join(LIMIT_S)


def test_connections_are_kept_and_there_are_no_more_than_hands(counting: tuple[str, list[object]]) -> None:
    url, connections = counting
    accept(120)
    with HttpDelivery(url, connect_ms=5_000, read_ms=5_000, total_ms=9_000) as deliver:
        tally = Worker(deliver, Settings("w", concurrency=6, until_idle=True)).run()
    assert tally.ok == 120
    assert 1 <= len(connections) <= 6
