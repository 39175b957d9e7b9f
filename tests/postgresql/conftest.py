"""Tests of what only PostgreSQL has: collected when the tests run on it (`python -m tests.pgserver pytest`)."""

from django.db import connection

from tests.backups.conftest import empty_file, file
from tests.postgresql.houses import new, old

__all__ = ["empty_file", "file", "new", "old"]

collect_ignore_glob = [] if connection.vendor == "postgresql" else ["test_*.py"]
