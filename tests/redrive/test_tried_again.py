"""An order whose turn failed waits for another one, wherever on the list it stands: nobody before it is passed over."""

import pytest

from queue_app.models import PlanItem
from queue_app.policy.terms import Terms
from queue_app.services import batches, ticks
from tests.redrive.story import approve, approved, die, run, work

pytestmark = pytest.mark.django_db


def test_none_is_forgotten_before_one_of_an_earlier_trial_that_is_tried_again(clock, operator, team_lead):
    die(60, code="http_410")
    die(60, first=61, code="http_422")
    plan = approved(operator, team_lead, Terms(10_000, canary=2))
    ticks.begin(plan.pk)
    ticks.tick(plan.pk)  # the first of the trial; the second stands in the middle, and its turn fails
    assert PlanItem.objects.filter(canary=1, state="waiting").update(tries=1, at_ms=clock.now) == 1
    assert PlanItem.objects.get(tries=1).pos == 61
    batches.pause(operator, plan.pk)
    approve(team_lead, plan)  # a new round draws a trial of its own
    run(plan, clock)
    work("ok")
    run(plan, clock, ticks_at_most=500)
    assert (plan.state, plan.redriven, plan.skipped) == ("ended", 120, 0)
