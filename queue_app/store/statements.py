"""The engine's own statements, carried out straight on the driver: each job costs a few of them.

A cursor of Django's costs 30 us a statement on SQLite, most of what a job costs besides its commit; there is no need of
it inside a transaction that is open anyway. On PostgreSQL statements that do not need each other's answers go together
(`volleys.py`), and each is prepared, so that it is planned a few times and not for each batch; the conditions of the
partial indexes are written out in the text and never values, so the plan that serves all values uses them as well.
Whoever listens to Django's cursors (tests, debugging) still hears all, one by one.
"""

import functools
from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

Statement = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]


def fetch(sql: str, values: Sequence[Any]) -> Rows:
    """Carry out one statement inside a write transaction and give its rows. The errors are those of `django.db`."""
    return fetch_all([(sql, values)])[0]


def fetch_all(statements: Sequence[Statement], *, last: bool = False) -> list[Rows]:
    """Carry out statements in their order, each with its rows; the first that fails ends them all.

    `last`: nothing of this transaction follows but its commit, which may then travel with them. An error may be that of
    the commit, as it may be at the end of the transaction.
    """
    here = connections[DEFAULT_DB_ALIAS]  # itself: each attribute of the thread's proxy would cost a microsecond
    if here.execute_wrappers or here.queries_logged:
        return [_heard(here, sql, values) for sql, values in statements]
    with here.wrap_database_errors:
        if here.vendor == "postgresql":
            from queue_app.store import volleys

            return volleys.fire(here.connection, statements, commit=last and len(here.atomic_blocks) == 1)
        execute = here.connection.execute
        return [execute(_with_question_marks(sql), values).fetchall() for sql, values in statements]


def _heard(here: Any, sql: str, values: Sequence[Any]) -> Rows:
    with here.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall()) if cursor.description else []


@functools.cache
def _with_question_marks(sql: str) -> str:
    return sql.replace("%s", "?")
