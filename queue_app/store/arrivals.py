"""Accepting: which of these ids are known, places in the order of acceptance, and the new rows of `jobs`.

Differs because PostgreSQL takes many rows fastest by COPY, which knows no "unless it exists": it runs in a savepoint, and
when another host has accepted one of the ids a moment before, the guarded insert takes its place.
"""

import json
from collections.abc import Sequence
from itertools import batched
from operator import itemgetter
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction

from queue_app.policy.bodies import body_digest
from queue_app.store.database import is_postgresql
from queue_app.store.given import Given
from queue_app.store.statements import fetch

ROWS_PER_STATEMENT = 1_000  # an order's body may have 16 KiB
ROWS_BY_COPY = 100  # from so many on COPY with its savepoint is the faster way


def known_bodies(ids: Sequence[str]) -> dict[str, str]:
    """Body digest by id, of the jobs that exist or that housekeeping removed.

    The jobs first: what another host removes between the two looks has its tombstone by then.
    """
    if not ids:
        return {}
    # one text: the driver takes longer over a list of ten thousand than the database does; no id holds a comma
    named = [",".join(sorted(ids))] if is_postgresql() else [json.dumps(sorted(ids))]
    here = "= ANY(string_to_array(%s, ','))" if is_postgresql() else "IN (SELECT value FROM json_each(%s))"
    bodies = fetch(f"SELECT id, queue, quantity, payload, order_key FROM jobs WHERE id {here}", named)
    known = {job_id: body_digest(*body) for job_id, *body in bodies}
    return known | dict(fetch(f"SELECT job_id, body_digest FROM tombstones WHERE job_id {here}", named))


def next_seqs(count: int) -> list[int]:
    """Reserve `count` places in the order of acceptance, ascending. Other hosts may draw places in between."""
    if is_postgresql():
        return sorted(row[0] for row in fetch("SELECT nextval('jobs_seq') FROM generate_series(1, %s)", [count]))
    ((last,),) = fetch("UPDATE heads SET seq = seq + %s WHERE name = 'jobs' RETURNING seq", [count])
    return list(range(last - count + 1, last + 1))


class Arrival(NamedTuple):
    """An order to be placed; `deadline` is an instant (ms)."""

    id: str
    queue: str
    order_key: str
    quantity: int
    payload: str
    max_attempts: int
    deadline: int


_COLUMNS = (
    "id, seq, queue, order_key, quantity, payload, max_attempts, deadline, state, reason, code, attempts, token, "
    "available_at, created_at_ms, changed_at_ms, redriven, waited_ms"
)
_ARRIVALS = Given(
    "id text, seq bigint, queue text, order_key text, quantity integer, payload text, max_attempts integer, "
    "deadline bigint"
)
_Row = tuple[str, int, str, str, int, str, int, int]


def insert(arrivals: Sequence[Arrival], now_ms: int) -> set[str]:
    """Place orders as pending, in the order given. Returns the ids that were placed.

    The caller has looked which ids are new. On PostgreSQL another host may have been faster: then the id is passed over.
    In id order, so that two hosts that accept the same ids in different orders wait for each other without a deadlock.
    """
    seqs = next_seqs(len(arrivals))
    rows: list[_Row] = [(one[0], seq, *one[1:]) for one, seq in zip(arrivals, seqs, strict=True)]
    rows.sort(key=itemgetter(0))
    if is_postgresql() and len(rows) >= ROWS_BY_COPY and _copied(rows, now_ms):
        return {row[0] for row in rows}
    sql = (
        f"INSERT INTO jobs ({_COLUMNS}) SELECT g.id, g.seq, g.queue, g.order_key, g.quantity, g.payload, "
        "g.max_attempts, g.deadline, 'pending', '', '', 0, 0, %s, %s, %s, 0, 0 "
        f"FROM {_ARRIVALS.table}"
        + (" ORDER BY g.id ON CONFLICT (id) DO NOTHING RETURNING id" if is_postgresql() else "")
    )
    placed: set[str] = set()
    for some in batched(rows, ROWS_PER_STATEMENT, strict=False):
        found = fetch(sql, [now_ms, now_ms, now_ms, *_ARRIVALS.values(some)])
        placed.update(row[0] for row in (found if is_postgresql() else some))
    return placed


def _copied(rows: Sequence[_Row], now_ms: int) -> bool:
    """Whether all rows are in; else none is, because one of the ids exists."""
    rest = f"\tpending\t\t\t0\t0\t{now_ms}\t{now_ms}\t{now_ms}\t0\t0\n"
    # Canonical text holds no control character, and ids, keys and names no backslash: only a payload needs care.
    lines = [
        f"{job_id}\t{seq}\t{queue}\t{key}\t{quantity}\t{payload.replace('\\', '\\\\')}\t{tries}\t{deadline}{rest}"
        for job_id, seq, queue, key, quantity, payload, tries, deadline in rows
    ]
    try:
        with (
            transaction.atomic(),
            connection.cursor() as cursor,
            connection.wrap_database_errors,
            cursor.copy(f"COPY jobs ({_COLUMNS}) FROM STDIN") as copy,
        ):
            for some in batched(lines, ROWS_PER_STATEMENT, strict=False):
                copy.write("".join(some))
    except IntegrityError:
        return False
    return True
