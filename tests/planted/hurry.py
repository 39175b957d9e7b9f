"""A plugin of pytest for the planted runs: no search for a smaller failing example, and the same luck each time."""

import hypothesis
import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """After tests/conftest.py has chosen its own profile."""
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("hurry", deadline=None, phases=phases, database=None, derandomize=True)
    hypothesis.settings.load_profile("hurry")
