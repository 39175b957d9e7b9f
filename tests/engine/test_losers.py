"""Somebody moved one of many rows between the look and the update: that one is refused, the others move.

SQLite's write transaction and PostgreSQL's row locks keep this from happening; the guards hold without them.
"""

from contextlib import contextmanager

import pytest
from django.db.models import F

from queue_app.models import Job
from queue_app.services import passing, queue
from queue_app.services.leases import renew_many
from queue_app.store import ends, glances, jobs
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, failures, put, stand, take

pytestmark = pytest.mark.django_db
DUE = T + LEASE


@contextmanager
def meanwhile(monkeypatch, module, look, move):
    """The next `look` of the store is followed by `move`, as if by somebody else."""
    real = getattr(module, look)

    def looks(*arguments, **more):
        seen = real(*arguments, **more)
        monkeypatch.setattr(module, look, real)
        move()
        return seen

    monkeypatch.setattr(module, look, looks)
    yield
    monkeypatch.setattr(module, look, real)


def taken_over(job_id):
    """Somebody else was handed the job: a new token."""
    Job.objects.filter(pk=job_id).update(
        state="leased", owner="w9", lease_until=DUE + LEASE, token=F("token") + 1, attempts=F("attempts") + 1
    )


@pytest.fixture(params=["step by step", "at once"])
def look(request, monkeypatch):
    """The module and the name of the look at due jobs, of each of the two ways of a turn."""
    at_once = request.param == "at once"
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit if at_once else 0)
    return (glances, "glance") if at_once else (jobs, "due")


def test_of_many_due_jobs_only_the_one_that_moved_is_not_handed_out(monkeypatch, look):
    put("a", "b", "c", "d")
    queue.claim("w1", limit=2, now_ms=T)
    with meanwhile(monkeypatch, *look, lambda: [taken_over("b"), taken_over("d")]):
        leases = queue.claim("w2", limit=4, now_ms=DUE)
    assert [(lease.id, lease.token) for lease in leases] == [("a", 2), ("c", 1)]
    assert [stand(job_id)[4] for job_id in "abcd"] == [2, 2, 1, 1]
    assert Job.objects.get(pk="b").owner == "w9"
    assert (failures("a"), failures("b")) == ([(1, 1, "lease_expired", "lease_expired", "w1")], [])
    check_all("abcd")


def test_a_claim_that_lost_a_job_goes_on_to_the_next_one(monkeypatch, look):
    put("a", "b", "c")
    with meanwhile(monkeypatch, *look, lambda: taken_over("a")):
        assert [lease.id for lease in queue.claim("w2", limit=2, now_ms=T)] == ["b", "c"]
    with meanwhile(monkeypatch, *look, lambda: None):
        assert queue.claim("w2", limit=2, now_ms=T) == []


def test_a_burial_whose_job_moved_undoes_the_whole_claim(monkeypatch):
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, _limit: 0)
    put("late", deadline_ms=T + 1)
    put("good")
    with (
        meanwhile(monkeypatch, jobs, "due", lambda: taken_over("late")),
        pytest.raises(RuntimeError, match="moved inside the transaction"),
    ):
        queue.claim("w1", limit=2, now_ms=T + 1)
    assert (stand("late"), stand("good")) == (("pending", "", "", 0, 0),) * 2
    check_all(["late", "good"])


ENDS = [("ok", "done"), ("retry", "pending"), ("permanent", "dead")]


def test_of_what_a_plain_turn_ends_and_takes_only_what_moved_is_refused_or_missing(monkeypatch):
    put("a", "b", "c", "d")
    queue.claim("w1", limit=2, now_ms=T)
    results = [queue.Result(job_id, 1, "ok") for job_id in "ab"]
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit)
    with meanwhile(monkeypatch, glances, "glance", lambda: [taken_over("b"), taken_over("c")]):
        answers, leases = queue.finish_and_claim(results, "w1", limit=2, now_ms=T)
    assert (answers, [(lease.id, lease.token) for lease in leases]) == ([True, False], [("d", 1)])
    assert [stand(job_id)[0] for job_id in "abcd"] == ["done", "leased", "leased", "leased"]
    assert [row.owner for row in Job.objects.order_by("id")] == [None, "w9", "w9", "w1"]
    check_all("abcd")


@pytest.mark.parametrize(("outcome", "state"), ENDS)
def test_of_many_ends_only_the_one_that_moved_is_refused(monkeypatch, outcome, state):
    put("a", "b", "c")
    queue.claim("w1", limit=3, now_ms=T)
    results = [queue.Result(job_id, 1, outcome, "http_500") for job_id in "abc"]
    with meanwhile(monkeypatch, ends, "held", lambda: taken_over("b")):
        assert queue.finish_many(results, now_ms=T) == [True, False, True]
    assert [stand(job_id)[0] for job_id in "abc"] == [state, "leased", state]
    assert stand("b")[4] == 2
    assert [len(failures(job_id)) for job_id in "abc"] == ([0, 0, 0] if outcome == "ok" else [1, 0, 1])
    check_all("abc")


def test_of_many_leases_only_the_one_that_moved_is_not_renewed(monkeypatch):
    put("a", "b", "c")
    queue.claim("w1", limit=3, now_ms=T)
    with meanwhile(monkeypatch, ends, "held", lambda: taken_over("b")):
        assert renew_many([("a", 1), ("b", 1), ("c", 1)], now_ms=T + 5) == [True, False, True]
    assert list(Job.objects.order_by("id").values_list("lease_until", flat=True)) == [
        T + 5 + LEASE,
        DUE + LEASE,
        T + 5 + LEASE,
    ]


def test_of_many_given_back_only_the_one_that_moved_is_kept(monkeypatch):
    put("a", "b", "c")
    queue.claim("w1", limit=3, now_ms=T)
    with meanwhile(monkeypatch, ends, "held", lambda: taken_over("b")):
        assert queue.release_many([("a", 1), ("b", 1), ("c", 1)], now_ms=T + 5) == [True, False, True]
    assert [stand(job_id) for job_id in "abc"] == [
        ("pending", "", "", 0, 1), ("leased", "", "", 2, 2), ("pending", "", "", 0, 1),
    ]  # fmt: skip


def test_many_proofs_get_an_answer_each_in_order_and_nothing_asked_is_nothing_answered():
    put("a", "b", "c")
    queue.claim("w1", limit=2, now_ms=T)
    proofs = [("b", 1), ("a", 0), ("a", 1), ("none", 1), ("c", 0), ("b", 1)]
    assert queue.renew_many(proofs, now_ms=T) == [True, False, True, False, False, True]
    assert queue.release_many(proofs, now_ms=T) == [True, False, True, False, False, False]
    assert queue.renew_many(proofs, now_ms=T) == [False] * 6
    assert (queue.renew_many([]), queue.release_many([]), queue.finish_many([])) == ([], [], [])
    assert take().id == "a"
    check_all("abc")


@pytest.mark.parametrize("bad", [("a", True), ("a", -1), ("", 1), (None, 1)])
def test_one_proof_that_cannot_be_meant_moves_none(bad, django_assert_num_queries):
    for move in (queue.renew_many, queue.release_many):
        with django_assert_num_queries(0), pytest.raises(ValueError, match=r"\.$"):
            move([("a", 1), bad])


@pytest.mark.parametrize("count", [1, 40])
def test_many_moves_cost_the_statements_of_one(django_assert_max_num_queries, count):
    ids = [f"n{number}" for number in range(count)]
    put(*ids)
    proofs = [(job_id, 1) for job_id in ids]
    with django_assert_max_num_queries(12):
        assert len(queue.claim("w1", limit=1_000, now_ms=T)) == count
    with django_assert_max_num_queries(8):
        assert all(queue.renew_many(proofs, now_ms=T))
    with django_assert_max_num_queries(8):
        assert all(queue.finish_many([queue.Result(*proof, "ok") for proof in proofs], now_ms=T))
