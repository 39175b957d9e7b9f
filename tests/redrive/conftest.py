"""More people for the stories of redrives."""

import pytest
from django.contrib.auth.models import Group, User

from queue_app.policy.rights import OPERATOR, TEAM_LEAD
from tests.conftest import PASSWORD


def person(name: str, *roles: str) -> User:
    """An account with these roles."""
    user = User.objects.create_user(name, password=PASSWORD)
    user.groups.add(*Group.objects.filter(name__in=roles))
    return user


@pytest.fixture
def other_lead(db: None) -> User:
    """Lea, a second team lead."""
    return person("lea", TEAM_LEAD)


@pytest.fixture
def both_roles(db: None) -> User:
    """Bo, operator and team lead in one."""
    return person("bo", OPERATOR, TEAM_LEAD)
