"""kill -9 at every statement of a bite of housekeeping: each order is there, or has its tombstone and its archive line."""

import json
import subprocess
import sys
import threading
from collections import Counter

import pytest
from django.db import connection

from queue_app.models import AuditEvent, Count, Job
from queue_app.services import housekeeping, queue
from queue_app.services.verification import verify
from queue_app.store import arrivals, database, places
from tests.conftest import BASE_DIR
from tests.engine.mortals import mortals
from tests.growth.stories import buried, keep, there

DAY = 86_400_000


@pytest.fixture
def mortal(real_database):
    return lambda point, arguments: mortals(real_database.environ).die("tests.growth.mortal", "bite", point, arguments)


def delivered_long_ago(ids):
    """Done before the real clock's yesterday: the children have no clock that a test could set."""
    at = database.now_ms() - 5 * DAY
    queue.enqueue_many([{"id": one, "quantity": 2} for one in ids], now_ms=at)
    leases = queue.claim("w", limit=len(ids), now_ms=at)
    assert all(queue.finish_many([queue.Result(lease.id, lease.token, "ok") for lease in leases], now_ms=at))


def counted():
    return sum(Count.objects.filter(state="done").values_list("n", flat=True))


def test_a_bite_that_dies_anywhere_lost_nothing_and_the_next_goes_on(mortal, tmp_path):
    path, ids = tmp_path / "done.jsonl", [f"k{n}" for n in range(6)]
    keep(1)
    delivered_long_ago(ids)
    queue.enqueue("alive", 1)
    before = {"snacks": database.now_ms() - 2 * DAY}
    deaths, rounds = 0, 0
    while there() != {"alive"}:  # a death after the commit removed a bite, too
        for point in range(1, 200):
            arguments = {"before": before, "after": places.read(places.RETENTION), "size": 3, "path": str(path)}
            status, _ = mortal(point, arguments)
            lines = Counter(json.loads(line)["id"] for line in path.read_text().splitlines()) if path.exists() else {}
            assert there() | buried() == {*ids, "alive"}
            assert not there() & buried()
            assert buried() <= set(lines), "removed without a line in the archive"
            assert counted() == len(there()) - 1
            assert bool(buried()) == AuditEvent.objects.filter(action="remove_done").exists()
            if status == 0:
                break
            deaths += 1
        rounds += 1
        assert rounds < 20
    assert deaths > 10, "no death inside a bite"
    assert verify().whole
    assert all(queue.enqueue(one, 2) == "duplicate" for one in ids)
    assert Job.objects.count() == 1


def test_two_that_remove_at_once_remove_each_order_once(real_database, tmp_path):
    keep(1)
    ids = [f"k{n}" for n in range(30)]
    delivered_long_ago(ids)
    children = [
        subprocess.Popen(
            [sys.executable, "manage.py", "housekeeping", "--json", "--archive", str(tmp_path / f"{n}.jsonl")],
            env=real_database.environ, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True,
        )
        for n in range(2)
    ]  # fmt: skip
    told = [json.loads(child.communicate(timeout=60)[0]) for child in children]
    assert [child.returncode for child in children] == [0, 0]
    housekeeping.remove_round(wait=lambda _seconds: False)  # whatever one left while the other held it
    assert sum(one["removed"].get("snacks", 0) for one in told) <= len(ids)
    assert (there(), buried()) == (set(), set(ids))
    lines = {json.loads(line)["id"] for n in range(2) for line in (tmp_path / f"{n}.jsonl").read_text().splitlines()}
    assert lines == set(ids)


def test_an_order_that_is_removed_between_two_looks_of_an_acceptance_is_still_known(real_database, monkeypatch):
    """Another host removes it just then. On SQLite it has to wait, because an acceptance holds the write lock."""
    keep(1)
    delivered_long_ago(["k1"])
    others = []

    def remove():
        housekeeping.remove_round(wait=lambda _seconds: False)
        connection.close()

    looked_up = arrivals.fetch

    def then_remove(sql, values):
        found = looked_up(sql, values)
        if not others and sql.startswith("SELECT"):
            others.append(threading.Thread(target=remove))
            others[0].start()
            others[0].join(timeout=0.5)
        return found

    monkeypatch.setattr(arrivals, "fetch", then_remove)
    assert queue.enqueue("k1", 2) == "duplicate"
    others[0].join(timeout=60)
    assert (there(), buried()) == (set(), {"k1"})
