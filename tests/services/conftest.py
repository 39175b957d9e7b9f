"""Three people and what stands, for the tables of what the record tells."""

import pytest
from django.contrib.auth.models import User

from tests.conftest import Clock
from tests.services.told import World


@pytest.fixture
def world(operator: User, team_lead: User, auditor: User, clock: Clock) -> World:
    """Oda, Tom and Ada; nothing stands yet."""
    return World(operator, team_lead, auditor, clock)
