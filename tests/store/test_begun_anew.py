"""A transaction that the database gives up for another's sake is begun anew, whole, and a bounded number of times (F27).

The conflict is put before each statement of a service in turn: whatever was written before it, the outcome is as if the
conflict had not happened. What PostgreSQL itself reports is in tests/postgresql.
"""

from dataclasses import dataclass
from functools import partial
from itertools import count

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from queue_app.models import Approval, AuditEvent, PlanItem, Redrive
from queue_app.policy.selections import by_ids
from queue_app.policy.terms import Terms
from queue_app.services import approvals, freezing, plans, queue, ticks
from queue_app.store import database
from tests.engine.invariants import check_counters, check_jobs
from tests.engine.rows import T, failures, put, row, take
from tests.redrive.invariants import check_plans
from tests.redrive.story import approve, ask, die, frozen, prove, work

pytestmark = pytest.mark.django_db(transaction=True)
CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)


@dataclass
class Conflict:
    """Stands before the n-th statement, as often as told."""

    at: int
    times: int = 1
    kind: type[psycopg.Error] = psycopg.errors.SerializationFailure
    seen: int = 0

    def __call__(self, execute, sql, params, many, context):
        self.seen += 1
        if self.times and self.seen >= self.at:
            self.times -= 1
            self.seen = 0
            raise OperationalError("could not serialize access") from self.kind("conflict")
        return execute(sql, params, many, context)


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    monkeypatch.setattr(database.time, "sleep", lambda _seconds: None)


# --- one story for each service: make ready, act, look ---------------------------------------------------------------


def job_after(job_id, answer):
    """The job without what differs from one to the next."""
    told = {name: value for name, value in row(job_id).items() if name not in ("id", "seq")}
    return answer, told, failures(job_id)


def enqueue(name):
    return lambda: queue.enqueue(name, 7, now_ms=T), partial(job_after, name)


def claim(name):
    """One that its worker left, and which is taken over."""
    put(name)
    take(lease_ms=10)
    return lambda: len(queue.claim("w2", now_ms=T + 10)), partial(job_after, name)


def leased(move):
    def ready(name):
        put(name)
        lease = take()
        return lambda: move(lease), partial(job_after, name)

    return ready


def redrive_after(plan, answer):
    plan.refresh_from_db()
    events = AuditEvent.objects.filter(target=f"plan:{plan.pk}").order_by("seq").values_list("action", flat=True)
    items = PlanItem.objects.filter(plan_id=plan.pk).order_by("pos").values_list("pos", "state")
    counts = [
        model.objects.filter(**{key: plan.pk}).count() for model, key in ((Approval, "plan_id"), (Redrive, "batch"))
    ]
    return answer, plan.state, plan.planned, plan.redriven, plan.round, list(items), list(events), counts


def asked(name):
    return ask(OPERATOR[0], by_ids(die(2, prefix=name)), Terms(1_000_000, canary=0))


OPERATOR, LEAD = [None], [None]


def freeze(name):
    plan = asked(name)
    return lambda: freezing.step(plan.pk).planned, partial(redrive_after, plan)


def approval(name):
    plan, proof = frozen(asked(name)), prove(LEAD[0])
    seen = {"round": 1, "digest": plan.digest, "note": "OK-1", "proof": proof, "typed": str(plan.planned)}
    return lambda: approvals.approve(LEAD[0], plan.pk, **seen).first, partial(redrive_after, plan)


def tick(name):
    plan = frozen(asked(name))
    approve(LEAD[0], plan)
    assert ticks.begin(plan.pk)
    return lambda: ticks.tick(plan.pk, unlimited=True).redriven, partial(redrive_after, plan)


STORIES = {
    "enqueue": enqueue,
    "claim": claim,
    "finish": leased(lambda lease: queue.finish(lease.id, 1, "permanent", code="http_422", now_ms=T + 1)),
    "finish_and_claim": leased(
        lambda lease: queue.finish_and_claim([queue.Result(lease.id, 1, "ok")], "w2", now_ms=T + 1)
    ),
    "renew": leased(lambda lease: queue.renew(lease.id, 1, now_ms=T + 1)),
    "release": leased(lambda lease: queue.release(lease.id, 1, now_ms=T + 1)),
    "freeze": freeze,
    "approve": approval,
    "tick": tick,
}


@pytest.mark.parametrize("story", STORIES)
def test_a_conflict_at_any_statement_is_as_if_it_had_not_happened(story, operator, team_lead, monkeypatch):
    OPERATOR[0], LEAD[0] = operator, team_lead
    monkeypatch.setattr(plans, "IN_REQUEST", 0)
    expected = None
    for at in count(0):
        act, look = STORIES[story](f"{story}-{at}-".replace("_", "-"))
        conflict = Conflict(at, times=1 if at else 0, kind=CONFLICTS[at % 2])
        with connection.execute_wrapper(conflict):
            answer = act()
        met, seen = conflict.times == 0, look(answer)
        work()  # nothing is left for the next round to meet
        expected = expected or seen
        assert seen == expected, f"a conflict at statement {at}"
        if not met:
            break
    assert at > 2, "the service has more statements than that"
    check_jobs()
    check_counters()
    check_plans()


def test_a_conflict_that_never_ends_is_told_after_five_tries_and_nothing_has_changed():
    put("a")
    before = row("a")
    conflict = Conflict(2, times=99)
    with connection.execute_wrapper(conflict), pytest.raises(OperationalError, match="serialize"):
        queue.claim("w1", now_ms=T)
    assert 99 - conflict.times == database.TRIES == 5
    assert row("a") == before
    assert not connection.in_atomic_block


def test_the_waits_grow_and_differ(monkeypatch):
    waits = []
    monkeypatch.setattr(database.time, "sleep", waits.append)
    with connection.execute_wrapper(Conflict(1, times=99)), pytest.raises(OperationalError):
        queue.claim("w1", now_ms=T)
    assert len(waits) == 4
    assert all(0.5 * 0.01 * 2**n <= wait <= 0.01 * 2**n for n, wait in enumerate(waits))


def test_inside_anothers_transaction_only_its_owner_may_begin_anew():
    calls = []

    @database.retried
    def inner():
        calls.append(1)
        raise OperationalError("deadlock detected") from psycopg.errors.DeadlockDetected("x")

    with pytest.raises(OperationalError), transaction.atomic():
        inner()
    assert len(calls) == 1


@pytest.mark.parametrize(
    "cause", [None, psycopg.errors.LockNotAvailable("x"), psycopg.OperationalError("server closed the connection")]
)
def test_what_is_no_conflict_is_told_at_once(cause):
    calls = []

    @database.retried
    def service():
        calls.append(1)
        raise OperationalError("other trouble") from cause

    with pytest.raises(OperationalError):
        service()
    assert len(calls) == 1
