"""Errors of the database, drawn by the seed: before a statement, after it, and at COMMIT with known or unknown outcome.

A seed lives inside one transaction that is rolled back at its end, so a service's COMMIT is the release of the outermost
savepoint that it made; there the fault is thrown, before or after the release.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from django.db import InterfaceError, OperationalError, connection

KINDS = ("before", "after", "refused", "lost_undone", "lost_done")
_NOT_STATEMENTS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


class Faults:
    """At most one fault per call, and one in `one_in` calls has one. Nothing is thrown unless a call is at work."""

    def __init__(self, rng: Random, one_in: int) -> None:
        self.one_in = one_in
        self.thrown: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._rng = rng
        self._kind = ""
        self._left = 0
        self._depth = 0
        self._rolled_back = ""  # Django releases a savepoint after rolling back to it, too, which is no COMMIT

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Stand between the product and its database."""
        plain, plain_back = connection.savepoint_commit, connection.savepoint_rollback
        self._depth = len(connection.savepoint_ids)

        def back(sid: str) -> None:
            self._rolled_back = sid
            plain_back(sid)

        def commit(sid: str) -> None:
            outermost = len(connection.savepoint_ids) == self._depth and sid != self._rolled_back
            if outermost and self._due("refused"):
                raise OperationalError("disk I/O error (drawn, at COMMIT)")
            if outermost and self._due("lost_undone"):
                plain_back(sid)
                plain(sid)
                raise InterfaceError("the connection is lost (drawn, at COMMIT, which did not come through)")
            lost = outermost and self._due("lost_done")
            plain(sid)
            if lost:
                raise InterfaceError("the connection is lost (drawn, at COMMIT, which came through)")

        connection.savepoint_commit, connection.savepoint_rollback = commit, back
        try:
            with connection.execute_wrapper(self._statement):
                yield
        finally:
            del connection.savepoint_commit, connection.savepoint_rollback

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call of an actor; whether and where it meets a fault is drawn now."""
        if self.one_in and self._rng.randrange(self.one_in) == 0:
            self._kind = self._rng.choice(KINDS)
            self._left = self._rng.randint(1, 6) if self._kind in ("before", "after") else 1
        try:
            yield
        finally:
            self._kind = ""

    def _due(self, kind: str) -> bool:
        if self._kind != kind:
            return False
        self._left -= 1
        if self._left:
            return False
        self.thrown[kind] += 1
        self._kind = ""
        return True

    def _statement(self, execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        if sql.startswith(_NOT_STATEMENTS):
            return execute(sql, *more)
        if self._due("before"):
            raise OperationalError("disk I/O error (drawn, before a statement)")
        answer = execute(sql, *more)
        if self._due("after"):
            raise OperationalError("disk I/O error (drawn, after a statement)")
        return answer
