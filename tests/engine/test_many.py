"""Many at once is the same as one by one: same answers, same rows, whatever went before."""

import os
from contextlib import contextmanager

import hypothesis
import pytest
from django.db import connection, transaction
from hypothesis import strategies as st

from queue_app.models import Failure, Job, LateFinish, RedriveOutcome, Tally
from queue_app.policy.errors import Conflict, InvalidOrder, QueueFull
from queue_app.services import passing, queue
from queue_app.services.leases import record_unknown
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, declare

pytestmark = pytest.mark.django_db
EXAMPLES = int(os.environ.get("SNACKOPS_TEST_EXAMPLES", "12"))
IDS = "abcdef"
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "claim", "ok", "retry", "permanent", "redrive", "unknown", "wait"]),
        st.sampled_from(IDS),
        st.sampled_from([1, 1_000, LEASE, LEASE * 2]),
    ),
    max_size=14,
)
ORDERS = st.fixed_dictionaries(
    {job_id: st.tuples(st.integers(1, 2), st.sampled_from([10**6, 500, LEASE, LEASE + 1_000])) for job_id in IDS}
)
NEAR = st.sampled_from([0, 0, 0, -1, 1])
NAMED = st.lists(st.tuples(st.sampled_from([*IDS, "none"]), NEAR), max_size=9)
ENDS = st.tuples(
    st.sampled_from(["ok", "retry", "permanent"]), st.sampled_from(["", "http_503"]), st.sampled_from([None, 7_000])
)
RESULTS = st.lists(st.tuples(st.sampled_from([*IDS, "none"]), NEAR, ENDS), max_size=9)


def told():
    """Every row that a move writes, without the numbers that sequences gave."""
    kept = {"jobs": list(Job.objects.order_by("pk").values())}
    for model in (Failure, LateFinish, RedriveOutcome):
        kept[model._meta.db_table] = [
            {name: value for name, value in row.items() if name != "id"}
            for row in model.objects.order_by("job_id", "token").values()
        ]
    kept["tallies"] = list(Tally.objects.order_by("name").values_list("name", "n"))
    with connection.cursor() as cursor:
        # not the failures in a row: what ends together is heard as one, so an answer outweighs what ends beside it
        cursor.execute("SELECT queue, breaker, probe_job FROM gates WHERE breaker <> 'closed' ORDER BY queue")
        kept["gates"] = cursor.fetchall()
    return kept


@contextmanager
def undone():
    """Whatever happens inside has not happened."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def live(orders, steps, lead):
    """Orders in two queues and some of their life; the instant at its end."""
    declare(max_attempts=3, wait_base_ms=500)
    declare("tables", ordering="ordered", wait_base_ms=500, wait_budget_ms=600)
    for job_id, (tries, span) in orders.items():
        name, key = ("snacks", "") if job_id < "d" else ("tables", "k" if job_id < "f" else "")
        queue.enqueue(
            job_id, 1, queue=name, order_key=key, max_attempts=tries, deadline_ms=T + span, now_ms=T
        )  # fmt: skip
    now = T
    for verb, job_id, span in steps:
        token = Job.objects.get(pk=job_id).token
        if verb == "claim":
            queue.claim("w1", limit=2, now_ms=now)
            queue.claim("w1", queue="tables", now_ms=now)
        elif verb == "wait":
            now += span
        elif verb == "redrive":
            if Job.objects.filter(pk=job_id, state="dead").exists():
                queue.redrive(job_id, "INC-1", approved_by=lead, now_ms=now)
        elif verb == "unknown":
            record_unknown(job_id, token, "bad_ack", now_ms=now)
        else:
            queue.finish(job_id, token, verb, code="http_503", now_ms=now)
    return now


def both_ways(many, one_by_one):
    """The answers and rows of either; they are the same."""
    ends = []
    for move in (many, one_by_one):
        with undone():
            ends.append((move(), told()))
            check_all()
    assert ends[0] == ends[1]


def tokens():
    return {"none": 1, **dict(Job.objects.values_list("id", "token"))}


def prove(lead, strategy, judge):
    """`judge(now, drawn)` after a random life; each example is rolled back."""

    @hypothesis.settings(max_examples=EXAMPLES)
    @hypothesis.given(orders=ORDERS, steps=STEPS, drawn=strategy)
    def example(orders, steps, drawn):
        with undone():
            judge(live(orders, steps, lead), drawn)

    example()


def test_many_ends(team_lead):
    def judge(now, drawn):
        known = tokens()
        results = [queue.Result(i, max(known[i] + near, 0), *end) for i, near, end in drawn]
        both_ways(
            lambda: queue.finish_many(results, now_ms=now),
            lambda: [
                queue.finish(r.id, r.token, r.outcome, code=r.code, retry_after_ms=r.retry_after_ms, now_ms=now)
                for r in results
            ],
        )

    prove(team_lead, RESULTS, judge)


def test_many_leases(team_lead):
    def judge(now, limit):
        for name in ("snacks", "tables"):
            both_ways(
                lambda name=name: queue.claim("w2", queue=name, limit=limit, now_ms=now),
                lambda name=name: [lease for _ in range(limit) for lease in queue.claim("w2", queue=name, now_ms=now)],
            )

    prove(team_lead, st.integers(1, 7), judge)


def test_many_renewals_and_many_given_back(team_lead):
    def judge(now, drawn):
        known = tokens()
        proofs = [(i, max(known[i] + near, 0)) for i, near in drawn]
        both_ways(
            lambda: queue.renew_many(proofs, now_ms=now), lambda: [queue.renew(*proof, now_ms=now) for proof in proofs]
        )
        both_ways(
            lambda: queue.release_many(proofs, now_ms=now),
            lambda: [queue.release(*proof, now_ms=now) for proof in proofs],
        )

    prove(team_lead, NAMED, judge)


def test_ending_and_taking_on_is_one_after_the_other(team_lead):
    def judge(now, drawn):
        known = tokens()
        results = [queue.Result(i, max(known[i] + near, 0), *end) for i, near, end in drawn]
        both_ways(
            lambda: queue.finish_and_claim(results, "w2", limit=4, now_ms=now),
            lambda: (queue.finish_many(results, now_ms=now), queue.claim("w2", limit=4, now_ms=now)),
        )

    prove(team_lead, RESULTS, judge)


SUCCESSES = st.lists(st.tuples(st.sampled_from([*IDS, "none"]), st.sampled_from([0, 0, 0, 1])), max_size=4)


def test_a_turn_at_once_is_a_turn_step_by_step(team_lead, monkeypatch):
    plain = []
    pass_on = passing.pass_on

    def listening(*arguments):
        answer = pass_on(*arguments)
        plain.append(answer is not None)
        return answer

    monkeypatch.setattr(passing, "pass_on", listening)

    def turn(results, name, now, ahead):
        monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit if ahead else 0)
        return queue.finish_and_claim(results, "w2", queue=name, limit=3, now_ms=now)

    def judge(now, drawn):
        known = tokens()
        results = [queue.Result(i, max(known[i] + near, 0), "ok") for i, near in drawn]
        for name in ("snacks", "tables"):
            both_ways(
                lambda name=name: turn(results, name, now, True), lambda name=name: turn(results, name, now, False)
            )

    prove(team_lead, SUCCESSES, judge)
    assert any(plain), "no turn was plain"


NEW = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from("xyzab"), "quantity": st.integers(0, 2)},
        optional={"queue": st.sampled_from(["snacks", "tables", "one", "nowhere"]), "payload": st.just({"a": 1})},
    ),
    max_size=8,
)


def test_many_orders(team_lead):
    def one(entry):
        try:
            return queue.enqueue(**entry, now_ms=T)
        except (InvalidOrder, Conflict, QueueFull) as refusal:
            return refusal

    def spoken(answers):
        return [answer if isinstance(answer, str) else (type(answer), str(answer)) for answer in answers]

    def judge(_now, entries):
        declare("one", max_unfinished=1)
        ends = []
        for move in (lambda: queue.enqueue_many(entries, now_ms=T), lambda: [one(entry) for entry in entries]):
            with undone():
                ends.append((spoken(move()), list(Job.objects.order_by("seq").values_list("id", "queue", "payload"))))
        assert ends[0] == ends[1]

    prove(team_lead, NEW, judge)
