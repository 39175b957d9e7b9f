"""A batch from its first tick to its end: numbers, reasons, nothing forced."""

import pytest

from queue_app.models import Redrive, RedriveOutcome
from queue_app.services import sealing
from tests.redrive.story import approved, die, run, work

pytestmark = pytest.mark.django_db


def test_a_small_batch_is_carried_out_whole(clock, operator, team_lead):
    die(50)
    plan = approved(operator, team_lead)
    assert plan.state == "approved"
    run(plan, clock)
    assert (plan.state, plan.planned, plan.redriven, plan.skipped) == ("ended", 50, 50, 0)
    assert Redrive.objects.count() == 50
    work()
    assert RedriveOutcome.objects.filter(outcome="done").count() == 50
    assert sealing.seal(plan.pk) is False
    plan.refresh_from_db()
    assert plan.sealed_at_ms
