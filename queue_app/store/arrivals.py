"""Accepting: which of these ids are known, places in the order of acceptance, and the new rows of `jobs`."""

from collections.abc import Sequence
from itertools import batched

from django.db import connection

from queue_app.policy.orders import Order
from queue_app.store.database import is_postgresql
from queue_app.store.given import Given

ROWS_PER_STATEMENT = 1_000  # an order's body may have 16 KiB


def next_seqs(count: int) -> list[int]:
    """Reserve `count` places in the order of acceptance, ascending. Other hosts may draw places in between."""
    with connection.cursor() as cursor:
        if is_postgresql():
            cursor.execute("SELECT nextval('jobs_seq') FROM generate_series(1, %s)", [count])
            return sorted(row[0] for row in cursor.fetchall())
        cursor.execute("UPDATE heads SET seq = seq + %s WHERE name = 'jobs' RETURNING seq", [count])
        last = int(cursor.fetchone()[0])
    return list(range(last - count + 1, last + 1))


_ORDERS = Given(
    "id text, seq bigint, queue text, order_key text, quantity integer, payload text, max_attempts integer, "
    "deadline bigint"
)


def insert(orders: Sequence[Order], seqs: Sequence[int], limits: Sequence[tuple[int, int]], now_ms: int) -> set[str]:
    """Insert orders as pending; `limits` are (max_attempts, deadline). Returns the ids that were placed.

    The caller has looked which ids are new. On PostgreSQL another host may have been faster: then the id is passed over.
    In id order, so that two hosts that accept the same ids in different orders wait for each other without a deadlock.
    """
    rows = sorted(
        (order.id, seq, order.queue, order.order_key, order.quantity, order.payload, max_attempts, deadline)
        for order, seq, (max_attempts, deadline) in zip(orders, seqs, limits, strict=True)
    )
    sql = (
        "INSERT INTO jobs (id, seq, queue, order_key, quantity, payload, state, reason, code, attempts, max_attempts, "
        "token, available_at, deadline, created_at_ms, changed_at_ms, redriven, waited_ms) "
        "SELECT g.id, g.seq, g.queue, g.order_key, g.quantity, g.payload, 'pending', '', '', 0, g.max_attempts, 0, "
        f"%s, g.deadline, %s, %s, 0, 0 FROM {_ORDERS.table}"
        + (" ON CONFLICT (id) DO NOTHING RETURNING id" if is_postgresql() else "")
    )
    placed: set[str] = set()
    with connection.cursor() as cursor:
        for some in batched(rows, ROWS_PER_STATEMENT, strict=False):
            cursor.execute(sql, [now_ms, now_ms, now_ms, *_ORDERS.values(some)])
            placed.update([row[0] for row in cursor.fetchall()] if is_postgresql() else [row[0] for row in some])
    return placed
