"""The gate under rivals: one probe and one rate, however many threads and processes ask."""

import subprocess
import sys
from functools import partial

import pytest

from queue_app.models import AuditEvent, Gate, Job
from queue_app.policy.breakers import SILENT_MS
from queue_app.policy.buckets import JOB_UJ, capacity_uj
from queue_app.services import queue
from tests.conftest import BASE_DIR
from tests.engine.rows import T, declare, put, take
from tests.pairs import Pair

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 15
RATE = 60_000
RAN_MS = 1_200
LIMIT_S = 60


@pytest.fixture
def pair():
    made = Pair()
    yield made
    made.close()


def silent_since(at):
    """The gate of a queue whose receiver failed once, so long ago that its number decides."""
    Gate.objects.all().delete()
    Gate.objects.create(queue="snacks", failed_in_row=1, silent_since_ms=at - SILENT_MS)


def open_it(at, number):
    """A queue whose breaker opened at this instant."""
    silent_since(at)
    put(f"o-{number}", at=at, max_attempts=9)
    lease = take(at=at)
    assert queue.finish(lease.id, lease.token, "retry", code="http_503", now_ms=at)
    assert Gate.objects.get().breaker == "open"


def test_two_at_the_instant_of_the_probe_one_gets_an_order(pair):
    declare(breaker_after=1, breaker_wait_ms=1_000)
    for number in range(ROUNDS):
        at = T + number * 10_000
        open_it(at, number)
        put(f"x-{number}", f"y-{number}", at=at)
        answers = pair.race(
            partial(queue.claim, "w1", limit=2, now_ms=at + 1_000),
            partial(queue.claim, "w2", limit=2, now_ms=at + 1_000),
        )
        assert sorted(len(leases) for leases in answers) == [0, 1]
        (probe,) = answers[0] + answers[1]
        gate = Gate.objects.get()
        assert (gate.breaker, gate.probe_job, gate.probe_token) == ("probing", probe.id, probe.token)
        assert queue.finish(probe.id, probe.token, "ok", now_ms=at + 1_000)
        for lease in queue.claim("w3", limit=99, now_ms=at + 9_000):
            assert queue.finish(lease.id, lease.token, "ok", now_ms=at + 9_000)


def test_two_failures_at_once_are_two_in_the_row_and_open_it_once(pair):
    declare(breaker_after=3)
    for number in range(ROUNDS):
        silent_since(T)
        put(f"a-{number}", f"b-{number}")
        one, other = queue.claim("w1", limit=2, now_ms=T)
        fails = [
            partial(queue.finish, lease.id, lease.token, "retry", code="http_500", now_ms=T) for lease in (one, other)
        ]
        assert pair.race(*fails) == [True, True]
        assert (Gate.objects.get().breaker, Gate.objects.get().failed_in_row) == ("open", 3)
        Job.objects.filter(state="pending").update(available_at=T * 2)
    assert AuditEvent.objects.filter(action="breaker.open").count() == ROUNDS


def test_a_failure_and_an_answer_at_once_leave_it_closed_in_either_order(pair):
    declare(breaker_after=3)
    for number in range(ROUNDS):
        silent_since(T)
        put(f"a-{number}", f"b-{number}")
        fails, works = queue.claim("w1", limit=2, now_ms=T)
        answers = pair.race(
            partial(queue.finish, fails.id, fails.token, "retry", code="http_500", now_ms=T),
            partial(queue.finish, works.id, works.token, "ok", now_ms=T),
        )
        assert answers == [True, True]
        assert (Gate.objects.get().breaker, Gate.objects.get().failed_in_row) in {("closed", 0), ("closed", 1)}
        Job.objects.filter(state="pending").update(available_at=T * 2)


def test_two_claimers_share_what_is_there_for_one(pair):
    declare(delivery_rate_mj=1_000, breaker_after=0)  # the bucket holds one order
    for number in range(ROUNDS):
        at = T + number * 10_000
        put(f"a-{number}", f"b-{number}", at=at)
        answers = pair.race(*(partial(queue.claim, owner, limit=2, now_ms=at) for owner in ("w1", "w2")))
        assert sorted(len(leases) for leases in answers) == [0, 1]


def test_two_processes_together_keep_the_rate(real_database):
    declare(delivery_rate_mj=RATE, breaker_after=0)
    queue.enqueue_many({"id": f"n{number}", "quantity": 1} for number in range(400))
    pacers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engine.pacer", owner, str(RAN_MS)],
            env=real_database.environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for owner in ("w1", "w2")
    ]  # fmt: skip
    try:
        for pacer in pacers:
            assert pacer.stdout.readline() == "ready\n"
        for pacer in pacers:
            pacer.stdin.write("go\n")
            pacer.stdin.flush()
        answers = [pacer.communicate(timeout=LIMIT_S)[0].split() for pacer in pacers]
    finally:
        for pacer in pacers:
            pacer.kill()
            pacer.wait()
    assert all(answers), "one of the two got nothing: no race"
    at = sorted(int(instant) for answer in answers for instant in answer)
    assert len(at) == Job.objects.filter(state="done").count()
    for first in range(len(at)):
        for last in range(first, len(at)):
            # an order handed out at the end of the window filled the bucket up to that very millisecond
            assert (last - first + 1) * JOB_UJ <= RATE * (at[last] - at[first]) + capacity_uj(RATE)
    assert len(at) >= 20, "the rate is a limit, but no wall"
