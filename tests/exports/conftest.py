"""A browser of somebody who exports."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def browser(client: Client, as_user: Callable[[Client, User], Client], team_lead: User) -> Client:
    return as_user(client, team_lead)
