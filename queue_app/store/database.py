"""Transactions and the clock of the database: what differs between SQLite and PostgreSQL below every write.

SQLite: one writer at a time. Django's BEGIN IMMEDIATE takes the write lock; SQLite's own busy handler sleeps up to 100 ms
between looks, which makes a claim slow when the redriver is busy, so BEGIN is asked for in short random steps here and
the busy time-out of seconds serves COMMIT, which waits only for readers. SQLite wakes nobody and keeps no order of who
came first: whoever writes back to back would find its own lock free each time while the others sleep. So one that got
the lock at once steps back for a moment after its commit, when others are about (measured without: the loser gets 1 %
and waits up to 3.3 s). A process alone pays nothing but a look around every now and then.
"""

import functools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import structlog
from django.db import OperationalError, connection, connections, transaction

from queue_app import clock
from queue_app.policy.orders import MAX_INSTANT_MS

log = structlog.get_logger(__name__)

BEGIN_LIMIT_MS = 20_000
TRIES = 5  # of a service whose transaction PostgreSQL gave up for another's sake
TRY_AGAIN_S = 0.01  # before the second try; doubled for each one after it, and shortened by chance
# PostgreSQL's words for "this transaction has not happened, begin it anew": serialization_failure, deadlock_detected
CONFLICTS = frozenset({"40001", "40P01"})
LOOK_AGAIN_S = (0.0003, 0.001)  # between tries at a lock that another holds: shorter than most steps back
STEP_BACK_S = (0.0005, 0.0015)
NEIGHBOURS_MS = 100  # another's commit says for so long that somebody may be waiting
LOOK_AROUND_MS = 200  # one who writes alone steps back so often, in case somebody waits who never got a turn


@functools.cache
def is_postgresql() -> bool:
    """Whether the default database is PostgreSQL: the same as long as the process lives, and asked at every statement."""
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
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    with ExitStack() as stack:
        at_once = _begin_patiently(stack, limit_ms)
        steps_back = _neighbours.steps_back(at_once)
        yield
    if steps_back:  # after the commit, the lock is free now
        time.sleep(random.uniform(*STEP_BACK_S))  # noqa: S311 - spreads the writers, hides nothing


def _begin_patiently(stack: ExitStack, limit_ms: int) -> bool:
    """Take the write lock; whether it was free at the first try."""
    connection.ensure_connection()
    plain = connection.connection  # a PRAGMA costs 2 us here and 30 us through a cursor of Django's, at each write
    usual_ms = int(connection.settings_dict["OPTIONS"].get("timeout", 20) * 1000)
    end_ms = clock.monotonic_ms() + limit_ms
    at_once = True
    plain.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                stack.enter_context(transaction.atomic())
                return at_once
            except OperationalError as error:
                if "locked" not in str(error) or clock.monotonic_ms() >= end_ms:
                    raise
                at_once = False
                time.sleep(random.uniform(*LOOK_AGAIN_S))  # noqa: S311 - spreads the writers, hides nothing
    finally:
        plain.execute(f"PRAGMA busy_timeout = {usual_ms}")


# --- turns between the writers of one SQLite file -------------------------------------------------------------------


class _Neighbours(threading.local):
    """What this thread's connection knows of the file's other writers. Instants on the monotonic clock, ms."""

    version = -1  # of the data, which every commit of another connection changes
    seen_ms = -NEIGHBOURS_MS  # when another was last seen to have committed

    def __init__(self) -> None:
        self.stepped_ms = clock.monotonic_ms()  # when this one last stepped back

    def steps_back(self, at_once: bool) -> bool:
        """Whether the transaction that has just begun is to be followed by a pause. Holds the write lock: cheap."""
        now_ms = clock.monotonic_ms()
        with connection.wrap_database_errors:
            (version,) = connection.connection.execute("PRAGMA data_version").fetchone()
        if not at_once or (version != self.version and self.version >= 0):
            self.seen_ms = now_ms
        self.version = version
        others = now_ms - self.seen_ms < NEIGHBOURS_MS
        # One who never waited for the lock may have kept it from everybody: then nobody's commit could be seen.
        due = at_once and (others or now_ms - self.stepped_ms >= LOOK_AROUND_MS)
        if due or not at_once:
            self.stepped_ms = now_ms
        return due


_neighbours = _Neighbours()


def take_time(using: str = "default") -> None:
    """Let the statements of this connection run as long as they need from now on, for a command that a person waits for.

    The wait for a lock stays bounded: whoever needs the whole table must not hold up the workers behind it.
    """
    wrapper = connections[using]
    if wrapper.vendor != "postgresql":
        return
    with wrapper.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    wrapper.connection.answer_s = None


def take_the_usual_time(using: str = "default") -> None:
    """The end of `take_time`: the connection may serve others afterwards."""
    wrapper = connections[using]
    if wrapper.vendor != "postgresql":
        return
    with wrapper.cursor() as cursor:
        cursor.execute("RESET statement_timeout")
    vars(wrapper.connection).pop("answer_s", None)


# --- once more, from the top ----------------------------------------------------------------------------------------


def retried[**P, R](service: Callable[P, R]) -> Callable[P, R]:
    """For a service that owns exactly one transaction: a conflict with another one makes it begin anew, 5 times in all.

    Whole and from the top, because what it had read may be otherwise by now. Inside another's transaction it passes
    through: only the owner can begin anew. An iterator among its arguments is read whole first, as it gives its values
    only once. A lost connection is no conflict: nobody knows what became of a COMMIT, so the caller has to look (DESIGN
    section 10).
    """

    @functools.wraps(service)
    def again_if_needed(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.in_atomic_block:
            return service(*args, **kwargs)
        values: Any = [list(value) if isinstance(value, Iterator) else value for value in args]
        for tried in range(1, TRIES):
            try:
                return service(*values, **kwargs)
            except OperationalError as error:
                if not is_conflict(error):
                    raise
                log.info("begun_anew", service=service.__name__, tried=tried)
            time.sleep(random.uniform(0.5, 1.0) * TRY_AGAIN_S * 2 ** (tried - 1))  # noqa: S311 - spreads the rivals
        return service(*values, **kwargs)

    return again_if_needed


def is_conflict(error: Exception) -> bool:
    """Whether PostgreSQL rolled the transaction back because of another one: trying again may well succeed."""
    return getattr(error.__cause__, "sqlstate", None) in CONFLICTS


def placeholders(count: int) -> str:
    """`%s, %s, ...` for an IN list of `count` values (at least one)."""
    return ", ".join(["%s"] * count)
