"""Three hosts at one database: all share the work and one rate, and the workers page says so."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import Job, Process
from queue_app.policy.buckets import JOB_UJ, capacity_uj
from queue_app.services import queue
from tests.conftest import BASE_DIR, RealDatabase
from tests.delivery.test_worker_process import receiver
from tests.engine.rows import declare
from tests.views.seen import text_of
from tests.waiting import until

pytestmark = pytest.mark.timeout(120)
HOSTS = ("north", "south", "west")
RATE = 20_000
ORDERS = 60


def start(database: RealDatabase, url: str, host: str) -> subprocess.Popen[bytes]:
    """A worker on that host, which takes one order at a time."""
    command = ["worker", "--owner", f"w-{host}", "--prefetch", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.delivery.host", host, *command],
        cwd=BASE_DIR,
        env={**database.environ, "SNACKOPS_RECEIVER_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_three_hosts_share_the_work_and_one_rate_and_a_page_shows_it(
    real_database: RealDatabase, tmp_path: Path, operator: User
) -> None:
    declare(delivery_rate_mj=RATE)
    page = Client()
    page.force_login(operator)
    with receiver(tmp_path) as (url, _ledger):
        workers = [start(real_database, url, host) for host in HOSTS]
        try:
            until(lambda: Process.objects.count() == len(HOSTS))
            queue.enqueue_many({"id": f"n-{number}", "quantity": 1} for number in range(ORDERS))
            until(lambda: Job.objects.filter(state="done").count() == ORDERS)
            text = text_of(page.get(reverse("process_list")).text)
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGTERM)
            codes = [worker.wait(timeout=60) for worker in workers]
    assert codes == [0, 0, 0]
    assert "3 running, sharing the work on 3 hosts." in text
    assert re.search(r"snacks 3 on 3 hosts 3 deliveries at once \S+/s at most 20/s", text)
    ended = dict(Process.objects.values_list("host", "ended_n"))
    assert set(ended) == set(HOSTS)
    assert sum(ended.values()) == ORDERS
    assert min(ended.values()) >= ORDERS // 10, ended
    at = sorted(Job.objects.values_list("changed_at_ms", flat=True))
    # what was handed out before the first and is told after the last: one order in each worker's hands
    assert (ORDERS - 2 * len(HOSTS)) * JOB_UJ <= RATE * (at[-1] - at[0]) + capacity_uj(RATE)
