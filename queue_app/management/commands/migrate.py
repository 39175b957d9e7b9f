"""`manage.py migrate`: Django's own, and patient beside workers that never rest."""

from contextlib import nullcontext
from typing import Any

from django.core.management.commands import migrate
from django.db import connections


class Command(migrate.Command):
    """An upgrade does not ask anybody to stop working (docs/operations.md)."""

    def handle(self, *args: Any, **options: Any) -> None:
        """As Django's."""
        patience = getattr(connections[options["database"]], "patience", nullcontext)
        with patience():  # of SQLite; PostgreSQL queues whoever waits
            super().handle(*args, **options)
