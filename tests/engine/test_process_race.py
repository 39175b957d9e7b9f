"""Two real processes race for 500 jobs: each token of each job is handed out once, and nothing is lost."""

import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from queue_app.models import Failure, Job
from queue_app.services import queue
from tests.conftest import BASE_DIR
from tests.engine.invariants import check_all
from tests.engine.rows import T

JOBS = [f"n{number}" for number in range(500)]
LIMIT_S = 120


def race(real_database, now):
    """Both start at the same line; returns what each was given."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engine.racer", owner, str(now)],
            env=real_database.environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for owner in ("w1", "w2")
    ]  # fmt: skip
    try:
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        answers = [racer.communicate(timeout=LIMIT_S)[0] for racer in racers]
        assert [racer.returncode for racer in racers] == [0, 0]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    return [[line.split() for line in answer.splitlines()] for answer in answers]


@pytest.mark.parametrize("now", [0, T], ids=["the real clock", "one and the same instant"])
def test_each_token_is_handed_out_once_and_nothing_is_lost(real_database, now):
    orders = [{"id": job_id, "quantity": 1, "max_attempts": 100} for job_id in JOBS]
    assert queue.enqueue_many(orders, now_ms=now or None) == ["accepted"] * 500
    given = race(real_database, now)

    assert all(len(lines) > 20 for lines in given), "one of the two got next to nothing: no race"
    handed = Counter((job_id, int(token)) for lines in given for job_id, token, _ in lines)
    assert set(handed.values()) == {1}
    tokens = defaultdict(set)
    for job_id, token in handed:
        tokens[job_id].add(token)
    assert set(tokens) == set(JOBS)
    stored = dict(Job.objects.values_list("id", "token"))
    assert all(tokens[job_id] == set(range(1, stored[job_id] + 1)) for job_id in JOBS), "a token went astray"
    ended = Counter(job_id for lines in given for job_id, _, finished in lines if finished == "1")
    assert ended == Counter(JOBS)
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}
    assert Failure.objects.count() == len(handed) - 500  # each dropped lease was told when it was taken over
    check_all(JOBS)
