"""What a statement of the store changed: whole rows before and after, so that no other column moves unnoticed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from django.db import models

locks = pytest.mark.parametrize(
    ("lock", "postgresql", "suffix"),
    [(True, True, " FOR UPDATE"), (True, False, ""), (False, True, ""), (None, True, "")],
)
"""Whether a look is to lock (None: not said), on which database, and what its statement ends with then."""


@contextmanager
def changes(model: type[models.Model]) -> Iterator[dict[Any, dict[str, Any]]]:
    """By primary key, the columns that are otherwise at the end, with their new values; a new row has all of them."""
    before = _rows(model)
    found: dict[Any, dict[str, Any]] = {}
    yield found
    for key, row in _rows(model).items():
        old = before.pop(key, None)
        if other := row if old is None else {name: value for name, value in row.items() if old[name] != value}:
            found[key] = other
    found |= {key: {} for key in before}  # rows that are gone


def _rows(model: type[models.Model]) -> dict[Any, dict[str, Any]]:
    key = model._meta.pk.attname
    return {row[key]: row for row in model._default_manager.values()}


class Asked:
    """Stands in for a module's database: keeps what it is asked, and gives the answers prepared, in their order."""

    def __init__(self, *answers: Sequence[tuple[Any, ...]]) -> None:
        self.statements: list[tuple[str, list[Any]]] = []
        self.last: list[bool] = []  # of each call of `fetch_all`
        self.vendor = "postgresql"
        self._answers = list(answers)
        self._rows: list[tuple[Any, ...]] = []

    def stand_in(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType, postgresql: bool = True) -> "Asked":
        """Be the database of these modules, of this kind."""
        self.vendor = "postgresql" if postgresql else "sqlite"
        for module in modules:
            for name, fake in {
                "is_postgresql": lambda: postgresql, "connection": self, "fetch": self.fetch,
                "fetch_all": self.fetch_all,
            }.items():  # fmt: skip
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, fake)
        return self

    def fetch(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        self.execute(sql, values)
        return self._rows

    def fetch_all(
        self, statements: Sequence[tuple[str, Sequence[Any]]], *, last: bool = False
    ) -> list[list[tuple[Any, ...]]]:
        self.last.append(last)
        return [self.fetch(*statement) for statement in statements]

    # --- as a connection of Django's and its cursor
    def cursor(self) -> "Asked":
        return self

    def __enter__(self) -> "Asked":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self.statements.append((sql, list(values)))
        self._rows = [tuple(row) for row in self._answers.pop(0)] if self._answers else []

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows
