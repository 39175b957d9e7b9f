"""Tests of what only PostgreSQL has: collected when the tests run on it (`python -m tests.pgserver pytest`)."""

from django.db import connection

collect_ignore_glob = [] if connection.vendor == "postgresql" else ["test_*.py"]
