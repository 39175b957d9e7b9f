"""An SQLite file of a test's own, whatever the tests run on, and a process whose disk can be made sick."""

from collections.abc import Iterator

import pytest

from tests.backups.conftest import empty_file, file
from tests.faults.patient import Patient

__all__ = ["empty_file", "file"]


@pytest.fixture(scope="session")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """A process whose children make moves on the file that they are given."""
    made = Patient(tmp_path_factory.mktemp("patient"))
    yield made
    made.close()
