"""Browsers of the three people, and a quarantine with a past."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.reads.conftest import mixed

__all__ = ["mixed"]


@pytest.fixture
def console(operator: User) -> Client:
    """The operator's browser."""
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture
def auditor_console(auditor: User) -> Client:
    """The auditor's browser."""
    client = Client()
    client.force_login(auditor)
    return client
