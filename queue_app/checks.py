"""System checks of the app: what a start should complain about before an order is at stake."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core import checks
from django.db import DatabaseError, connections

from queue_app import conf
from queue_app.policy.mounts import filesystem_of, shared_over_a_network

MOUNTS = Path("/proc/mounts")


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


@checks.register(checks.Tags.files)
def database_is_at_home(**_kwargs: Any) -> list[checks.CheckMessage]:
    """SQLite's file lies on a disk of this machine (runs at the start of every command)."""
    path = conf.sqlite_file()
    if path is None or not MOUNTS.exists():
        return []
    try:
        kind = filesystem_of(str(path.resolve()), MOUNTS.read_text(errors="replace"))
    except OSError:
        return []
    if not shared_over_a_network(kind):
        return []
    return [
        checks.Error(
            f"The database {path} lies on a network file system ({kind}), where SQLite's locks do not hold: "
            "two programs could write at once and damage it.",
            hint="Put the file on a disk of this machine, or use PostgreSQL (DATABASE_URL).",
            id="queue_app.E001",
        )
    ]
