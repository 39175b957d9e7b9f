"""System checks of the app: what a start should complain about before an order is at stake."""

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import DatabaseError, connections


@checks.register(checks.Tags.database)
def triggers_stand(*, databases: Sequence[str] | None = None, **_kwargs: Any) -> list[checks.CheckMessage]:
    """Every trigger of the list stands (runs with `check --database default` and before `migrate`).

    A warning and no error: `migrate`, which puts them back, refuses to start while an error stands.
    """
    from queue_app.store import triggers

    found: list[checks.CheckMessage] = []
    for using in databases or ():
        try:
            if "jobs" not in connections[using].introspection.table_names():
                continue
            absent = triggers.missing(using)
        except DatabaseError:
            continue  # an unreachable database is reported by the command that needs it
        if absent:
            found.append(
                checks.Warning(
                    f"The database lacks {len(absent)} of its guards: {', '.join(absent[:5])}.",
                    hint="Run `manage.py migrate`: it puts them back.",
                    id="queue_app.W001",
                )
            )
    return found
