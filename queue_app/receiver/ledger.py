"""The record of orders and their stock effect: the one transaction on which idempotency rests."""

import functools
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queue_app.receiver.database import Database, Unusable
from queue_app.receiver.faults import Fault, choose, read_faults


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one request: `applied`, `duplicate`, `conflict` (known with another quantity) or `failed`.

    `number` counts the requests of this id from 1. `fault` is the induced one, if any; with outcome `failed` it left no
    effect, with the others it spoils only the answer.
    """

    outcome: str
    number: int
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Orders in bytewise order of id, `next` to ask on with (None at the end), and the totals of the same instant."""

    orders: list[dict[str, Any]]
    next: str | None
    totals: dict[str, int]
    as_of_ms: int


class Ledger:
    """Orders seen, orders applied, stock moved. Safe for many threads and processes; records are never deleted.

    `now_ms` gives the time in ms since the epoch. `faults` are those of the start. With `demo` they can be replaced at
    run time; the replacement is stored, and a restart in demo mode keeps it. `between` is called in `apply` after the
    check and before the write: tests hold a request there to see that no other one gets between.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        now_ms: Callable[[], int],
        faults: Sequence[Fault] = (),
        demo: bool = False,
        between: Callable[[], None] | None = None,
    ) -> None:
        """Open or create the database at `path`. Raises `Unusable` with one sentence."""
        self.demo = demo
        self._now_ms = now_ms
        self._start_faults = tuple(faults)
        self._between = between or (lambda: None)
        self._database = self.open_database(path)
        try:
            self.faults()
        except ValueError as error:
            self.close()
            raise Unusable("The faults stored in the database cannot be read.") from error

    def open_database(self, path: str | Path) -> Database:
        """The database behind this ledger; tests put a smaller one here."""
        return Database(path)

    def apply(self, order_id: str, quantity: int) -> Applied:
        """Count the request and apply the order if its id has no effect yet, in one transaction.

        The values must be checked already (`orders.read_order`). Raises `Unusable`; then nothing was recorded.
        """
        with self._database.transaction() as link:
            number = _count_request(link, order_id, quantity)
            fault = choose(self._faults_in(link), order_id, number)
            if fault is not None and fault.prevents_effect:
                return Applied("failed", number, fault)
            known = _applied_quantity(link, order_id)
            self._between()
            if known is None:
                _record(link, order_id, quantity, self._now_ms())
                return Applied("applied", number, fault)
            return Applied("duplicate" if known == quantity else "conflict", number, fault)

    def page(self, after: str | None, limit: int) -> Page:
        """Up to `limit` orders whose id comes after `after` (None: from the first). Raises `Unusable`."""
        with self._database.transaction("BEGIN") as link:
            rows = link.execute(
                "SELECT id, quantity, applied_at_ms, requests FROM orders WHERE id > ? ORDER BY id LIMIT ?",
                (after or "", limit + 1),
            ).fetchall()
            [(keys, stock, writes, requests)] = link.execute(
                "SELECT keys, stock, writes, requests FROM totals"
            ).fetchall()
        columns = ("id", "quantity", "applied_at_ms", "requests")
        return Page(
            orders=[dict(zip(columns, row, strict=True)) for row in rows[:limit]],
            next=rows[limit - 1][0] if len(rows) > limit else None,
            totals={"keys": keys, "stock": stock, "writes": writes, "requests": requests},
            as_of_ms=self._now_ms(),
        )

    def faults(self) -> tuple[Fault, ...]:
        """The faults that hold now. Raises `Unusable`."""
        with self._database.transaction("BEGIN") as link:
            return self._faults_in(link)

    def replace_faults(self, faults: Sequence[Fault]) -> None:
        """From the next request on these faults hold, also after a restart in demo mode. Raises `Unusable`."""
        rules = json.dumps({"faults": [fault.as_json() for fault in faults]})
        with self._database.transaction() as link:
            link.execute("INSERT OR REPLACE INTO run_time_faults (only, rules) VALUES (1, ?)", (rules,))

    def close(self) -> None:
        """Close the database; call it after the server is closed."""
        self._database.close()

    def _faults_in(self, link: sqlite3.Connection) -> tuple[Fault, ...]:
        stored = link.execute("SELECT rules FROM run_time_faults").fetchall() if self.demo else []
        return _parsed(stored[0][0]) if stored else self._start_faults


@functools.lru_cache(maxsize=4)
def _parsed(rules: str) -> tuple[Fault, ...]:
    return read_faults(rules.encode())


def _count_request(link: sqlite3.Connection, order_id: str, quantity: int) -> int:
    """Count one more request of this id. Until the order is applied its row shows the quantity asked for last."""
    [(number,)] = link.execute(
        "INSERT INTO orders (id, quantity, requests) VALUES (?, ?, 1) ON CONFLICT (id) DO UPDATE SET"
        " requests = requests + 1, quantity = iif(applied_at_ms IS NULL, excluded.quantity, quantity)"
        " RETURNING requests",
        (order_id, quantity),
    ).fetchall()
    link.execute("UPDATE totals SET requests = requests + 1")
    return int(number)


def _applied_quantity(link: sqlite3.Connection, order_id: str) -> int | None:
    rows = link.execute(
        "SELECT quantity FROM orders WHERE id = ? AND applied_at_ms IS NOT NULL", (order_id,)
    ).fetchall()
    return rows[0][0] if rows else None


def _record(link: sqlite3.Connection, order_id: str, quantity: int, now_ms: int) -> None:
    """Write the effect, unconditionally: only the check in the same transaction makes it happen once."""
    link.execute(
        "UPDATE totals SET writes = writes + 1, stock = stock + ?,"
        " keys = keys + (SELECT applied_at_ms IS NULL FROM orders WHERE id = ?)",
        (quantity, order_id),
    )
    link.execute("UPDATE orders SET quantity = ?, applied_at_ms = ? WHERE id = ?", (quantity, now_ms, order_id))
