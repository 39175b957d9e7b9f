"""A file that exists is opened with mode=rw. SQLite itself would make a missing one, so that a worker whose database was
renamed or deleted would go on in an empty one and accept every id anew. The first connection of a process may still make
it: `migrate` on a new machine, and tests.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import OperationalError
from django.db.backends.sqlite3 import base

PATIENCE_S = 300

_lived: set[str] = set()


class DatabaseWrapper(base.DatabaseWrapper):
    """Knows which files this process has been in."""

    def get_connection_params(self) -> dict[str, Any]:
        """As Django's, with mode=rw once the file is there or was."""
        params: dict[str, Any] = super().get_connection_params()
        path = str(params["database"])
        if path.startswith("file:") or path == ":memory:":
            return params
        if path in _lived or Path(path).exists():
            _lived.add(path)
            params["database"] = f"file:{quote(path)}?mode=rw"
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """From now on the file must stay where it is."""
        made = super().get_new_connection(conn_params)
        path = str(self.settings_dict["NAME"])
        if Path(path).exists():
            _lived.add(path)
        return made

    patient = False

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Inside, ask for the write lock in short steps for minutes. SQLite's own waiting sleeps up to 100 ms between
        looks, and beside workers that never rest a migration would not get the lock in any time."""
        self.ensure_connection()
        usual_ms = self.connection.execute("PRAGMA busy_timeout").fetchone()[0]
        self.connection.execute(f"PRAGMA busy_timeout = {PATIENCE_S * 1_000}")
        self.patient = True
        try:
            yield
        finally:
            self.patient = False
            if self.connection is not None:
                self.connection.execute(f"PRAGMA busy_timeout = {usual_ms}")

    def _start_transaction_under_autocommit(self) -> None:
        begin = super()._start_transaction_under_autocommit  # type: ignore[misc]
        if not (self.execute_wrappers or self.queries_logged):  # nobody listens to cursors, which cost 30 us each time
            begin = self._begin
        if not self.patient:
            begin()
            return
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            end = time.monotonic() + PATIENCE_S
            while True:
                try:
                    begin()
                    return
                except OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > end:
                        raise
                time.sleep(random.uniform(0.0002, 0.001))  # noqa: S311 - spreads the writers
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {PATIENCE_S * 1_000}")

    def _begin(self) -> None:
        with self.wrap_database_errors:
            self.connection.execute(f"BEGIN {self.transaction_mode or ''}")  # type: ignore[attr-defined]
