"""Transactions and the clock of the database: what differs between SQLite and PostgreSQL below every write.

SQLite: one writer at a time. Django's BEGIN IMMEDIATE takes the write lock; SQLite's own busy handler sleeps up to 100 ms
between looks, which makes a claim slow when the redriver is busy, so BEGIN is asked for in short random steps here and
the busy time-out of seconds serves COMMIT, which waits only for readers.
"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import OperationalError, connection, transaction

from queue_app import clock
from queue_app.policy.orders import MAX_INSTANT_MS

BEGIN_LIMIT_MS = 20_000
NAMES_PER_STATEMENT = 500  # a build of SQLite may take no more than 999 values in one statement


def is_postgresql() -> bool:
    """Whether the default database is PostgreSQL."""
    return connection.vendor == "postgresql"


def now_ms() -> int:
    """The instant that decides leases and due times: the database's clock on PostgreSQL, this machine's on SQLite."""
    if not is_postgresql():
        return clock.now_ms()
    with connection.cursor() as cursor:
        cursor.execute("SELECT snackops_now_ms()")
        return int(cursor.fetchone()[0])


def instant(given_ms: int | None) -> int:
    """The instant of a move: the caller's if one was given (ValueError unless it is a whole number up to the year 9999),
    else `now_ms`. SQLite would store what is no integer as it came."""
    if given_ms is None:
        return now_ms()
    if type(given_ms) is not int or not 0 <= given_ms <= MAX_INSTANT_MS:
        raise ValueError(f"now_ms must be a whole number of milliseconds from 0 to {MAX_INSTANT_MS:,}, or None.")
    return given_ms


@contextmanager
def write(*, limit_ms: int = BEGIN_LIMIT_MS) -> Iterator[None]:
    """One write transaction; inside another it is a savepoint. Raises OperationalError when the lock is not had in time.

    No network call and no slow client belongs inside.
    """
    with ExitStack() as stack:
        if connection.vendor == "sqlite" and not connection.in_atomic_block:
            _begin_patiently(stack, limit_ms)
        else:
            stack.enter_context(transaction.atomic())
        yield


def _begin_patiently(stack: ExitStack, limit_ms: int) -> None:
    connection.ensure_connection()
    usual_ms = int(connection.settings_dict["OPTIONS"].get("timeout", 20) * 1000)
    end_ms = clock.monotonic_ms() + limit_ms
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                stack.enter_context(transaction.atomic())
                return
            except OperationalError as error:
                if "locked" not in str(error) or clock.monotonic_ms() >= end_ms:
                    raise
                time.sleep(random.uniform(0.0003, 0.002))  # noqa: S311 - spreads the writers, hides nothing
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {usual_ms}")


def placeholders(count: int) -> str:
    """`%s, %s, ...` for an IN list of `count` values (at least one)."""
    return ", ".join(["%s"] * count)
