"""The test's side of the process whose children die (`tests.engine.mortal`): one for all tests of a run, because it takes
as long to start as twenty deaths."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.conftest import BASE_DIR

KILLED = -9
_begun: dict[str, "Mortals"] = {}


class Mortals:
    """A process that forks a child for each move."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.mortal"],
            env=dict(environ), cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n"

    def die(
        self,
        moves: str,
        move: str,
        point: int,
        arguments: Mapping[str, Any],
        *,
        inside: bool = False,
        trips: bool = False,
    ) -> tuple[int, Any]:
        """Make a move of the module `moves` with a death at a point: exit status (-9: killed), and the answer if it was told.

        `inside`: on SQLite what triggers do inside a statement counts, too. `trips`: see `tests.engine.mortal`.
        """
        order = {"moves": moves, "move": move, "arguments": arguments, "point": point, "inside": inside, "trips": trips}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status, answer = json.loads(self._process.stdout.readline())
        assert status in (0, KILLED), answer
        return status, answer

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        assert self._process.wait(timeout=30) == 0
        self._process.stdout.close()


def mortals(environ: Mapping[str, str]) -> Mortals:
    """The process for this database."""
    url = environ["DATABASE_URL"]
    if url not in _begun:
        _begun[url] = Mortals(environ)
    return _begun[url]


def end_all() -> None:
    """At the end of the run."""
    while _begun:
        _begun.popitem()[1].close()


def nobody_is_at_it() -> None:
    """PostgreSQL notices a client's death when it next looks at its socket: until then the dead one's rows are locked."""
    from django.db import connection

    if connection.vendor == "sqlite":
        return
    end = time.monotonic() + 30
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND backend_type = 'client backend' AND xact_start IS NOT NULL"
            )
            if cursor.fetchone()[0] == 0:
                return
        assert time.monotonic() < end, "a dead client's transaction stays open"
