"""What is only ever added stays as it was written, whoever holds the connection."""

import pytest
from django.db import connection

from queue_app.store import triggers
from tests.store.rows import (
    everything_in,
    got_through,
    one_of_each_insert_only_table,
    one_of_each_state,
    plain_door,
    settle,
    through_django,
)

TABLES = sorted(triggers.INSERT_ONLY)


def columns_of(table: str) -> list[str]:
    with connection.cursor() as cursor:
        return [column.name for column in connection.introspection.get_table_description(cursor, table)]


def copies_of_the_row(table: str) -> list[str]:
    """SELECT lists that give the row of the table again: whole, and once for each key with all else made new."""
    columns = columns_of(table)
    lists = [", ".join(columns)]
    for key in triggers.INSERT_ONLY.get(table, ()):
        lists.append(", ".join(column if column in key else f"{column} || '9'" for column in columns))
    return lists


def attacks(table: str) -> list[str]:
    """Every way of raw SQL to change or remove the one row of an insert-only table."""
    columns = columns_of(table)
    found = [f"DELETE FROM {table}", *(f"UPDATE {table} SET {column} = {column}" for column in columns)]
    key = triggers.INSERT_ONLY[table][0]
    upsert = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {columns[-1]} = {table}.{columns[-1]}"
    found.append(f"INSERT INTO {table} SELECT * FROM {table} WHERE true {upsert}")
    if connection.vendor == "postgresql":
        return [*found, f"TRUNCATE {table} CASCADE", f"TRUNCATE {table} RESTART IDENTITY CASCADE"]
    for selected in copies_of_the_row(table):
        found.append(f"REPLACE INTO {table} SELECT {selected} FROM {table}")
        found.append(f"INSERT OR IGNORE INTO {table} SELECT {selected} FROM {table}")
    new = ", ".join(f"{column} || '9'" for column in columns)
    if "id" not in columns:  # where the key is not INTEGER the rowid is a second one
        found.append(f"REPLACE INTO {table} (rowid, {', '.join(columns)}) SELECT rowid, {new} FROM {table}")
    return [
        *found,
        f"UPDATE OR REPLACE {table} SET rowid = rowid + 1",
        f"UPDATE OR REPLACE {table} SET {columns[0]} = 2",
        f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})",
    ]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.django_db
def test_no_row_is_changed_or_removed_through_the_products_own_connection(table: str) -> None:
    one_of_each_insert_only_table()
    before = everything_in(table)
    assert len(before) == 1
    assert got_through(through_django, attacks(table)) == []
    assert everything_in(table) == before


@pytest.mark.django_db(transaction=True)
def test_nor_through_a_plain_connection_without_any_pragma() -> None:
    one_of_each_insert_only_table()
    before = {table: everything_in(table) for table in TABLES}
    with plain_door() as execute:
        assert {table: got_through(execute, attacks(table)) for table in TABLES} == {table: [] for table in TABLES}
    assert {table: everything_in(table) for table in TABLES} == before


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.django_db
def test_without_the_guards_the_same_statements_do_harm(table: str) -> None:
    triggers.drop_all()
    one_of_each_insert_only_table()
    harmful = [f"UPDATE {table} SET {columns_of(table)[-1]} = {columns_of(table)[-1]}"]
    if connection.vendor == "postgresql":
        harmful.append(f"TRUNCATE {table} CASCADE")
    else:
        harmful.append(f"REPLACE INTO {table} SELECT * FROM {table}")
    assert got_through(through_django, harmful) == harmful


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.django_db
def test_the_key_list_names_every_unique_key_of_the_table(table: str) -> None:
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table).values()
    unique = {tuple(sorted(found["columns"])) for found in constraints if found["unique"] or found["primary_key"]}
    assert {tuple(sorted(key)) for key in triggers.INSERT_ONLY[table]} == unique


FROZEN = [
    "UPDATE plan_items SET job_id = 'other'",
    "UPDATE plan_items SET token = token + 1",
    "UPDATE plan_items SET pos = 2",
    "UPDATE plan_items SET reason = 'deadline'",
    "UPDATE plan_items SET code = ''",
    "UPDATE plan_items SET dead_since_ms = 0",
    "UPDATE plan_items SET plan_id = plan_id + 1",
    "UPDATE plan_items SET id = id + 1",
    "DELETE FROM plan_items",
]
FROZEN_BY_VENDOR = {
    "sqlite": [
        "UPDATE OR REPLACE plan_items SET rowid = rowid + 1",
        "REPLACE INTO plan_items SELECT * FROM plan_items",
        "REPLACE INTO plan_items (plan_id, pos, job_id, token, reason, code, dead_since_ms) "
        "SELECT plan_id, pos, 'x', token, reason, code, dead_since_ms FROM plan_items",
    ],
    "postgresql": ["TRUNCATE plan_items"],
}


@pytest.mark.django_db
def test_what_a_plan_froze_stays() -> None:
    one_of_each_insert_only_table()
    before = everything_in("plan_items")
    assert got_through(through_django, FROZEN + FROZEN_BY_VENDOR[connection.vendor]) == []
    assert everything_in("plan_items") == before


@pytest.mark.django_db
def test_an_item_leaves_waiting_once() -> None:
    one_of_each_insert_only_table()
    moves = [
        "UPDATE plan_items SET tries = 1",
        "UPDATE plan_items SET state = 'redriven', left_at_ms = 1",
        "UPDATE plan_items SET state = 'skipped', why = 'not_dead'",
        "UPDATE plan_items SET state = 'waiting'",
    ]
    assert got_through(through_django, moves) == moves[:2]


@pytest.mark.django_db
def test_new_rows_are_still_welcome() -> None:
    one_of_each_state()
    one_of_each_insert_only_table()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO failures (job_id, token, attempt, at_ms, outcome) VALUES ('j', 2, 2, 0, 'retry')")
    settle()
    assert len(everything_in("failures")) == 2
