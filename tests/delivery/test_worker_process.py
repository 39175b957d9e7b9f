"""The worker as a process: signals, drain limit, settings that cannot work."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queue_app import clock
from queue_app.delivery.http import HttpDelivery
from queue_app.models import Failure, Job, Process, Queue, Tally
from queue_app.receiver.faults import Fault
from queue_app.receiver.ledger import Ledger
from queue_app.receiver.server import serve
from queue_app.services import queue
from tests.conftest import BASE_DIR, RealDatabase
from tests.waiting import until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def slow_receiver(tmp_path: Path) -> Iterator[str]:
    """A receiver that takes every order, and answers each after a second."""
    with receiver(tmp_path, Fault("slow", delay_ms=1_000, share=1.0)) as (url, _ledger):
        yield url


@contextmanager
def receiver(folder: Path, *faults: Fault) -> Iterator[tuple[str, Ledger]]:
    """A receiver in this process: its address and its ledger."""
    ledger = Ledger(str(folder / "receiver.sqlite3"), now_ms=clock.now_ms, faults=faults)
    opened = serve(ledger, "127.0.0.1", 0, monotonic_ms=clock.monotonic_ms)
    yield opened.url, ledger
    opened.close()
    ledger.close()


def start(database: RealDatabase, url: str, *options: str, **more: object) -> subprocess.Popen[str]:
    """`manage.py worker` on the test database."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "manage.py", "worker", "--owner", "w-1", *options],
        cwd=BASE_DIR,
        env={**database.environ, "SNACKOPS_RECEIVER_URL": url},
        text=True,
        **streams,
    )


@pytest.mark.parametrize("how", [[signal.SIGTERM, signal.SIGTERM], [signal.SIGINT]])
def test_a_signal_lets_the_delivery_end_gives_the_rest_back_and_exits_0(
    real_database: RealDatabase, slow_receiver: str, how: list[int]
) -> None:
    """F10, G17: also when it comes again."""
    queue.enqueue_many([{"id": f"s-{n}", "quantity": 1} for n in range(10)])
    worker = start(real_database, slow_receiver, "--prefetch", "10")
    until(lambda: Job.objects.filter(state="leased").count() == 10)
    for number in how:
        worker.send_signal(number)
    _out, said = worker.communicate(timeout=60)
    assert worker.returncode == 0, said
    counts = {state: Job.objects.filter(state=state).count() for state in ("done", "pending", "leased")}
    assert counts["leased"] == 0
    assert counts["pending"] >= 8, "what was not started is given back"
    assert set(Job.objects.filter(state="pending").values_list("attempts", flat=True)) == {0}
    assert not Failure.objects.exists()


def test_a_signal_ends_a_worker_that_waits_for_orders(real_database: RealDatabase, slow_receiver: str) -> None:
    """F10: idle."""
    worker = start(real_database, slow_receiver)
    until(lambda: Process.objects.filter(pk="w-1").exists())
    worker.send_signal(signal.SIGTERM)
    said, logged = worker.communicate(timeout=60)
    assert worker.returncode == 0, logged
    assert said.startswith("0 tries ended")
    assert Process.objects.get(pk="w-1").stopped_at_ms is not None


def test_with_no_time_to_drain_the_running_order_stays_leased(real_database: RealDatabase, slow_receiver: str) -> None:
    queue.enqueue("s-1", 1)
    worker = start(real_database, slow_receiver, "--drain-s", "0")
    until(lambda: Job.objects.filter(state="leased").exists())
    worker.send_signal(signal.SIGTERM)
    _out, said = worker.communicate(timeout=60)
    # 1 and leased; or, if the signal came before anything was sent, nothing was left behind
    assert (worker.returncode, Job.objects.get().state) in {(1, "leased"), (0, "pending")}, said
    assert Job.objects.get().token == 1


def test_a_frozen_worker_that_comes_back_late_is_refused_and_the_order_has_one_effect(
    real_database: RealDatabase, tmp_path: Path
) -> None:
    """F09: SIGSTOP past the lease, another finishes, SIGCONT."""
    with receiver(tmp_path, Fault("slow", delay_ms=600, share=1.0)) as (url, ledger):
        queue.enqueue("frozen", 5)
        worker = start(real_database, url)
        until(lambda: ledger.page(None, 1).totals["writes"] == 1)
        worker.send_signal(signal.SIGSTOP)
        try:
            (other,) = queue.claim("w-2", now_ms=clock.now_ms() + 3_600_000)
            with HttpDelivery(url, connect_ms=5_000, read_ms=5_000, total_ms=9_000) as deliver:
                assert deliver(other) is True
            assert queue.finish(other.id, other.token, "ok")
        finally:
            worker.send_signal(signal.SIGCONT)
        until(lambda: Tally.objects.filter(name="late_finish", n=1).exists())
        worker.send_signal(signal.SIGTERM)
        said, logged = worker.communicate(timeout=60)
        assert worker.returncode == 0, logged
        totals = ledger.page(None, 1).totals
    assert "1 too late" in said
    assert (totals["writes"], totals["requests"]) == (1, 2)
    assert Job.objects.values_list("state", "token", "attempts").get() == ("done", 2, 2)
    assert list(Failure.objects.values_list("outcome", "token")) == [("lease_expired", 1)]


def test_a_closed_queue_is_worked_off_to_the_last_retry_though_nobody_reads_the_log(
    real_database: RealDatabase, tmp_path: Path
) -> None:
    """F70, and closing: the log's other end is gone, there is no standard output, and the first answers are 503."""
    Queue.objects.update(wait_base_ms=20)
    queue.enqueue_many([{"id": f"e-{n}", "quantity": 1} for n in range(6)])
    queue.enqueue("e-bad", 1, max_attempts=1)
    Queue.objects.update(accepting=False)
    reads, writes = os.pipe()
    os.close(reads)
    tired = Fault("tired", status=503, first=1, share=1.0)
    with receiver(tmp_path, tired) as (url, ledger):
        options = ["--until-empty", "--concurrency", "3"]
        worker = start(real_database, url, *options, stdout=subprocess.DEVNULL, stderr=writes)
        os.close(writes)
        assert worker.wait(timeout=60) == 0
        assert ledger.page(None, 1).totals["writes"] == 6
    states = [Job.objects.filter(state=state).count() for state in ("done", "dead", "pending", "leased")]
    assert states == [6, 1, 0, 0], "closed does not mean delivered"
    assert Process.objects.values_list("ended_n", "failed_n", "concurrency").get(pk="w-1") == (13, 7, 3)


@pytest.mark.parametrize(
    ("what", "status", "told"), [("vanish", 9, []), ("interrupt", None, ["unknown"]), ("quit", 5, ["unknown"])]
)
def test_a_delivery_that_ends_the_process_leaves_its_order_leased_and_hides_nothing(
    real_database: RealDatabase, what: str, status: int | None, told: list[str]
) -> None:
    """F12."""
    queue.enqueue("p-1", 1)
    queue.enqueue("p-2", 1)
    puppet = subprocess.run(
        [sys.executable, "-m", "tests.delivery.puppet", what],
        cwd=BASE_DIR,
        env=real_database.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert puppet.returncode == status if status is not None else "KeyboardInterrupt" in puppet.stderr, puppet.stderr
    assert list(Job.objects.order_by("seq").values_list("state", "attempts")) == [("leased", 1), ("pending", 0)]
    assert list(Failure.objects.values_list("outcome", flat=True)) == told
    later = queue.claim("w-2", limit=2, now_ms=clock.now_ms() + 3_600_000)
    assert {(lease.id, lease.attempt) for lease in later} == {("p-1", 2), ("p-2", 1)}
    assert list(Failure.objects.values_list("outcome", flat=True)) == (told or ["lease_expired"])
