"""The engine's own statements, carried out straight on the driver: each job costs a few of them.

A cursor of Django's costs 30 us a statement on SQLite, most of what a job costs besides its commit; there is no need of
it inside a transaction that is open anyway. On PostgreSQL the driver prepares the statement, so that it is planned a few
times and not for each batch; the conditions of the partial indexes are written out in the text and never values, so the
plan that serves all values uses them as well. Whoever listens to Django's cursors (tests, debugging) still hears all.
"""

import functools
from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections


def fetch(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Carry out one statement inside a write transaction and give its rows. The errors are those of `django.db`."""
    here = connections[DEFAULT_DB_ALIAS]  # itself: each attribute of the thread's proxy would cost a microsecond
    if here.execute_wrappers or here.queries_logged:
        with here.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall()
    with here.wrap_database_errors:
        if here.vendor == "postgresql":
            return _on_postgresql(here.connection, sql, values)
        return here.connection.execute(_with_question_marks(sql), values).fetchall()


def _on_postgresql(session: Any, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    from psycopg import Cursor

    with Cursor(session) as cursor:
        return cursor.execute(sql, values, prepare=True).fetchall()


@functools.cache
def _with_question_marks(sql: str) -> str:
    return sql.replace("%s", "?")
