"""A record as people make it: a redrive asked for, approved, carried out and ended, and some refused attempts."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from queue_app.models import Plan
from queue_app.policy.errors import NotAllowed
from queue_app.services import approvals, looks, sealing, ticks
from tests.conftest import PASSWORD, Clock
from tests.redrive import story


@pytest.fixture
def redrive(operator: User, team_lead: User, clock: Clock) -> Plan:
    """Three orders died, were asked for by Oda, approved by Tom, redriven, delivered; the outcomes are sealed."""
    story.die(3)
    clock.advance(1_000)
    looks.record(operator, "job", "INC-0", "cause_found", job_id="o1", comment="the receiver was down")
    plan = story.approved(operator, team_lead)
    story.run(plan, clock)
    story.work()
    ticks.tick(plan.pk)
    while sealing.seal(plan.pk):
        pass
    plan.refresh_from_db()
    return plan


@pytest.fixture
def refusal(operator: User, redrive: Plan) -> str:
    """Oda tried to approve; gives the sentence of the refusal."""
    proof = approvals.confirm_identity(operator, PASSWORD)
    with pytest.raises(NotAllowed) as refused:
        approvals.approve(operator, redrive.pk, round=2, digest=redrive.digest, note="X-1", proof=proof, typed="")
    return str(refused.value)


@pytest.fixture
def read(client: Client, as_user: Callable[[Client, User], Client]) -> Callable[..., Client]:
    """`read(user)`: a browser of this person."""
    return lambda user: as_user(client, user)
