"""F14, F16: a worker as a process whose disk takes nothing for a while. It says so, waits without spinning, delivers nothing
that it could not write down, and goes on by itself when the disk is well again; pages are read all the time.

Once by the process's own limit for files, which needs nobody's leave, and once by writes that fail as on a full disk.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from queue_app import clock as product_clock
from queue_app.models import Job
from queue_app.policy.rights import OPERATOR
from queue_app.receiver.faults import Fault
from queue_app.services import queue
from tests.backups.conftest import living_in_file
from tests.conftest import BASE_DIR
from tests.delivery.test_worker_process import receiver
from tests.engine.invariants import check_all
from tests.faults.patient import traceable
from tests.waiting import until

pytestmark = pytest.mark.django_db
ORDERS = 60
IN_HAND = 8  # at most so many, delivered or waiting


@contextmanager
def limited(process):
    """No file may grow or be written beyond its first byte: an error for each write, as for a disk that fails."""
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))


@contextmanager
def full(process):
    """Each write to the database fails as on a full disk."""
    command = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=ENOSPC"]
    tracer = subprocess.Popen([*command, "-p", str(process.pid)], stderr=subprocess.DEVNULL)
    status = Path(f"/proc/{process.pid}/status")
    until(lambda: "TracerPid:\t0" not in status.read_text(), "the tracer holds the process")
    try:
        yield
    finally:
        tracer.send_signal(signal.SIGTERM)
        assert tracer.wait(timeout=30) in (0, -signal.SIGTERM)


class Talk:
    """What a process logs, line by line as it comes."""

    def __init__(self, stream):
        self.lines = []
        self._thread = threading.Thread(target=lambda: self.lines.extend(iter(stream.readline, "")))
        self._thread.start()

    def of(self, event):
        """The lines of an event, read."""
        return [line for line in self.lines if event in line]

    def to_the_end(self):
        """Wait until it says nothing any more."""
        self._thread.join(60)


def processor_s(pid):
    """What a process has used of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def begun(file, url):
    """A worker that ends when the queue is empty, and what it logs."""
    options = ["--owner", "w-1", "--until-empty", "--concurrency", "2", "--prefetch", str(IN_HAND)]
    environ = {
        **os.environ, "DATABASE_URL": f"sqlite:///{file}", "SNACKOPS_RECEIVER_URL": url,
        "DJANGO_SETTINGS_MODULE": "snackops.settings", "SNACKOPS_DATA": str(file.parent),
    }  # fmt: skip
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "worker", *options],
        env=environ, cwd=BASE_DIR, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    talk = Talk(worker.stderr)
    try:
        yield worker, talk
    finally:
        worker.kill()
        worker.wait()
        talk.to_the_end()
        worker.stderr.close()


def pages(monkeypatch):
    """The overview as somebody sees it a minute later: its status, and whether it names the silent worker."""
    later = product_clock.now_ms() + 60_000
    with monkeypatch.context() as patched:
        patched.setattr(product_clock, "now_ms", lambda: later)
        client = Client(raise_request_exception=False)
        client.force_login(User.objects.get(username="oda"), backend="django.contrib.auth.backends.ModelBackend")
        answer = client.get("/")
    return answer.status_code, "w-1" in answer.content.decode()


@pytest.mark.parametrize(("fault", "code"), [(limited, "database_error"), (full, "disk_full")], ids=["F16", "F14"])
def test_a_worker_on_a_disk_that_takes_nothing_waits_says_so_and_goes_on(file, tmp_path, monkeypatch, fault, code):
    if fault is full and (sentence := traceable()):
        print(sentence)
        return
    with living_in_file(file):
        User.objects.create_user("oda").groups.add(Group.objects.get(name=OPERATOR))
        queue.enqueue_many([{"id": f"o{n}", "quantity": 2} for n in range(ORDERS)])
    slow = Fault("slow", delay_ms=10, share=1.0)
    with receiver(tmp_path, slow) as (url, ledger), begun(file, url) as (worker, talk):
        until(lambda: ledger.page(None, 1).totals["writes"] >= 6)
        with fault(worker):
            until(lambda: talk.of("database_refuses"), "the worker says that the disk fails")
            used, since, seen = processor_s(worker.pid), time.monotonic(), len(talk.of("database_refuses"))
            done = ledger.page(None, 1).totals["writes"]
            with living_in_file(file):
                assert pages(monkeypatch) == (200, True), "the overview is read, and names the worker"
            until(lambda: len(talk.of("database_refuses")) >= seen + 2, "it tries again")
            took = time.monotonic() - since
            assert took > 0.5, "it spins"
            assert processor_s(worker.pid) - used < took / 2, "it is busy with waiting"
            assert worker.poll() is None
            assert ledger.page(None, 1).totals["writes"] <= done + IN_HAND, "it goes on without its database"
        assert worker.wait(timeout=60) == 0
        talk.to_the_end()
        totals = ledger.page(None, 1).totals
    assert {json.loads(line).get("code") for line in talk.of("database_refuses")} == {code}
    assert (totals["keys"], totals["stock"]) == (ORDERS, 2 * ORDERS), "one effect for each order"
    with living_in_file(file):
        assert Job.objects.filter(state="done").count() == ORDERS
        check_all(f"o{n}" for n in range(ORDERS))
