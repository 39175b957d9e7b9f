"""The rules that the database itself keeps, from one list (DESIGN section 3).

Django's table remake on SQLite silently drops all triggers of that table, so `create_all` runs after every migration,
and a system check and `/readyz` call `missing`. Tests lift the guards around a flush with `drop_all`.
"""

from collections.abc import Iterable, Mapping

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.store import triggers_postgresql, triggers_sqlite

# table -> the keys by which INSERT OR REPLACE could overwrite a row
INSERT_ONLY: dict[str, tuple[tuple[str, ...], ...]] = {
    "failures": (("id",), ("job_id", "token")),
    "late_finishes": (("id",), ("job_id", "token")),
    "unblocks": (("id",), ("job_id", "token")),
    "tombstones": (("job_id",),),
    "redrives": (("id",), ("job_id", "token"), ("link",)),
    "redrive_outcomes": (("id",), ("job_id", "token")),
    "investigations": (("id",),),
    "investigated_groups": (("id",), ("investigation_id", "queue", "reason", "code")),
    "approvals": (("id",), ("plan_id", "round")),
    "audit": (("seq",), ("link",)),
}
GUARDED = (*INSERT_ONLY, "jobs", "plan_items", "plans")


def _statements(connection: BaseDatabaseWrapper, tables: Iterable[str]) -> dict[str, str]:
    build = triggers_postgresql.statements if connection.vendor == "postgresql" else triggers_sqlite.statements
    return build(INSERT_ONLY, frozenset(tables))


def _tables(connection: BaseDatabaseWrapper) -> set[str]:
    return set(connection.introspection.table_names())


def create_all(using: str = "default") -> None:
    """Make or renew every trigger of the tables that exist. Idempotent; safe while workers run."""
    connection = connections[using]
    tables = _tables(connection)
    if "jobs" not in tables:
        return
    wanted = _statements(connection, tables)
    with transaction.atomic(using), connection.cursor() as cursor:  # no moment without a guard, and one commit
        present = _present(connection)
        if connection.vendor == "postgresql":
            for statement in triggers_postgresql.FUNCTIONS:
                cursor.execute(statement)
        for name in _outdated(connection, present, wanted):
            drop(connection, name)
        for name, sql in wanted.items():
            if present.get(name) != _comparable(connection, name, sql):
                drop(connection, name)
                cursor.execute(sql)


def drop(connection: BaseDatabaseWrapper, name: str) -> None:
    """Drop one trigger if it is there."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {triggers_postgresql.table_of(name)}")
        else:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")


def drop_all(using: str = "default") -> None:
    """Lift every rule: only for tests that must empty the tables."""
    connection = connections[using]
    with transaction.atomic(using):
        for name in _present(connection):
            drop(connection, name)


def missing(using: str = "default") -> list[str]:
    """Names of triggers that are absent, differ from the list or are not in it, sorted; empty when all stand."""
    connection = connections[using]
    wanted = _statements(connection, _tables(connection))
    present = _present(connection)
    absent = [name for name, sql in wanted.items() if present.get(name) != _comparable(connection, name, sql)]
    return sorted(absent + _outdated(connection, present, wanted))


def _outdated(connection: BaseDatabaseWrapper, present: Iterable[str], wanted: Mapping[str, str]) -> list[str]:
    """Triggers of an earlier release: a counter that is kept twice is wrong. On SQLite no release had others."""
    return [name for name in present if name not in wanted] if connection.vendor == "postgresql" else []


def _comparable(connection: BaseDatabaseWrapper, name: str, sql: str) -> str:
    return triggers_postgresql.comparable(name) if connection.vendor == "postgresql" else sql


def _present(connection: BaseDatabaseWrapper) -> dict[str, str]:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            return triggers_postgresql.present(cursor)
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return dict(cursor.fetchall())
