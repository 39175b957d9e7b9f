"""Copying whole tables from SQLite to PostgreSQL, and reading both sides back the same way.

Differs from everything else in store: it names both databases at once. Rows are read in bites from one cursor under
SQLite's write lock, and written by COPY inside one transaction of PostgreSQL, with its guards lifted until its end.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.models import Head, Job, Presence, Process, Queue

BITE = 2_000
NATURAL = (ContentType, Permission, Group)
"""What every installation makes by itself, with numbers of its own: found again by name."""
_LEFT = ("sessions", "axes")  # people sign in anew; failed sign-ins count for minutes
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be copied: its model, the columns in order, and by which one its rows are read in order."""

    model: type[models.Model]
    fields: "tuple[models.Field[Any, Any], ...]"  # a text: at run time Field takes no parameters
    order: str

    @property
    def name(self) -> str:
        """As the database calls it."""
        return self.model._meta.db_table

    @property
    def columns(self) -> str:
        """Quoted, separated by commas."""
        return ", ".join(f'"{field.column}"' for field in self.fields)


@dataclass(frozen=True, slots=True)
class Sum:
    """How many rows a table has, and one digest over all of them in order."""

    rows: int
    digest: str


def tables() -> list[Table]:
    """Every table that moves. Signs of life and what `_LEFT` names stay behind; NATURAL is made, not copied."""
    found = []
    for model in apps.get_models(include_auto_created=True):
        meta = model._meta
        if meta.app_label in _LEFT or model in (*NATURAL, Process, Presence) or not meta.managed or meta.proxy:
            continue
        fields = tuple(meta.local_concrete_fields)
        pk = meta.pk
        assert pk is not None and pk.column is not None  # noqa: S101, PT018 - every model has one
        found.append(Table(model, fields, "seq" if model is Job else pk.column))
    return sorted(found, key=lambda table: table.name)


def migrations(house: BaseDatabaseWrapper) -> set[tuple[str, str]]:
    """Applied migrations; none in an empty database."""
    with house.cursor() as cursor:
        if "django_migrations" not in house.introspection.table_names(cursor):
            return set()
        cursor.execute("SELECT app, name FROM django_migrations")
        return set(cursor.fetchall())


def inhabited(house: BaseDatabaseWrapper) -> list[str]:
    """Names of tables that hold more than what `migrate` makes; [] means that a house is empty."""
    with house.cursor() as cursor:
        present = set(house.introspection.table_names(cursor))
        known = {table.name for table in tables()}
        strange = sorted(
            present - known - {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
        )
        found = [name for name in strange if name != "django_migrations"]
        for name in sorted(known & present):
            made = {Queue: "name = 'snacks'", Head: "seq = 0 AND link = 0"}
            usual = next((sql for model, sql in made.items() if model._meta.db_table == name), "1 = 0")
            cursor.execute(f'SELECT 1 FROM "{name}" WHERE NOT ({usual}) LIMIT 1')
            if cursor.fetchone():
                found.append(name)
    return found


# --- numbers of what is found again by name -------------------------------------------------------------------------


def natural_keys(house: BaseDatabaseWrapper) -> dict[type[models.Model], dict[int, Key]]:
    """Number -> name of content types, permissions and groups."""
    with house.cursor() as cursor:
        cursor.execute("SELECT id, app_label, model FROM django_content_type")
        types = {number: tuple(rest) for number, *rest in cursor.fetchall()}
        cursor.execute("SELECT id, content_type_id, codename FROM auth_permission")
        permissions = {number: (*types[of], codename) for number, of, codename in cursor.fetchall()}
        cursor.execute("SELECT id, name FROM auth_group")
        groups = {number: (name,) for number, name in cursor.fetchall()}
    return {ContentType: types, Permission: permissions, Group: groups}


def make_missing(house: BaseDatabaseWrapper, wanted: dict[type[models.Model], dict[int, Key]]) -> None:
    """Groups that only the old house has. (Content types and permissions come from `migrate`.)"""
    present = set(natural_keys(house)[Group].values())
    with house.cursor() as cursor:
        for (name,) in sorted(set(wanted[Group].values()) - present):
            cursor.execute("INSERT INTO auth_group (name) VALUES (%s)", [name])


# --- rows -----------------------------------------------------------------------------------------------------------

Names = dict[type[models.Model], dict[int, Key]]


def _converters(table: Table, names: Names) -> list[Callable[[Any], Any] | None]:
    """By column: how a stored value becomes the same plain value on both sides; None when it is plain already.

    A truth value is: Django lets SQLite's driver make it of its number.
    """
    made: list[Callable[[Any], Any] | None] = []
    for field in table.fields:
        if field.is_relation and field.related_model in names:  # any other relation is a number or a text
            made.append(names[field.related_model].__getitem__)
        elif field.get_internal_type() == "DateTimeField":
            made.append(_instant)
        else:
            made.append(None)
    return made


def _instant(value: Any) -> str:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)).isoformat()


def rows(house: BaseDatabaseWrapper, table: Table, names: Names) -> Iterator[list[list[Any]]]:
    """All rows in order, in bites, as plain values: the same on both databases. Call it inside a transaction."""
    converters = list(enumerate(_converters(table, names)))
    with house.chunked_cursor() as cursor:
        cursor.execute(f'SELECT {table.columns} FROM "{table.name}" ORDER BY "{table.order}"')
        while bite := cursor.fetchmany(BITE):
            plain = [list(row) for row in bite]
            for row in plain:
                for place, convert in converters:
                    if convert is not None and row[place] is not None:
                        row[place] = convert(row[place])
            yield plain


class Digest:
    """One digest over rows in order; constant memory."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._rows = 0

    def take(self, bite: list[list[Any]]) -> None:
        """More rows."""
        self._rows += len(bite)
        for row in bite:
            self._hash.update(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def sum(self) -> Sum:
        """Of the rows so far."""
        return Sum(self._rows, self._hash.hexdigest())


def sum_of(house: BaseDatabaseWrapper, table: Table, names: Names) -> Sum:
    """Read a table whole and sum it up."""
    digest = Digest()
    for bite in rows(house, table, names):
        digest.take(bite)
    return digest.sum()


def copy(source: BaseDatabaseWrapper, target: BaseDatabaseWrapper, table: Table, names: Names, new: Names) -> Sum:
    """Write every row of the source into the target; what was read. `names`: of the source, `new`: of the target."""
    numbers = {model: {key: number for number, key in keys.items()} for model, keys in new.items()}
    renumbered = [
        (place, numbers[field.related_model])
        for place, field in enumerate(table.fields)
        if field.is_relation and field.related_model in numbers
    ]
    digest = Digest()
    with target.cursor() as cursor, target.wrap_database_errors:
        cursor.execute(f'DELETE FROM "{table.name}"')  # what `migrate` made
        with cursor.copy(f'COPY "{table.name}" ({table.columns}) FROM STDIN') as stream:
            for bite in rows(source, table, names):
                digest.take(bite)
                for row in bite:
                    for place, by_name in renumbered:
                        row[place] = by_name[row[place]]
                    stream.write_row(row)
    return digest.sum()


def set_sequences(source: BaseDatabaseWrapper, target: BaseDatabaseWrapper) -> None:
    """Let the next number of everything be the one after the last: identities, and the order of acceptance."""
    with target.cursor() as cursor:
        found = [table.model for table in tables()] + [Group]
        for sql in target.ops.sequence_reset_sql(no_style(), found):
            cursor.execute(sql)
        with source.cursor() as old:
            old.execute("SELECT seq FROM heads WHERE name = 'jobs'")
            head = old.fetchone()
        cursor.execute("SELECT coalesce(max(seq), 0) FROM jobs")
        last = max(int(cursor.fetchone()[0]), int(head[0]) if head else 0)
        cursor.execute("SELECT setval('jobs_seq', %s, %s)", [max(last, 1), last > 0])


def analyze(target: BaseDatabaseWrapper) -> None:
    """Tell PostgreSQL's planner what is there now, outside a transaction that others wait for."""
    with target.cursor() as cursor:
        cursor.execute("ANALYZE")
