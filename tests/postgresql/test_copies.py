"""Tables from SQLite to PostgreSQL one step at a time. The whole move: tests/moving, test_moving_steps.py."""

import hashlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import DataError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.models import Head, Job, Process, Queue
from queue_app.store import copies, houses, triggers
from queue_app.store.copies import Digest, Sum, Table
from tests.postgresql.houses import AT, ids_of
from tests.store.rows import job

pytestmark = pytest.mark.django_db
House = BaseDatabaseWrapper
LEFT = {
    "auth_group",
    "auth_permission",
    "axes_accessattempt",
    "axes_accessattemptexpiration",
    "axes_accessfailurelog",
    "axes_accesslog",
    "django_content_type",
    "django_migrations",
    "django_session",
    "presences",
    "processes",
}


def table(name: str) -> Table:
    return next(table for table in copies.tables() if table.name == name)


def sql(house: House, statement: str) -> list[tuple[Any, ...]]:
    with house.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


# --- what moves -----------------------------------------------------------------------------------------------------


def test_every_table_moves_but_signs_of_life_and_what_each_house_makes(new: House) -> None:
    names = [table.name for table in copies.tables()]
    assert names == sorted(set(new.introspection.table_names()) - LEFT)
    orders = {table.name: table.order for table in copies.tables()}
    assert {name: order for name, order in orders.items() if order != "id"} == {
        "audit": "seq", "gates": "queue", "heads": "name", "holds": "job_id", "jobs": "seq", "preferences": "user_id",
        "queues": "name", "tombstones": "job_id",
    }  # fmt: skip
    assert table("heads").columns == '"name", "seq", "link", "hash"'
    assert table("holds").columns == '"job_id", "plan_id"'


def test_an_empty_database_has_no_migrations(new: House) -> None:
    found = copies.migrations(new)
    assert {("queue_app", "0001_initial"), ("auth", "0001_initial"), ("sessions", "0001_initial")} <= found
    sql(new, "ALTER TABLE django_migrations RENAME TO elsewhere")
    assert copies.migrations(new) == set()


def test_a_house_is_empty_until_something_is_in_it_that_migrate_does_not_make(new: House) -> None:
    assert copies.inhabited(new) == []
    Process.objects.create(name="w", kind="worker", started_at_ms=1, seen_at_ms=1)  # does not move
    assert copies.inhabited(new) == []
    Head.objects.filter(name="chain").update(link=1)
    assert copies.inhabited(new) == ["heads"]
    Head.objects.filter(name="chain").update(link=0, seq=1)
    Queue.objects.create(name="drinks")
    job("a", 1)
    sql(new, "CREATE TABLE zoo (n int); CREATE TABLE ants (n int)")
    assert copies.inhabited(new) == ["ants", "zoo", "counts", "heads", "jobs", "queues"]


def test_of_a_house_without_tables_nothing_is_asked(new: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new.introspection, "table_names", lambda _cursor: ["django_migrations", "heads"])
    assert copies.inhabited(new) == []


# --- what is found again by name ------------------------------------------------------------------------------------


def test_the_names_of_what_has_other_numbers_in_each_house(new: House) -> None:
    Group.objects.create(name="night shift")
    types = {found.pk: (found.app_label, found.model) for found in ContentType.objects.all()}
    permissions = {
        found.pk: (found.content_type.app_label, found.content_type.model, found.codename)
        for found in Permission.objects.select_related("content_type")
    }
    groups = {found.pk: (found.name,) for found in Group.objects.all()}
    assert len(types) > 10
    assert len(permissions) > 40
    assert copies.natural_keys(new) == {ContentType: types, Permission: permissions, Group: groups}


def test_a_group_that_only_the_old_house_has_is_made(new: House) -> None:
    usual = set(Group.objects.values_list("name", flat=True))
    copies.make_missing(new, {Group: {7: ("night shift",), 8: ("auditor",), 9: ("day shift",)}})
    assert set(Group.objects.values_list("name", flat=True)) == usual | {"night shift", "day shift"}
    copies.make_missing(new, {Group: {7: ("night shift",)}})
    assert Group.objects.count() == len(usual) + 2


# --- rows -----------------------------------------------------------------------------------------------------------


def test_rows_are_plain_values_in_their_order_and_in_bites(old: House, monkeypatch: pytest.MonkeyPatch) -> None:
    names = copies.natural_keys(old)
    monkeypatch.setattr(copies, "BITE", 2)
    bites = list(copies.rows(old, table("jobs"), names))
    assert [[row[0] for row in bite] for bite in bites] == [["b", "a"], ["c"]]
    assert bites[0][0] == list(Job.objects.values_list().get(pk="b"))
    ((drinks, _snacks),) = copies.rows(old, table("queues"), names)
    assert [value for value in drinks if type(value) is bool] == [True, True]  # accepting, paused
    people = [row for bite in copies.rows(old, table("auth_user"), names) for row in bite]
    columns = [field.column for field in table("auth_user").fields]
    oda, tom = (dict(zip(columns, row, strict=True)) for row in people)
    assert (oda["last_login"], tom["last_login"]) == (AT.isoformat(), None)
    assert (oda["is_active"], tom["is_active"], oda["is_staff"]) == (False, True, False)
    granted = [row for bite in copies.rows(old, table("auth_group_permissions"), names) for row in bite]
    assert [row[1:] for row in granted] == [[("night shift",), ("queue_app", "preference", "view_payload")]]


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's own zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def test_an_instant_is_the_same_text_whatever_its_house_gives(in_tokyo: None) -> None:
    plain = "2026-11-30T07:08:09.123456+00:00"
    for given in (
        "2026-11-30 07:08:09.123456",
        AT,
        AT.replace(tzinfo=None),
        datetime(2026, 11, 30, 16, 8, 9, 123456, tzinfo=timezone(timedelta(hours=9))),
        "2026-11-30T16:08:09.123456+09:00",
    ):
        assert copies._instant(given) == plain
    assert copies._instant(datetime(2026, 11, 30, tzinfo=UTC)) == "2026-11-30T00:00:00+00:00"


def test_a_digest_is_one_over_all_rows_in_order_however_they_came() -> None:
    rows: list[list[Any]] = [["a", 1, None], ["雪", True, 2.5], ["c", 3, ["x"]]]
    whole = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    for cut in (0, 1, 2, 3):
        digest = Digest()
        digest.take(rows[:cut])
        digest.take(rows[cut:])
        assert digest.sum() == Sum(3, hashlib.sha256(whole.encode()).hexdigest())
    assert Digest().sum() == Sum(0, hashlib.sha256(b"").hexdigest())


def test_a_table_reads_back_as_it_was_with_the_numbers_of_its_new_house(old: House, new: House) -> None:
    with houses.living_in(new):
        triggers.drop_all()
    names = copies.natural_keys(old)
    with new.cursor() as cursor:  # other numbers than there
        cursor.execute("DELETE FROM auth_group")
    copies.make_missing(new, names)
    renamed = copies.natural_keys(new)
    assert renamed[Group] != names[Group]
    moved = [table(name) for name in ("auth_user", "auth_user_groups", "auth_group_permissions", "queues", "jobs")]
    for one in moved:
        written = copies.copy(old, new, one, names, renamed)
        assert written == copies.sum_of(old, one, names) == copies.sum_of(new, one, renamed), one.name
    assert [copies.sum_of(new, one, renamed).rows for one in moved] == [2, 3, 1, 2, 3]
    assert ids_of(new) == ["b", "a", "c"]
    assert copies.copy(old, new, table("queues"), names, renamed).rows == 2  # what stood there goes first
    assert sql(new, "SELECT name, paused FROM queues ORDER BY name") == [("drinks", True), ("snacks", False)]
    shifts = sql(new, "SELECT g.name FROM auth_user_groups JOIN auth_group g ON g.id = group_id ORDER BY 1")
    assert shifts == [("night shift",), ("operator",), ("team_lead",)]


def test_a_value_that_postgresql_does_not_take_is_an_error_of_djangos(old: House, new: House) -> None:
    names, renamed = copies.natural_keys(old), copies.natural_keys(new)
    sql(old, "UPDATE queues SET max_attempts = 3000000000 WHERE name = 'drinks'")
    with pytest.raises(DataError), houses.living_in(new), transaction.atomic():
        copies.copy(old, new, table("queues"), names, renamed)


# --- numbers that follow --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "last", "next_seq"), [(None, None, 1), (0, None, 1), (0, 7, 8), (9, 7, 10), (7, 9, 10), (1, None, 2)]
)
def test_new_numbers_follow_the_last_ones(
    head: int | None, last: int | None, next_seq: int, old: House, new: House
) -> None:
    sql(old, "DELETE FROM heads WHERE name = 'jobs'")
    if head is not None:
        sql(old, f"INSERT INTO heads (name, seq, link, hash) VALUES ('jobs', {head}, 0, '')")
    with houses.living_in(new), transaction.atomic():
        if last is not None:
            job("a", last)
        far = 900 + max(Group.objects.values_list("pk", flat=True))  # no rollback takes a sequence back
        Group.objects.create(pk=far, name="far")
        User.objects.create(pk=far, username="far")
        copies.set_sequences(old, new)
        assert sql(new, "SELECT nextval('jobs_seq')") == [(next_seq,)]
        assert Group.objects.create(name="next").pk == far + 1
        assert User.objects.create(username="next").pk == far + 1
        transaction.set_rollback(True)


def test_the_planner_is_told_of_every_table(new: House) -> None:
    for number in range(3):
        Queue.objects.create(name=f"q{number}")
    copies.analyze(new)
    assert sql(new, "SELECT reltuples FROM pg_class WHERE oid = 'queues'::regclass") == [(4.0,)]
