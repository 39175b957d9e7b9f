"""What died of a list's causes after it was fixed: by counters at any number, and never more than the rows say."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import Job, Plan, PlanGroup, PlanItem
from queue_app.policy.plans import CLOSED
from queue_app.policy.terms import Terms
from queue_app.policy.windows import DAY_MS, HOUR_MS
from queue_app.reads import latecomers
from queue_app.reads.dead import Count
from queue_app.services import batches
from queue_app.services import plans as asking
from tests.conftest import Clock
from tests.redrive.story import SNACKS, approved, ask, die, halted_by_its_trial, run, work

pytestmark = pytest.mark.django_db
Story = Callable[[Clock, User, User], Plan]


def told(plan: Plan, clock: Clock) -> Count:
    """What the page says."""
    plan.refresh_from_db()
    return latecomers.died_since(plan.pk, plan.queue, plan.as_of_ms, plan.ended_at_ms, clock.now)


def true(plan: Plan, clock: Clock) -> int:
    """The same from the rows, one by one."""
    causes = set(PlanGroup.objects.filter(plan=plan).values_list("reason", "code"))
    on_it = set(PlanItem.objects.filter(plan=plan).values_list("job_id", flat=True))
    until_ms = plan.ended_at_ms or clock.now
    dead = Job.objects.filter(state="dead", queue=plan.queue, changed_at_ms__range=(plan.as_of_ms, until_ms))
    return sum((job.reason, job.code) in causes and job.pk not in on_it for job in dead)


def nothing_came_back(clock: Clock, operator: User, _lead: User) -> Plan:
    """Deaths of two causes over days, before and after the list was fixed; one more cause that it does not have."""
    die(3)
    die(2, first=10, code="http_500")
    plan = ask(operator)
    for hours, n, code in ((0, 4, "http_503"), (1, 3, "http_500"), (30, 2, "http_503"), (0, 5, "http_422")):
        clock.advance(hours * HOUR_MS + 61_234)
        die(n, first=100, code=code, prefix=f"x{hours}{code}-")
    return plan


def some_came_back_for_another_cause(clock: Clock, operator: User, lead: User) -> Plan:
    """One of the trial dies of the list's other cause, and nobody can tell it from outside by a counter."""
    die(20)
    die(5, first=50, code="http_500")
    plan = approved(operator, lead, Terms(1_000_000, canary=10))
    clock.advance(1_000)
    die(4, first=100)
    run(plan, clock)
    work("permanent", code="http_500", limit=25)
    run(plan, clock)
    return plan


def ended_and_redriven_by_another(clock: Clock, operator: User, lead: User) -> Plan:
    """All came back before its end; a second redrive took some of them away again."""
    die(10)
    plan = approved(operator, lead, Terms(1_000, canary=0))
    run(plan, clock, ticks_at_most=3)
    work("permanent", code="http_503")
    clock.advance(1_000)
    die(2, first=100)
    run(plan, clock)
    assert plan.state in CLOSED
    clock.advance(1_000)
    work("permanent", code="http_503")
    clock.advance(1_000)
    die(1, first=200)
    later = approved(operator, lead, Terms(1_000_000, canary=0, cap=3))
    run(later, clock)
    work("ok")
    return plan


def withdrawn(clock: Clock, operator: User, _lead: User) -> Plan:
    """What died after its end does not count."""
    die(2)
    plan = ask(operator)
    clock.advance(1_000)
    die(3, first=10)
    asking.withdraw(operator, plan.pk)
    clock.advance(1_000)
    die(3, first=20)
    return plan


EXACT = (nothing_came_back, halted_by_its_trial, withdrawn)
ALL = (*EXACT, some_came_back_for_another_cause, ended_and_redriven_by_another)


@pytest.mark.parametrize("story", ALL)
def test_few_are_counted_exactly(story: Story, clock: Clock, operator: User, team_lead: User) -> None:
    plan = story(clock, operator, team_lead)
    assert told(plan, clock) == Count(true(plan, clock))
    assert true(plan, clock) > 0


@pytest.mark.parametrize("story", ALL)
def test_many_are_counted_by_counters_and_never_too_many(
    story: Story, clock: Clock, operator: User, team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latecomers, "LOOK", -1)
    plan = story(clock, operator, team_lead)
    found = told(plan, clock)
    assert found.exact is (story in EXACT)
    assert found.n == true(plan, clock) if found.exact else found.n <= true(plan, clock)


def test_so_many_in_one_minute_that_not_all_are_looked_at_are_said_to_be_more(
    clock: Clock, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(2)
    plan = ask(operator, SNACKS)
    clock.advance(1_000)
    die(4, first=100)
    monkeypatch.setattr(latecomers, "CAP", 3)
    assert told(plan, clock) == Count(3, exact=False)


def test_a_list_fixed_weeks_ago_is_counted_by_whole_hours(clock: Clock, operator: User, team_lead: User) -> None:
    die(3)
    plan = approved(operator, team_lead, Terms(1_000, canary=0))
    run(plan, clock, ticks_at_most=1)
    clock.advance(HOUR_MS)
    die(2, first=50)
    batches.stop(team_lead, plan.pk)
    clock.advance(20 * DAY_MS)
    assert told(plan, clock) == Count(2)


def test_it_costs_two_statements_at_most_and_reads_only_what_died_since(
    clock: Clock, operator: User, team_lead: User
) -> None:
    plan = halted_by_its_trial(clock, operator, team_lead)
    statements = []

    def listen(execute, sql, params, many, context):
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        told(plan, clock)
    asked = [(sql, params) for sql, params in statements if "plan_groups" in sql]
    assert len(asked) == 2
    with connection.cursor() as cursor:
        for sql, params in asked:
            if connection.vendor == "sqlite":
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
                ways = [row[3] for row in cursor.fetchall() if " j " in row[3]]
                assert ways
                assert all("jobs_dead_group" in way and "changed_at_ms>? AND changed_at_ms<?" in way for way in ways)
            else:
                cursor.execute("SET LOCAL enable_seqscan = off")  # a small table is read whole otherwise
                cursor.execute(f"EXPLAIN {sql}", params)
                plan_text = "\n".join(row[0] for row in cursor.fetchall())
                assert "jobs_dead_" in plan_text
                assert "Seq Scan on jobs" not in plan_text
