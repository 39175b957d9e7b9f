"""Two moves released at the same moment on connections of their own: one winner, one story."""

from collections import Counter
from functools import partial

import pytest

from queue_app.models import Failure, Job, LateFinish, Redrive
from queue_app.policy.errors import Conflict, NotDead
from queue_app.services import queue
from queue_app.store import arrivals
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, failures, put, row, stand, take
from tests.pairs import Pair

pytestmark = pytest.mark.django_db(transaction=True)
DUE = T + LEASE


@pytest.fixture
def pair():
    made = Pair(NotDead, Conflict)
    yield made
    made.close()


def ids(rounds):
    return [f"n{number}" for number in range(rounds)]


def test_claim_and_claim_one_gets_it(pair):
    rounds = ids(100)
    for job_id in rounds:
        put(job_id)
        answers = pair.race(partial(queue.claim, "w1", now_ms=T), partial(queue.claim, "w2", now_ms=T))
        assert sorted(len(leases) for leases in answers) == [0, 1]
        (lease,) = answers[0] + answers[1]
        assert (lease.id, lease.token) == (job_id, 1)
        assert row(job_id)["owner"] == ("w1" if answers[0] else "w2")
    check_all(rounds)


def test_claim_and_finish_either_the_late_answer_counts_or_the_taker_owns_it(pair):
    winners = Counter()
    rounds = ids(200)
    for job_id in rounds:
        put(job_id)
        take("w1")
        taken, ended = pair.race(
            partial(queue.claim, "w2", now_ms=DUE), partial(queue.finish, job_id, 1, "ok", now_ms=DUE)
        )
        winners["finish" if ended else "claim"] += 1
        if ended:
            assert taken == []
            assert (stand(job_id), failures(job_id)) == (("done", "", "", 1, 1), [])
        else:
            assert [(lease.id, lease.token) for lease in taken] == [(job_id, 2)]
            assert failures(job_id) == [(1, 1, "lease_expired", "lease_expired", "w1")]
            assert queue.finish(job_id, 2, "ok", now_ms=DUE)
    assert LateFinish.objects.count() == winners["claim"]
    assert min(winners["claim"], winners["finish"]) > 0, winners
    check_all(rounds)


def test_a_burial_and_a_finish_leave_one_end(pair):
    rounds = ids(60)
    for job_id in rounds:
        put(job_id, max_attempts=1)
        take("w1")
        _, ended = pair.race(partial(queue.claim, "w2", now_ms=DUE), partial(queue.finish, job_id, 1, "ok", now_ms=DUE))
        assert stand(job_id) == (("done", "", "", 1, 1) if ended else ("dead", "exhausted", "lease_expired", 1, 2))
        assert len(failures(job_id)) == (0 if ended else 1)
    check_all(rounds)


def test_finish_and_finish_the_first_one_is_the_outcome(pair):
    rounds = ids(100)
    for job_id in rounds:
        put(job_id)
        take("w1")
        good, bad = pair.race(
            partial(queue.finish, job_id, 1, "ok", now_ms=T),
            partial(queue.finish, job_id, 1, "permanent", code="http_422", now_ms=T),
        )
        assert good is not bad
        assert stand(job_id)[0] == ("done" if good else "dead")
        assert len(failures(job_id)) == (1 if bad else 0)
    check_all(rounds)


def test_renew_and_claim_at_the_boundary_one_has_it(pair):
    rounds = ids(60)
    for job_id in rounds:
        put(job_id)
        take("w1")
        renewed, taken = pair.race(partial(queue.renew, job_id, 1, now_ms=DUE), partial(queue.claim, "w2", now_ms=DUE))
        assert renewed is not bool(taken)
        assert queue.finish(job_id, 1 if renewed else 2, "ok", now_ms=DUE)
        assert row(job_id)["token"] == (1 if renewed else 2)
    check_all(rounds)


def test_redrive_and_a_late_finish_the_finish_never_counts(pair, team_lead):
    rounds = ids(60)
    for job_id in rounds:
        put(job_id, max_attempts=1)
        take("w1")
        queue.claim("w2", now_ms=DUE)
        _, ended = pair.race(
            partial(queue.redrive, job_id, "INC-1", approved_by=team_lead, now_ms=DUE),
            partial(queue.finish, job_id, 1, "ok", now_ms=DUE),
        )
        assert ended is False
        assert stand(job_id) == ("pending", "", "", 0, 2)
        assert queue.finish(job_id, take(at=DUE).token, "ok", now_ms=DUE)
    check_all(rounds)


def test_redrive_and_redrive_one_restarts_it(pair, team_lead):
    rounds = ids(40)
    for job_id in rounds:
        put(job_id)
        queue.finish(job_id, take().token, "permanent", now_ms=T)
        answers = pair.race(*[partial(queue.redrive, job_id, "INC-1", approved_by=team_lead, now_ms=T)] * 2)
        assert sorted(answers, key=str) == [NotDead, None]
        queue.finish(job_id, take().token, "ok", now_ms=T)
    assert Redrive.objects.count() == len(rounds)
    check_all(rounds)


def test_redrive_and_claim_the_job_is_handed_out_once_or_waits(pair, team_lead):
    rounds = ids(40)
    for job_id in rounds:
        put(job_id)
        queue.finish(job_id, take().token, "permanent", now_ms=T)
        _, taken = pair.race(
            partial(queue.redrive, job_id, "INC-1", approved_by=team_lead, now_ms=T),
            partial(queue.claim, "w2", now_ms=T),
        )
        lease = taken[0] if taken else take("w3")
        assert (lease.id, lease.token, lease.attempt) == (job_id, 2, 1)
        assert queue.finish(job_id, 2, "ok", now_ms=T)
    check_all(rounds)


@pytest.mark.parametrize(
    ("quantities", "answers"), [((7, 7), ["accepted", "duplicate"]), ((7, 8), ["accepted", Conflict])]
)
def test_the_same_id_accepted_twice_at_once_is_one_order(pair, quantities, answers):
    rounds = ids(40)
    for job_id in rounds:
        given = pair.race(*[partial(queue.enqueue, job_id, n, now_ms=T) for n in quantities])
        assert sorted(given, key=str) == sorted(answers, key=str)
        assert row(job_id)["quantity"] == quantities[given.index("accepted")]
    check_all(rounds)


@pytest.mark.parametrize("by_copy", [False, True])
def test_batches_of_the_same_orders_in_opposite_order_both_end(pair, monkeypatch, by_copy):
    monkeypatch.setattr(arrivals, "ROWS_BY_COPY", 2 if by_copy else 1_000)  # PostgreSQL's two ways of taking rows
    orders = [{"id": job_id, "quantity": 1} for job_id in ids(20)]
    for number in range(12):
        some = [{**order, "id": f"r{number}-{order['id']}"} for order in orders]
        one, other = pair.race(
            partial(queue.enqueue_many, some, now_ms=T),
            partial(queue.enqueue_many, some[::-1], now_ms=T),
        )
        for mine, theirs in zip(one, other[::-1], strict=True):
            assert sorted([mine, theirs]) == ["accepted", "duplicate"]
    assert Job.objects.count() == 240
    check_all()


def test_ends_of_the_same_jobs_in_opposite_order_both_end(pair):
    rounds = [[f"r{number}-{place}" for place in range(10)] for number in range(15)]
    for some in rounds:
        put(*some)
        assert len(queue.claim("w1", limit=10, now_ms=T)) == 10
        results = [queue.Result(job_id, 1, "permanent", "http_422") for job_id in some]
        one, other = pair.race(
            partial(queue.finish_many, results, now_ms=T),
            partial(queue.finish_many, results[::-1], now_ms=T),
        )
        assert [mine is not theirs for mine, theirs in zip(one, other[::-1], strict=True)] == [True] * 10
    assert Failure.objects.count() == 150
    check_all()
