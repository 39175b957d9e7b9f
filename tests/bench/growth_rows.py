"""Millions of orders quickly: plain SQL without the guards, then the counters from the rows, as `counters rebuild` does."""

from collections.abc import Callable

from django.db import connection

from queue_app.services import counting
from queue_app.store import database, triggers

CHUNK = 200_000  # rows to a transaction
WEEK_MS = 604_800_000
GROUPS = (
    ("exhausted", "http_503"),
    ("exhausted", "http_503"),
    ("permanent", "http_422"),
    ("exhausted", "timeout_read"),
    ("permanent", "http_410"),
)

_SERIES = {
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT %s UNION ALL SELECT n + 1 FROM s WHERE n < %s)",
    "postgresql": "WITH s AS (SELECT generate_series(%s::bigint, %s::bigint) AS n)",
}
_ID = {"sqlite": "printf('o%%09d', n)", "postgresql": "'o' || lpad(n::text, 9, '0')"}


def _state(total: int, dead_every: int, pending: int) -> str:
    if dead_every == 1:
        return "'dead'"
    return f"CASE WHEN n > {total - pending} THEN 'pending' WHEN n %% {dead_every} = 0 THEN 'dead' ELSE 'done' END"


def _of_group(column: int) -> str:
    cases = " ".join(f"WHEN {place} THEN '{group[column]}'" for place, group in enumerate(GROUPS))
    return f"CASE n / 19 %% {len(GROUPS)} {cases} END"


def fill(
    total: int, *, now_ms: int, dead_every: int = 19, pending: int | None = None, told: Callable[[str], object]
) -> None:
    """`total` orders in the queue `snacks`: the newest twentieth waits, every 19th of the others is dead (1: all), the rest
    is done. Each died or ended within the last week, oldest first, and each dead one has its failure."""
    vendor = connection.vendor
    waiting = (0 if dead_every == 1 else total // 20) if pending is None else pending
    state = _state(total, dead_every, waiting)
    at = (
        f"{now_ms - WEEK_MS} + n * {WEEK_MS} / {total}"
        if vendor == "sqlite"
        else f"{now_ms - WEEK_MS} + (n * {WEEK_MS} / {total})"
    )
    triggers.drop_all()
    with connection.cursor() as cursor:
        if vendor == "sqlite":
            cursor.execute("PRAGMA synchronous = OFF")
            cursor.execute("PRAGMA cache_size = -400000")
        else:
            database.take_time()  # neither the server nor this client gives up: laying is no work of the product
        for first in range(1, total + 1, CHUNK):
            last = min(total, first + CHUNK - 1)
            cursor.execute(
                f"INSERT INTO jobs (id, seq, queue, order_key, quantity, payload, state, reason, code, attempts, "
                f"max_attempts, token, available_at, deadline, created_at_ms, changed_at_ms, redriven, waited_ms) "
                f"{_SERIES[vendor]} SELECT {_ID[vendor]}, n, 'snacks', '', 1 + n %% 9, '{{}}', st, "
                f"CASE st WHEN 'dead' THEN {_of_group(0)} ELSE '' END, CASE st WHEN 'dead' THEN {_of_group(1)} ELSE '' END, "
                f"CASE st WHEN 'pending' THEN 0 ELSE 1 END, 3, CASE st WHEN 'pending' THEN 0 ELSE 1 END, {at}, "
                f"{now_ms} + 864000000, {at} - 1000, {at}, 0, 0 FROM (SELECT n, {state} AS st FROM s) AS x",
                [first, last],
            )
            told(f"{last:,} of {total:,} orders")
        cursor.execute(
            "INSERT INTO failures (job_id, token, attempt, at_ms, outcome, code, worker) "
            "SELECT id, 1, 1, changed_at_ms, 'permanent', code, 'w' FROM jobs WHERE state = 'dead'"
        )
        if vendor == "sqlite":
            cursor.execute("UPDATE heads SET seq = %s WHERE name = 'jobs'", [total])
            cursor.execute("PRAGMA synchronous = FULL")
            cursor.execute("PRAGMA cache_size = -2000")
        else:
            cursor.execute("SELECT setval('jobs_seq', %s)", [total])
    triggers.create_all()
    counting.rebuild(wait=lambda _seconds: None)
    if vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
