"""What the database alone can do with the product's own statements: no Django, no rules, no checks.

The texts are the product's: heard while it carries out one turn. `least` is the shortest SQL that could claim and finish
at all; it keeps no evidence, asks no policy, and is below what any correct queue of this kind can do.
"""

import json
import time
from collections.abc import Callable
from typing import Any

Turn = Callable[[list[Any], int], list[Any]]

LEASE_MS = 3_600_000  # longer than any run: what a turn leaves leased must not be taken again beyond its attempts


class Driver:
    """The raw driver with a connection of its own, set as the product sets its own."""

    def __init__(self) -> None:
        from django.db import connection

        connection.ensure_connection()
        self.postgresql = connection.vendor == "postgresql"
        if self.postgresql:
            import psycopg

            config = connection.settings_dict
            self._session: Any = psycopg.connect(
                host=config["HOST"], port=config["PORT"], user=config["USER"], dbname=config["NAME"], autocommit=True,
                options=config["OPTIONS"]["options"],
            )  # fmt: skip
            self._session.prepare_threshold = 0
        else:
            import sqlite3

            config = connection.settings_dict
            self._session = sqlite3.connect(config["NAME"], isolation_level=None, timeout=20)
            for pragma in config["OPTIONS"]["init_command"].split(";"):
                self._session.execute(pragma)
            self._session.execute("PRAGMA foreign_keys = ON")

    def rows(self, sql: str, values: list[Any]) -> list[Any]:
        """One statement and its rows."""
        if self.postgresql:
            return list(self._session.execute(sql, values).fetchall())
        return list(self._session.execute(sql.replace("%s", "?"), values).fetchall())

    def volley(
        self, statements: list[tuple[str, list[Any]]], *, first: bool = False, last: bool = False
    ) -> list[list[Any]]:
        """Statements and their rows, with the transaction's begin or end: on PostgreSQL in one round trip."""
        if not self.postgresql:
            if first:
                self.begin()
            answers = [self.rows(*statement) for statement in statements]
            if last:
                self.commit()
            return answers
        with self._session.pipeline():
            if first:
                self.begin()
            cursors = [self._session.execute(*statement) for statement in statements]
            if last:
                self.commit()
        return [list(cursor.fetchall()) for cursor in cursors]

    def begin(self) -> None:
        """A write transaction."""
        self._session.execute("BEGIN" if self.postgresql else "BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Durable."""
        self._session.execute("COMMIT")

    def load(self, rows: list[tuple[Any, ...]]) -> None:
        """Rows of `jobs` (id, seq, deadline, now), sorted by id, the fastest way that the driver has, in one transaction."""
        columns = (
            "id, seq, queue, order_key, quantity, payload, state, reason, code, attempts, max_attempts, token, "
            "available_at, deadline, created_at_ms, changed_at_ms, redriven, waited_ms"
        )
        self.begin()
        if self.postgresql:
            with self._session.cursor() as cursor, cursor.copy(f"COPY jobs ({columns}) FROM STDIN") as copy:
                copy.write(
                    "".join(
                        f"{key}\t{seq}\tsnacks\t\t1\t{{}}\tpending\t\t\t0\t3\t0\t{now}\t{until}\t{now}\t{now}\t0\t0\n"
                        for key, seq, until, now in rows
                    )
                )
        else:  # one statement for many rows: half of what executemany takes on a table with triggers
            for first in range(0, len(rows), 1_000):
                self._session.execute(
                    f"INSERT INTO jobs ({columns}) SELECT value ->> 0, value ->> 1, 'snacks', '', 1, '{{}}', 'pending', '', "
                    "'', 0, 3, 0, value ->> 3, value ->> 2, value ->> 3, value ->> 3, 0, 0 FROM json_each(?)",
                    [json.dumps(rows[first : first + 1_000])],
                )
        self.commit()

    def seqs(self, count: int) -> list[int]:
        """Places in the order of acceptance."""
        if self.postgresql:
            return [row[0] for row in self.rows("SELECT nextval('jobs_seq') FROM generate_series(1, %s)", [count])]
        (last,) = self.rows("UPDATE heads SET seq = seq + %s WHERE name = 'jobs' RETURNING seq", [count])
        return list(range(last[0] - count + 1, last[0] + 1))


def heard(turn: Callable[[], object]) -> list[str]:
    """The statements of the product while it does something, without BEGIN and COMMIT."""
    from django.db import connection

    texts: list[str] = []

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        texts.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        turn()
    return [text for text in texts if text.split()[0] in ("SELECT", "UPDATE", "INSERT", "WITH")]


def same(driver: Driver) -> Turn:
    """The product's own statements of one shared transaction, with values made by hand, in as few round trips."""
    from queue_app.services import queue
    from queue_app.store.given import Given

    queue.enqueue_many([{"id": f"h{time.time_ns()}-{n}", "quantity": 1} for n in range(2)])
    (lease,) = queue.claim("hear")
    texts = heard(lambda: queue.finish_and_claim([queue.Result(lease.id, lease.token, "ok")], "hear"))
    standing, hold, due, move = texts
    given = Given.values

    def turn(before: list[Any], limit: int) -> list[Any]:
        now = int(time.time() * 1000)
        asked: list[tuple[str, list[Any]]] = [(standing, ["snacks"])]
        if before:
            asked.append((hold, given([(row[0],) for row in before])))
        asked.append((due, ["snacks", limit] if driver.postgresql else ["snacks", now, now, limit]))
        found = driver.volley(asked, first=True)[-1]
        now = found[0][-1] if found and driver.postgresql else now
        rows = [(row[0], "leased", row[10] + 1, 0) for row in before]
        rows += [(row[0], row[5], row[10], 1) for row in found]
        driver.volley([(move, ["raw", now + LEASE_MS, now, *given(rows)])] if rows else [], last=True)
        return found

    return turn


def least(driver: Driver) -> Turn:
    """Two statements a turn."""
    skip = " FOR UPDATE SKIP LOCKED" if driver.postgresql else ""
    take = (
        "UPDATE jobs SET state = 'leased', owner = 'raw', lease_until = %s, attempts = attempts + 1, token = token + 1, "
        "changed_at_ms = %s WHERE id IN (SELECT id FROM jobs WHERE queue = 'snacks' AND state IN ('pending', 'leased') "
        "AND available_at <= %s AND (state = 'pending' OR lease_until <= %s) ORDER BY available_at, seq LIMIT %s"
        f"{skip}) RETURNING id, token, payload"
    )
    from queue_app.store.given import Given

    proof = Given("id text, token bigint")
    end = (
        "UPDATE jobs SET state = 'done', owner = NULL, lease_until = NULL, changed_at_ms = %s "
        f"FROM {proof.table} WHERE jobs.id = g.id AND jobs.state = 'leased' AND jobs.token = g.token RETURNING jobs.id"
    )

    def turn(before: list[Any], limit: int) -> list[Any]:
        now = int(time.time() * 1000)
        driver.begin()
        if before:
            driver.rows(end, [now, *proof.values([row[:2] for row in before])])
        found = driver.rows(take, [now + LEASE_MS, now, now, now, limit])
        driver.commit()
        return found

    return turn
