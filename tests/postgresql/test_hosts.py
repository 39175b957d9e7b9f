"""Hosts whose clocks are 10 minutes apart share one PostgreSQL: its clock alone decides (F35 to F37)."""

import pytest
from django.db import connection

from queue_app.models import Job, Plan, Redrive
from queue_app.policy.terms import Terms
from queue_app.services import queue
from queue_app.store import database
from tests.demo.running import eventually
from tests.engine.invariants import check_counters, check_jobs
from tests.postgresql.hosts import Host
from tests.redrive.invariants import check_plans
from tests.redrive.story import approve, ask, die

pytestmark = pytest.mark.django_db(transaction=True)
APART = {"fast": "600000", "slow": "-600000"}  # ms
RATE = 20


def hosts(kind, real_database):
    """One whose clock is ahead and one whose clock is behind."""
    return [Host(kind, f"{kind}-{name}", real_database.url, TESTS_CLOCK_AHEAD_MS=ms) for name, ms in APART.items()]


def test_no_lease_is_stolen_and_nothing_is_due_early_or_late_by_a_hosts_own_clock(real_database):
    now = database.now_ms()
    queue.enqueue("held", 1)
    (lease,) = queue.claim("here", lease_ms=60_000)
    queue.enqueue("later", 1)
    Job.objects.filter(pk="later").update(available_at=now + 120_000)
    names = [f"j{n}" for n in range(40)]
    queue.enqueue_many([{"id": name, "quantity": 1} for name in names])
    fast, slow = hosts("worker", real_database)
    with fast, slow:
        eventually(
            lambda: not Job.objects.filter(pk__in=names).exclude(state="done").exists(), "the due orders are done"
        )
        queue.enqueue_many([{"id": f"second-{n}", "quantity": 1} for n in range(20)])
        eventually(lambda: Job.objects.filter(state="done").count() == 60, "the next ones, too")
        assert [fast.leave(), slow.leave()] == [0, 0]
    delivered = fast.delivered + slow.delivered
    assert len(delivered) == len(set(delivered)) == 60
    assert {token for _, token in delivered} == {1}, "a lease was taken over"
    assert Job.objects.values_list("state", "token").get(pk="held") == ("leased", lease.token)
    assert queue.finish("held", lease.token, "ok")
    assert Job.objects.values_list("state", "attempts").get(pk="later") == ("pending", 0)
    seen = Job.objects.filter(state="done").values_list("changed_at_ms", flat=True)
    assert now <= min(seen) <= max(seen) <= database.now_ms()
    check_jobs()
    check_counters()


def test_redrivers_of_both_keep_one_rate_by_the_databases_clock(real_database, operator, team_lead):
    die(30)
    plan = ask(operator, terms=Terms(RATE * 1_000, canary=0))
    approve(team_lead, plan)
    begun = database.now_ms()
    fast, slow = hosts("redriver", real_database)
    with fast, slow:
        eventually(lambda: Plan.objects.get().state == "ended", "the batch has ended")
        assert [fast.leave(), slow.leave()] == [0, 0]
    at = sorted(Redrive.objects.values_list("at_ms", flat=True))
    assert len(at) == 30
    assert begun <= at[0] <= at[-1] <= database.now_ms()
    for first in at:  # in any second at most a second's worth, and what may stand in the bucket
        assert sum(first <= other < first + 1_000 for other in at) <= RATE + RATE // 4 + 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM processes WHERE kind = 'redriver' AND seen_at_ms BETWEEN %s AND %s",
                       [begun, database.now_ms()])  # fmt: skip
        assert cursor.fetchone()[0] == 2
    check_plans()
