"""kill -9 before and after each wait for the server, while statements and COMMIT travel together (faults F01 to F03, F32).

A worker that dies after it has sent everything and before the answer does not know what became of it: the server carries
it out, or not, but whole; a repeat says which.
"""

import pytest
from django.db import connection

from queue_app.models import Job
from queue_app.services import queue
from tests.engine.invariants import check_all
from tests.engine.mortals import KILLED, mortals
from tests.engine.rows import DAY, T, failures, put, stand, take
from tests.waiting import until


def sessions():
    """The processes that serve clients of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        return {row[0] for row in cursor.fetchall()}


def leased(job_id):
    put(job_id)
    assert take("w1").id == job_id
    return {"token": 1}


def waiting(job_id):
    put(job_id)
    return {"owner": "w1", "id": None}


def after_enqueue(job_id):
    there = Job.objects.filter(pk=job_id).exists()
    assert queue.enqueue(job_id, 7, now_ms=T) == ("duplicate" if there else "accepted")
    return there


def after_claim(job_id):
    there = stand(job_id) == ("leased", "", "", 1, 1)
    assert there or stand(job_id) == ("pending", "", "", 0, 0)
    if not there:
        take("w2")
    return there


def after_finish(job_id, end=("done", "", "", 1, 1), rows=0, **more):
    there = stand(job_id) == end
    assert there or stand(job_id) == ("leased", "", "", 1, 1)
    assert len(failures(job_id)) == (rows if there else 0)
    assert queue.finish(job_id, 1, now_ms=T, **(more or {"outcome": "ok"})) is not there
    return there


def after_refusal(job_id):
    return after_finish(job_id, ("dead", "permanent", "http_422", 1, 1), 1, outcome="permanent", code="http_422")


def after_both(job_id):
    there = stand(f"{job_id}-now")[0] == "done"
    assert stand(f"{job_id}-next")[0] == ("leased" if there else "pending")
    if not there:
        assert queue.finish(f"{job_id}-now", 1, "ok", now_ms=T)
        assert take("w2").id == f"{job_id}-next"
    return there


def one_and_the_next(job_id):
    leased(f"{job_id}-now")
    put(f"{job_id}-next")
    return {"results": [[f"{job_id}-now", 1, "ok"]], "id": None}


CASES = {
    "enqueue": ("enqueue", lambda _job_id: {"quantity": 7}, after_enqueue),
    "claim": ("claim", waiting, after_claim),
    "finish": ("finish", lambda job_id: leased(job_id) | {"outcome": "ok"}, after_finish),
    "refuse": (
        "finish", lambda job_id: leased(job_id) | {"outcome": "permanent", "code": "http_422"}, after_refusal,
    ),
    "finish_and_claim": ("finish_and_claim", lambda job_id: one_and_the_next(job_id) | {"owner": "w1"}, after_both),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_death_on_the_way_to_the_server_or_back_leaves_all_or_nothing(real_database, case):
    move, ready, judge = CASES[case]
    process, before, seen = mortals(real_database.environ), sessions(), []
    for point in range(1, 60):
        Job.objects.filter(state="pending").update(available_at=T + DAY)
        job_id = f"n{point}"
        arguments = {"id": job_id, "now_ms": T} | ready(job_id)
        arguments = {name: value for name, value in arguments.items() if value is not None}
        status, _ = process.die("tests.engine.mortal", move, point, arguments, trips=True)
        until(lambda: not sessions() - before, "the server has served the dead one to its end")
        seen.append(judge(job_id))
        check_all()
        if status != KILLED:
            break
    assert seen[-2:] == [True, True], "the death before the answer was told, and the life"
    assert not all(seen), "no death before the commit"
