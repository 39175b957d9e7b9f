"""The database goes away while a redriver works: before or after a COMMIT whose answer is lost (F32)."""

import pytest
from django.db import OperationalError, connection

from queue_app.delivery.redriver import Redriver
from queue_app.models import Job, Plan, PlanItem, Redrive
from queue_app.policy.terms import Terms
from tests.redrive.invariants import check_plans
from tests.redrive.story import approve, ask, die

pytestmark = pytest.mark.django_db(transaction=True)


class Flaky:
    """Breaks every third COMMIT of the connection; what the database did stands, the answer is lost."""

    def __init__(self, monkeypatch, after_commit: bool) -> None:
        self.broken = 0
        self._count = 0
        self._after = after_commit
        commit = connection._commit

        def flaky_commit():
            self._count += 1
            if self._after:
                commit()
            if self._count % 3 == 0:
                self.broken += 1
                raise OperationalError("server closed the connection unexpectedly")
            if not self._after:
                commit()

        monkeypatch.setattr(connection, "_commit", flaky_commit)


@pytest.mark.parametrize("after_commit", [False, True])
def test_a_lost_answer_at_commit_is_found_out_by_reading_never_by_repeating(
    operator, team_lead, monkeypatch, after_commit
):
    die(120)
    plan = ask(operator, terms=Terms(2_000_000, canary=0))
    approve(team_lead, plan)
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if Plan.objects.get().state == "ended" or len(waits) > 400:
            redriver.stop()
        return False

    redriver = Redriver("r1", wait=wait)
    with monkeypatch.context() as patched:
        flaky = Flaky(patched, after_commit)
        patched.setattr("queue_app.policy.buckets.BITE", (10, 10))
        redriver.run()
    assert flaky.broken > 1
    assert Plan.objects.get().state == "ended"
    assert Redrive.objects.count() == len(set(Redrive.objects.values_list("job_id", flat=True))) == 120
    assert Job.objects.filter(redriven=1).count() == 120
    check_plans()


def test_a_statement_that_fails_for_the_database_is_not_the_fault_of_an_order(operator, team_lead, monkeypatch):
    die(10)
    plan = ask(operator, terms=Terms(1_000_000, canary=0))
    approve(team_lead, plan)
    failing = [5]

    def refuse(execute, sql, params, many, context):
        if "UPDATE jobs" in sql and failing[0]:
            failing[0] -= 1
            raise OperationalError("disk I/O error")
        return execute(sql, params, many, context)

    def wait(_seconds):
        if Plan.objects.get().state == "ended":
            redriver.stop()
        return False

    redriver = Redriver("r1", wait=wait)
    with connection.execute_wrapper(refuse):
        redriver.run()
    plan.refresh_from_db()
    assert (plan.state, plan.redriven, plan.skipped) == ("ended", 10, 0)
    assert failing == [0]
    assert not PlanItem.objects.filter(tries__gt=0).exists()
    check_plans()
