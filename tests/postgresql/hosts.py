"""Processes on hosts of their own, and the database as one who stands beside it sees it."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import psycopg

from tests.conftest import BASE_DIR


class Host:
    """A worker or redriver as a process; `delivered` is what it handed over so far, as (id, token)."""

    def __init__(self, kind: str, owner: str, url: str, **environ: str) -> None:
        self.delivered: list[tuple[str, int]] = []
        self.begun = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.postgresql.host", kind, owner],
            env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "snackops.settings", **environ},
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            words = line.split()
            if len(words) == 2:
                self.delivered.append((words[0], int(words[1])))
                self.begun.set()

    @property
    def lives(self) -> bool:
        """Whether the process that was started is still there."""
        return self._process.poll() is None

    def leave(self, limit_s: float = 60) -> int:
        """Ask it to end; its exit status."""
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        status = self._process.wait(limit_s)
        self._reader.join(limit_s)
        self._process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.lives:
            self._process.kill()
            self._process.wait()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._reader.join(10)
        self._process.stdout.close()


def asker(url: str) -> Callable[..., list[tuple[Any, ...]]]:
    """`ask(sql, *values)` on a new connection each time, so that no fault of the network stands in its way."""

    def ask(sql: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    return ask


ORDERS = (
    "INSERT INTO jobs (id, seq, queue, quantity, max_attempts, available_at, deadline, created_at_ms, changed_at_ms) "
    "SELECT %s || n, nextval('jobs_seq'), 'snacks', 1, 9, snackops_now_ms(), snackops_now_ms() + 86400000, "
    "snackops_now_ms(), snackops_now_ms() FROM generate_series(1, %s) AS n"
)
