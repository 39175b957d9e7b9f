"""How a connection to PostgreSQL is made: a bounded pool, and a bound on every wait, each with its reason.

What may end a wait, from the inside out: a lock that somebody holds (lock_timeout), a statement that runs too long
(statement_timeout), a client that fell asleep inside a transaction (idle_in_transaction_session_timeout), a network that
has gone silent (TCP), and a peer that takes everything and never answers (`AnsweredConnection`). The handbook page
`queue_app/docs/postgresql.md` tells what each means for people.
"""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool

CONNECT_S = 5  # a host that is gone must not hold a page longer than a person waits
LOCK_MS = (
    10_000  # the longest lock that is held on purpose is a tick of 20 ms: whoever waits longer, waits for the dead
)
ASLEEP_MS = 20_000  # a worker that was frozen inside a transaction holds its rows: the server ends it, others go on
SILENT_MS = 20_000  # sent bytes that nobody took: the network is gone, whatever the kernel's default of 15 minutes says
POOL_WAIT_S = 5  # for a free connection; then pages say 503 and workers step back
POOL_IDLE_S = 300


class AnsweredConnection(psycopg.Connection[Any]):
    """A connection that gives up on a peer that takes a statement and never answers (a frozen server, a stuck proxy).

    TCP does not help there: the other kernel goes on acknowledging. What became of the statement is unknown then, as
    after any lost connection. `answer_s` None waits for ever: for statements that may take long, such as a migration's.
    """

    answer_s: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """psycopg's way of waiting for the server, with our bound where it has none."""
        try:
            return super().wait(gen, interval, self.answer_s if timeout is None else timeout)
        except errors._WaitTimeout:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError("the server gave no answer in time: connection closed") from None


def check(session: Any) -> None:
    """Ask a pooled connection whether it lives. One that does not is seldom alone (a restart ends all of them): the idle
    ones go with it. Else the pool would find them out one by one, with a growing pause after each, and nobody waits so
    long for a page."""
    try:
        ConnectionPool.check_connection(session)
    except psycopg.Error:
        session._pool.drain()
        raise


def settings(config: Mapping[str, Any], *, statement_s: int, pool_size: int) -> dict[str, Any]:
    """Django's dict for one database, with the options of `DATABASE_URL` itself standing above ours."""
    bounded = type("BoundedConnection", (AnsweredConnection,), {"answer_s": statement_s + max(1, statement_s // 5)})
    limits = {
        "statement_timeout": statement_s * 1_000,  # no page and no move needs as long: something is wrong, say so
        "lock_timeout": min(LOCK_MS, statement_s * 1_000),
        "idle_in_transaction_session_timeout": ASLEEP_MS,
        # Left to itself the server plans a statement that takes lists anew each time, as it guesses ten rows for a list that
        # it does not see: a third of what a turn of one job cost it. Only prepared statements and functions notice.
        "plan_cache_mode": "force_generic_plan",
        # To start two helpers costs the server 5 to 12 ms; what a page asks at ten million orders takes it 1 without them.
        "max_parallel_workers_per_gather": 0,
    }
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_S,
        "keepalives": 1,
        "keepalives_idle": 10,  # an idle connection whose host is gone is found within half a minute
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": SILENT_MS,
        "application_name": "snackops",
        # Django's own cursors bind values by the client and prepare nothing; the engine prepares its statements itself
        # (store/volleys.py). They write the conditions of the partial indexes out, so a plan for all values uses them, too.
        "prepare_threshold": None,
        "server_side_binding": False,
    } | dict(config.get("OPTIONS") or {})
    given = options.get("options", "")
    options["options"] = " ".join([*(f"-c {name}={value}" for name, value in limits.items()), given]).strip()
    # No connection is kept for idle hosts; a thread that works keeps its own, so checks cost a page one round trip only.
    options["pool"] = {
        "min_size": 0,
        "max_size": pool_size,
        "timeout": POOL_WAIT_S,
        "max_idle": POOL_IDLE_S,
        "connection_class": bounded,
        "check": check,
        "name": "snackops",
    }
    return {**config, "OPTIONS": options, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}
