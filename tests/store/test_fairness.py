"""Two writers of one SQLite file share it: SQLite itself wakes nobody and knows no order (DESIGN section 10).

On PostgreSQL the same holds because nobody waits for anybody.
"""

import subprocess
import sys

import pytest
from django.db import connection

from queue_app.services import queue
from queue_app.store import database
from tests.conftest import BASE_DIR

SECONDS, LIMIT_S, TRIES = 1.0, 60, 3


def compete(real_database, limit):
    """What two processes got done in the same second, and the longest wait of any of their transactions (ms)."""
    rivals = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.contender", owner, str(SECONDS), str(limit)],
            env=real_database.environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for owner in ("w1", "w2")
    ]  # fmt: skip
    try:
        for rival in rivals:
            assert rival.stdout.readline() == "ready\n"
        for rival in rivals:
            rival.stdin.write("go\n")
            rival.stdin.flush()
        said = [[int(word) for word in rival.communicate(timeout=LIMIT_S)[0].split()] for rival in rivals]
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
    return [done for done, _ in said], max(wait for _, wait in said)


def test_each_of_two_workers_gets_its_share_and_neither_waits_long(real_database):
    queue.enqueue_many([{"id": f"j{n}", "quantity": 1} for n in range(4_000)])
    seen = []
    for _ in range(TRIES):  # a busy machine may stop one of two processes for a while, whatever the product does
        shares, wait_ms = compete(real_database, 1)
        seen.append((shares, wait_ms))
        if min(shares) >= 0.4 * sum(shares) > 0 and wait_ms <= 500:
            return
    pytest.fail(f"no fair second in {TRIES}: {seen}")


@pytest.fixture
def pauses(monkeypatch):
    taken = []
    monkeypatch.setattr(database.time, "sleep", taken.append)
    monkeypatch.setattr(database, "LOOK_AROUND_MS", 60_000)
    with database.write():  # the first look around, and whatever the tests before did
        pass
    monkeypatch.setattr(database._neighbours, "seen_ms", -database.NEIGHBOURS_MS, raising=False)
    taken.clear()
    return taken


def write_once(at=1):
    with database.write(), connection.cursor() as cursor:
        cursor.execute("UPDATE queues SET lease_ms = %s WHERE name = 'snacks'", [29_000 + at])


@pytest.mark.django_db(transaction=True)
def test_a_process_alone_does_not_pay_for_fairness(pauses):
    for at in range(20):
        write_once(at)
    assert pauses == []


@pytest.mark.django_db(transaction=True)
def test_one_who_saw_another_commit_steps_back_after_its_own(pauses, elsewhere):
    elsewhere(write_once)
    write_once(2)
    write_once(3)
    assert len(pauses) == (2 if connection.vendor == "sqlite" else 0)
    assert all(database.STEP_BACK_S[0] <= pause <= database.STEP_BACK_S[1] for pause in pauses)


@pytest.mark.django_db(transaction=True)
def test_one_who_writes_alone_for_long_looks_around(pauses, monkeypatch):
    monkeypatch.setattr(database, "LOOK_AROUND_MS", 0)
    write_once()
    assert len(pauses) == (connection.vendor == "sqlite")


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_failed_holds_nobody_up(pauses, elsewhere):
    elsewhere(write_once)
    with pytest.raises(ZeroDivisionError), database.write():
        1 / 0  # noqa: B018
    assert pauses == []
