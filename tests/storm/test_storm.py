"""F24, G19: eight workers, two redrivers, a polling dashboard, a slow export, a receiver, any of them killed at any moment.

SNACKOPS_STORM_S says for how many seconds; 60 is the long one. SNACKOPS_STORM_SEED chooses whom it hits.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from random import Random

import pytest
from django.db import OperationalError
from django.test import Client

from queue_app import clock
from queue_app.models import Job, Plan
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.filters import Filter
from queue_app.policy.selections import by_filter
from queue_app.policy.terms import Terms
from queue_app.receiver.ledger import Ledger
from queue_app.services import batches, plans, queue
from tests.conftest import BASE_DIR
from tests.demo.running import free_port
from tests.engine.invariants import check_all
from tests.engine.rows import declare
from tests.redrive.invariants import check_plans
from tests.redrive.story import approve, prove
from tests.waiting import came_true, until

SECONDS = float(os.environ.get("SNACKOPS_STORM_S", "8"))
SEED = int(os.environ.get("SNACKOPS_STORM_SEED", "7"))
WORKERS, REDRIVERS = 8, 2
BACKLOG = 300
FAULTS = ['{"status": 503, "share": 0.1}', '{"status": 422, "share": 0.05}', '{"drop": "after", "share": 0.1}']


class Storm:
    """The processes by slot name, and what they wrote down."""

    def __init__(self, database, folder, sessions):
        self.folder = folder
        self.port = free_port()
        self.tokens, self.pages, self.log = (folder / name for name in ("tokens", "pages", "log"))
        environ = {
            **database.environ,
            "SNACKOPS_RECEIVER_URL": f"http://127.0.0.1:{self.port}",
            "SNACKOPS_CONNECT_MS": "1000", "SNACKOPS_READ_MS": "1500", "SNACKOPS_TOTAL_MS": "2000",
        }  # fmt: skip
        self._errors, self._lock = self.log.open("w"), threading.Lock()
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.storm.nursery"],
            env=environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip
        assert self._nursery.stdout.readline() == "0\n"
        kept = {"session": sessions, "kept": str(self.pages)}
        self.orders = {f"w{n}": {"start": "worker", "name": f"w{n}", "kept": str(self.tokens)} for n in range(WORKERS)}
        self.orders |= {f"r{n}": {"start": "redriver", "name": f"r{n}"} for n in range(REDRIVERS)}
        self.orders |= {"dashboard": {"start": "dashboard", **kept}, "exporter": {"start": "exporter", **kept}}
        self.orders["receiver"] = {
            "start": "receiver", "db": str(folder / "receiver.sqlite3"), "port": self.port, "fault": FAULTS,
        }  # fmt: skip
        self.pids = {slot: self._ask(order) for slot, order in self.orders.items()}
        self.kills = Counter()

    def _ask(self, order):
        with self._lock:
            return self._asked(order)

    def _asked(self, order):
        self._nursery.stdin.write(json.dumps(order) + "\n")
        self._nursery.stdin.flush()
        return int(self._nursery.stdout.readline())

    def strike(self, slot):
        """kill -9, and a successor at once."""
        os.kill(self.pids[slot], signal.SIGKILL)
        until(lambda: not self.lives(slot), f"the death of {slot}")
        self.pids[slot] = self._ask(self.orders[slot])
        self.kills[slot.rstrip("0123456789")] += 1

    def lives(self, slot):
        return self._ask({"alive": self.pids[slot]}) == 1

    def dead(self):
        return [slot for slot in self.pids if not self.lives(slot)]

    def close(self):
        if self._nursery.stdin.closed:
            return
        for slot in self.pids:
            if self.lives(slot):
                os.kill(self.pids[slot], signal.SIGKILL)
                until(lambda slot=slot: not self.lives(slot), f"the end of {slot}")
        self._nursery.stdin.close()
        assert self._nursery.wait(timeout=30) == 0
        self._nursery.stdout.close()
        self._errors.close()


@pytest.fixture
def storm(real_database, tmp_path, operator):
    client = Client()
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    made = Storm(real_database, tmp_path, client.cookies["sessionid"].value)
    yield made
    made.close()


class People:
    """They put orders in and redrive what dies; what was answered is kept."""

    def __init__(self, operator, lead):
        self.operator, self.lead = operator, lead
        self.proof = prove(lead)
        self.accepted, self.unsure, self.redrives = [], [], 0

    def order(self, n):
        """Twenty more, unless so many wait already that the calm afterwards would take long."""
        if Job.objects.filter(state__in=("pending", "leased")).count() > BACKLOG:
            return
        some = [{"id": f"s{n}-{place}", "quantity": 1 + place} for place in range(20)]
        try:
            queue.enqueue_many(some)
            self.accepted += [one["id"] for one in some]
        except OperationalError:
            self.unsure += [one["id"] for one in some]

    def redrive(self):
        if Plan.objects.filter(state__in=("freezing", "proposed", "approved", "running")).exists():
            return
        for plan in Plan.objects.filter(state__in=("halted", "paused")):
            batches.stop(self.operator, plan.pk)
        try:
            asked = plans.ask(
                self.operator,
                by_filter(Filter(queue="snacks")),
                Terms(200_000, canary=2, canary_wait_ms=3_000),
                note="INC-1",
            )
            approve(self.lead, Plan.objects.get(pk=asked.plan), proof=self.proof)
            self.redrives += 1
        except SnackOpsError:
            pass  # nothing is dead just now, or the list is not made yet


def raged(storm, people):
    """Orders and redrives come at a pace, while another thread strikes."""
    over, failed = threading.Event(), []

    def strike():
        rng, slots = Random(SEED), sorted(storm.pids)
        try:
            while not over.wait(rng.uniform(0.1, 0.6)):
                storm.strike(rng.choice(slots))
        except Exception as error:
            failed.append(error)

    striking = threading.Thread(target=strike)
    striking.start()
    end, n, next_redrive = time.monotonic() + SECONDS, 0, time.monotonic() + 1
    while time.monotonic() < end:
        people.order(n)
        n += 1
        if time.monotonic() >= next_redrive:
            people.redrive()
            next_redrive = time.monotonic() + 1
        over.wait(0.02)
    over.set()
    striking.join(timeout=60)
    assert failed == []


def calm(people):
    """Whether everything has come to an end."""
    for plan in Plan.objects.filter(state__in=("halted", "paused", "proposed")):
        (batches.stop if plan.state != "proposed" else plans.withdraw)(people.operator, plan.pk)
    return not (
        Job.objects.filter(state__in=("pending", "leased")).exists()
        or Plan.objects.filter(state__in=("freezing", "approved", "running")).exists()
    )


@pytest.mark.timeout(180 + 3 * SECONDS)
def test_no_storm_loses_an_order_or_hands_a_token_out_twice_or_has_an_effect_twice(storm, operator, team_lead, capsys):
    declare(lease_ms=3_000, wait_base_ms=50, wait_cap_ms=500, max_attempts=3)
    people = People(operator, team_lead)
    raged(storm, people)
    pages = len(storm.pages.read_text().splitlines()) if storm.pages.exists() else 0
    assert came_true(lambda: calm(people), limit_s=90, look_s=0.2), (storm.dead(), storm.log.read_text()[-3_000:])
    assert storm.dead() == [], storm.log.read_text()[-3_000:]
    until(lambda: len(storm.pages.read_text().splitlines()) > pages + 5, "a page after the storm")
    storm.close()

    handed = Counter(tuple(line.split()[1:]) for line in storm.tokens.read_text().splitlines())
    assert not [proof for proof, n in handed.items() if n > 1], "a token was handed out twice"
    by_worker = Counter(line.split()[0] for line in storm.tokens.read_text().splitlines())
    assert len(by_worker) == WORKERS, f"somebody never got an order: {by_worker}"
    check_all(people.accepted)
    check_plans()
    _effects(storm, people)
    statuses = Counter(line.split()[-1] for line in storm.pages.read_text().splitlines())
    said = storm.log.read_text()
    assert "STORM" not in said, said[said.index("STORM") :][:2_000]
    assert "locked" not in said
    states = Counter(Job.objects.values_list("state", flat=True))
    with capsys.disabled():
        print(
            f"\n[storm] {SECONDS:g} s: {len(people.accepted)} orders {dict(states)}, {people.redrives} redrives, "
            f"{handed.total()} tokens, kills {dict(storm.kills)}, pages {dict(statuses)}"
        )
    assert set(statuses) == {"200"}
    assert storm.kills.total() >= SECONDS / 4


def _effects(storm, people):
    """The receiver's own record: one effect per id, in the quantity that was ordered, for everything that is done."""
    ledger = Ledger(str(storm.folder / "receiver.sqlite3"), now_ms=clock.now_ms)
    rows, after = {}, None
    while True:
        page = ledger.page(after, 500)
        rows |= {row["id"]: row for row in page.orders if row["applied_at_ms"] is not None}
        after = page.next
        if after is None:
            break
    ledger.close()
    assert page.totals["writes"] == page.totals["keys"] == len(rows), "an effect that was had twice"
    jobs = dict(Job.objects.values_list("id", "quantity"))
    assert set(rows) <= set(jobs)
    assert all(jobs[one] == row["quantity"] for one, row in rows.items())
    assert set(Job.objects.filter(state="done").values_list("id", flat=True)) <= set(rows), "done, and never there"
    assert set(people.accepted) <= set(jobs)
    assert set(jobs) <= set(people.accepted) | set(people.unsure)
