"""Rows that a caller names, as one table `g` of a statement: its text stays the same however many rows there are.

Differs because SQLite has no arrays: there the rows are one JSON text, on PostgreSQL an array for each column.
"""

import json
from collections.abc import Sequence
from typing import Any

from queue_app.store.database import is_postgresql


class Given:
    """`Given("id text, token bigint")`: the columns of `g`, each with PostgreSQL's name of its type."""

    def __init__(self, columns: str) -> None:
        pairs = [column.split() for column in columns.split(", ")]
        names = [name for name, _ in pairs]
        fields = ", ".join(f"json_extract(value, '$[{place}]') AS {name}" for place, name in enumerate(names))
        self._on_sqlite = f"(SELECT {fields} FROM json_each(%s)) AS g"
        self._among_on_postgresql = f"= ANY(%s::{pairs[0][1]}[])"
        self._on_postgresql = f"unnest({', '.join(f'%s::{kind}[]' for _, kind in pairs)}) AS g({', '.join(names)})"

    @property
    def table(self) -> str:
        """What stands after FROM; `values` belong to its place in the statement."""
        return self._on_postgresql if is_postgresql() else self._on_sqlite

    @property
    def among(self) -> str:
        """What stands after a column that is to be one of the first column's values. Where a key has more than one column,
        a join with `table` might be made the wrong way round: every row of the table held against every row given."""
        if is_postgresql():
            return self._among_on_postgresql
        return "IN (SELECT json_extract(value, '$[0]') FROM json_each(%s))"

    @staticmethod
    def values(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The rows (at least one; text, int or None only) as values of the statement."""
        if not is_postgresql():
            return [json.dumps(rows)]
        return [list(column) for column in zip(*rows, strict=True)]
