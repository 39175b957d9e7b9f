"""The worker as a process: signals, drain limit, settings that cannot work."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queue_app import clock
from queue_app.models import Failure, Job
from queue_app.receiver.faults import Fault
from queue_app.receiver.ledger import Ledger
from queue_app.receiver.server import serve
from queue_app.services import queue
from tests.conftest import BASE_DIR, RealDatabase

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def slow_receiver(tmp_path: Path) -> Iterator[str]:
    """A receiver that takes every order, and answers each after a second."""
    slow = Fault("slow", delay_ms=1_000, share=1.0)
    ledger = Ledger(str(tmp_path / "receiver.sqlite3"), now_ms=clock.now_ms, faults=(slow,))
    receiver = serve(ledger, "127.0.0.1", 0, monotonic_ms=clock.monotonic_ms)
    yield receiver.url
    receiver.close()
    ledger.close()


def start(database: RealDatabase, url: str, *options: str, **environ: str) -> subprocess.Popen[str]:
    """`manage.py worker` on the test database."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "worker", "--owner", "w-1", *options],
        cwd=BASE_DIR,
        env={**database.environ, "SNACKOPS_RECEIVER_URL": url, **environ},
        stderr=subprocess.PIPE,
        text=True,
    )


def eventually(true: Callable[[], object]) -> None:
    """Wait for a condition, with a limit."""
    pause = threading.Event()
    for _look in range(600):
        if true():
            return
        pause.wait(0.1)
    raise AssertionError("it never came true")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_delivery_end_gives_the_rest_back_and_exits_0(
    real_database: RealDatabase, slow_receiver: str, how: int
) -> None:
    queue.enqueue_many([{"id": f"s-{n}", "quantity": 1} for n in range(10)])
    worker = start(real_database, slow_receiver, "--prefetch", "10")
    eventually(lambda: Job.objects.filter(state="leased").count() == 10)
    worker.send_signal(how)
    _out, said = worker.communicate(timeout=60)
    assert worker.returncode == 0, said
    counts = {state: Job.objects.filter(state=state).count() for state in ("done", "pending", "leased")}
    assert counts["leased"] == 0
    assert counts["pending"] >= 8, "what was not started is given back"
    assert set(Job.objects.filter(state="pending").values_list("attempts", flat=True)) == {0}
    assert not Failure.objects.exists()


def test_with_no_time_to_drain_the_running_order_stays_leased(real_database: RealDatabase, slow_receiver: str) -> None:
    queue.enqueue("s-1", 1)
    worker = start(real_database, slow_receiver, "--drain-s", "0")
    eventually(lambda: Job.objects.filter(state="leased").exists())
    worker.send_signal(signal.SIGTERM)
    _out, said = worker.communicate(timeout=60)
    # 1 and leased; or, if the signal came before anything was sent, nothing was left behind
    assert (worker.returncode, Job.objects.get().state) in {(1, "leased"), (0, "pending")}, said
    assert Job.objects.get().token == 1
