"""The stories that the product is made for, with real processes and real HTTP (DESIGN sections 1, 4 and 6)."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from queue_app.delivery.http import HttpDelivery
from queue_app.policy.errors import Conflict
from queue_app.services import queue
from tests.conftest import BASE_DIR
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, failures, put, row, stand, take

LIMIT_S = 60


class Receiver:
    """The demo receiver as a process of its own, with a database of its own."""

    def __init__(self, environ, path, *faults):
        options = [option for fault in faults for option in ("--fault", json.dumps(fault))]
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "receiver", "--db", str(path), "--port", "0", *options],
            env=environ, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        line = self._process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        self.url = found[0]

    def ledger(self):
        """Totals, and quantity and requests by id."""
        with urllib.request.urlopen(f"{self.url}/ledger", timeout=LIMIT_S) as answer:  # noqa: S310 - our own process
            document = json.load(answer)
        return document["totals"], {o["id"]: (o["quantity"], o["requests"]) for o in document["orders"]}

    def post(self, job_id, quantity):
        """An order sent by somebody other than our workers: status and document."""
        address = self.url.removeprefix("http://")
        link = http.client.HTTPConnection(address, timeout=LIMIT_S)
        body = json.dumps({"id": job_id, "quantity": quantity})
        link.request("POST", "/orders", body, {"Idempotency-Key": job_id})
        answer = link.getresponse()
        document = json.loads(answer.read())
        link.close()
        return answer.status, document

    def close(self):
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(timeout=LIMIT_S) == 0
        self._process.stdout.close()


@pytest.fixture
def receiver(real_database, tmp_path):
    """Start the receiver with faults; it ends with the test."""
    started = []

    def start(*faults):
        started.append(Receiver(real_database.environ, tmp_path / "receiver.sqlite3", *faults))
        return started[-1]

    yield start
    for process in started:
        process.close()


def adapter(url):
    return HttpDelivery(url, connect_ms=5_000, read_ms=5_000, total_ms=10_000)


def tell(real_database, owner, now, url, *more):
    """A worker process from start to end: exit status and what it printed."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.engine.storyteller", owner, str(now), url, *more],
        env=real_database.environ, cwd=BASE_DIR, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    return told.returncode, told.stdout.splitlines()


def test_the_kill_story_the_stock_moves_once_though_a_worker_died_before_finish(real_database, receiver):
    process = receiver()
    put("a", quantity=7)

    status, lines = tell(real_database, "worker-a", T, process.url, "die")
    assert (status, lines) == (73, ["token 1", "receiver True"])  # neither `finally` nor `atexit` ran
    assert process.ledger() == ({"keys": 1, "stock": 7, "writes": 1, "requests": 1}, {"a": (7, 1)})
    assert (stand("a"), failures("a")) == (("leased", "", "", 1, 1), [])

    until = row("a")["lease_until"]
    assert tell(real_database, "worker-b", until - 1, process.url) == (0, ["state None", "atexit"])
    assert tell(real_database, "worker-b", until, process.url) == (
        0, ["token 2", "receiver True", "finally", "state done", "atexit"],
    )  # fmt: skip
    assert process.ledger() == ({"keys": 1, "stock": 7, "writes": 1, "requests": 2}, {"a": (7, 2)})
    assert stand("a") == ("done", "", "", 2, 2)
    assert failures("a") == [(1, 1, "lease_expired", "lease_expired", "worker-a")]

    assert queue.finish("a", 1, "ok", now_ms=until) is False
    assert stand("a") == ("done", "", "", 2, 2)
    check_all(["a"])


def test_the_poison_story_ends_in_quarantine_without_effect_and_holds_nobody_up(receiver, clock):
    process = receiver(
        {"name": "lost", "drop": "after", "ids": ["a"], "first": 1},
        {"name": "poison", "status": 503, "ids": ["poison"]},
    )
    for job_id, quantity in (("a", 7), ("poison", 99), ("b", 3)):
        assert queue.enqueue(job_id, quantity) == "accepted"

    turns, waits = [], {"a": [], "poison": []}
    with adapter(process.url) as deliver:
        for _ in range(2):
            turns.append(queue.run_once(deliver, owner="w1"))
        waits["a"].append(row("a")["available_at"] - clock.now)
        waits["poison"].append(row("poison")["available_at"] - clock.now)
        assert process.post("a", 7) == (200, {"ok": True, "id": "a", "duplicate": True})  # somebody asks once more
        turns.append(queue.run_once(deliver, owner="w1"))
        assert queue.run_once(deliver, owner="w1") is None  # both wait, nobody sleeps
        clock.advance(1_000)
        turns += [queue.run_once(deliver, owner="w1"), queue.run_once(deliver, owner="w1")]
        waits["poison"].append(row("poison")["available_at"] - clock.now)
        clock.advance(2_000)
        turns.append(queue.run_once(deliver, owner="w1"))
        assert queue.run_once(deliver, owner="w1") is None

    assert turns == ["pending", "pending", "done", "done", "pending", "dead"]
    assert waits == {"a": [1_000], "poison": [1_000, 2_000]}
    totals, orders = process.ledger()
    assert totals == {"keys": 2, "stock": 10, "writes": 2, "requests": 7}
    assert {job_id: requests for job_id, (_, requests) in orders.items()} == {"a": 3, "poison": 3, "b": 1}
    assert stand("poison") == ("dead", "exhausted", "http_503", 3, 3)
    assert [failure[1:4] for failure in failures("poison")] == [(n, "retry", "http_503") for n in (1, 2, 3)]
    assert (stand("a")[0], stand("b")[0], row("poison")["quantity"]) == ("done", "done", 99)
    check_all(["a", "poison", "b"])


class Forgetful(BaseHTTPRequestHandler):
    """A provider without a record: every request moves stock; its first answer is lost after the effect."""

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(order["id"])
        self.server.stock += order["quantity"]
        if len(self.server.requests) == 1:
            self.close_connection = True
            return
        body = json.dumps({"ok": True, "id": order["id"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_the_counter_example_without_the_receivers_record_the_stock_moves_twice(transactional_db, clock):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    server.stock, server.requests = 0, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        queue.enqueue("a", 7)
        with adapter(f"http://127.0.0.1:{server.server_port}") as deliver:
            assert queue.run_once(deliver, owner="w1") == "pending"
            clock.advance(1_000)
            assert queue.run_once(deliver, owner="w1") == "done"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (server.stock, server.requests) == (14, ["a", "a"])  # the queue did all it can: the record is the receiver's
    check_all(["a"])


def test_identity_outlives_a_redrive(receiver, clock, team_lead):
    process = receiver({"name": "lost", "drop": "after", "ids": ["a"], "first": 3})
    queue.enqueue("a", 7)
    with adapter(process.url) as deliver:
        for expected in ("pending", "pending", "dead"):
            assert queue.run_once(deliver, owner="w1") == expected
            clock.advance(10_000)
        assert stand("a")[:2] == ("dead", "exhausted")
        assert {failure[2] for failure in failures("a")} == {"retry"}
        assert process.ledger() == ({"keys": 1, "stock": 7, "writes": 1, "requests": 3}, {"a": (7, 3)})

        queue.redrive("a", "INC-9", approved_by=team_lead)
        assert (stand("a"), row("a")["id"]) == (("pending", "", "", 0, 3), "a")
        assert process.post("a", 7)[1]["duplicate"] is True
        assert queue.run_once(deliver, owner="w2") == "done"
    assert stand("a") == ("done", "", "", 1, 4)
    assert process.ledger() == ({"keys": 1, "stock": 7, "writes": 1, "requests": 5}, {"a": (7, 5)})
    assert queue.finish("a", 3, "ok") is False
    check_all(["a"])


def test_the_same_id_with_another_quantity_is_a_conflict_at_the_queue_and_at_the_receiver(receiver, clock):
    process = receiver()
    queue.enqueue("a", 7)
    with pytest.raises(Conflict):
        queue.enqueue("a", 8)
    assert row("a")["quantity"] == 7
    assert process.post("a", 8)[0] == 201  # somebody else was there first, with another quantity
    with adapter(process.url) as deliver:
        assert queue.run_once(deliver, owner="w1") == "dead"
    assert stand("a") == ("dead", "permanent", "http_409", 1, 1)
    assert process.ledger()[0]["stock"] == 8
    check_all(["a"])


def test_a_worker_that_was_frozen_past_its_lease_comes_too_late_and_does_no_harm(receiver):
    process = receiver()
    put("a", quantity=7)
    frozen = take("w1")
    with adapter(process.url) as deliver:
        assert queue.run_once(deliver, owner="w2", now_ms=T + LEASE) == "done"
        assert deliver(frozen) is True  # it wakes up and delivers what it holds: a duplicate for the receiver
    assert queue.finish("a", frozen.token, "permanent", now_ms=T + LEASE) is False
    assert stand("a") == ("done", "", "", 2, 2)
    assert process.ledger() == ({"keys": 1, "stock": 7, "writes": 1, "requests": 2}, {"a": (7, 2)})
    check_all(["a"])
