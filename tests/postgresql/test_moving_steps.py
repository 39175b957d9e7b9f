"""The move from SQLite to PostgreSQL, refusal by refusal, in one process. As the command does it: tests/moving."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import OperationalError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.models import Count, Process, Tally
from queue_app.policy.chain import Anchor
from queue_app.policy.recounting import Difference
from queue_app.reads import chain
from queue_app.services import looks, moving, queue
from queue_app.services.moving import CannotMove, Moved
from queue_app.store import copies, database, houses, triggers
from queue_app.store.copies import Sum
from tests.postgresql.houses import config_of, ids_of

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)
House = BaseDatabaseWrapper
BEATS_MS = 15_000


def sql(house: House, statement: str) -> list[tuple[Any, ...]]:
    with house.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def refusal(move: Callable[[], object]) -> str:
    with pytest.raises(CannotMove) as refused:
        move()
    return str(refused.value)


def sums_of(house: House) -> dict[str, Sum]:
    names = copies.natural_keys(house)
    return {table.name: copies.sum_of(house, table, names) for table in copies.tables()}


def opened_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[House]:
    """Filled with each house that is opened."""
    opened: list[House] = []
    real = houses.open_house

    def open_house(config: dict[str, Any]) -> House:
        opened.append(real(config))
        return opened[-1]

    monkeypatch.setattr(houses, "open_house", open_house)
    return opened


# --- the whole ------------------------------------------------------------------------------------------------------


@committed
def test_everything_is_there_afterwards_and_nothing_is_gone_here(
    old: House, new: House, capsys: pytest.CaptureFixture[str]
) -> None:
    Count.objects.filter(state="dead").update(n=4)  # wrong already, and said to be so
    sums, anchor, said = sums_of(old), chain.anchor(), list[str]()
    moved = moving.move(config_of(new), told=said.append)
    rows = {name: one.rows for name, one in sums.items()}
    differences = (Difference("counts", ("snacks", "dead", "", "permanent", "http_422"), "n", 4, 1),)
    assert moved == Moved(rows, anchor, differences)
    assert said == [f"{name}: {n:,} rows" for name, n in rows.items()]
    assert (rows["jobs"], rows["auth_user"], rows["holds"]) == (3, 2, 0)
    assert sums_of(new) == sums_of(old) == sums
    assert capsys.readouterr() == ("", "")
    assert not old.in_atomic_block
    with houses.living_in(new):
        assert triggers.missing() == []
        assert chain.anchor() == anchor
        assert queue.enqueue("later", 1) == "accepted"
        assert sql(new, "SELECT seq FROM jobs WHERE id = 'later'") == [(4,)]
        assert User.objects.get(username="oda").groups.filter(name="night shift").exists()
    assert ids_of(old) == ["b", "a", "c"]


@committed
def test_it_needs_nobody_who_listens_and_leaves_no_connection_open(
    old: House, new: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_from_now_on(monkeypatch)
    moved = moving.move(config_of(new))
    assert (moved.rows["jobs"], moved.differences) == (3, ())
    moving.prepare(config_of(new))
    assert [house.connection for house in opened] == [None, None]
    assert sql(new, "SELECT reltuples FROM pg_class WHERE oid = 'queues'::regclass") == [(2.0,)]


@pytest.mark.parametrize("engine", ["django.db.backends.sqlite3", "django.db.backends.postgresql_psycopg2"])
def test_the_way_is_from_sqlite_to_postgresql_alone(engine: str, old: House, new: House) -> None:
    sentence = "The move goes from SQLite (DATABASE_URL) to PostgreSQL (--to)."
    assert refusal(lambda: moving.move(config_of(new, ENGINE=engine))) == sentence
    with houses.living_in(new):
        assert refusal(lambda: moving.move(config_of(new))) == sentence


@committed
def test_a_refusal_lets_go_of_both_houses(old: House, new: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with houses.living_in(new):
        Tally.objects.create(name="x", slot=0, n=1)
    opened = opened_from_now_on(monkeypatch)
    assert refusal(lambda: moving.move(config_of(new))) == "The new database is not empty: tallies."
    assert [house.connection for house in opened] == [None]
    assert (connections["default"], connection.in_atomic_block) == (old, False)


# --- the old house --------------------------------------------------------------------------------------------------


def test_nobody_may_live_in_it(old: House, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000_000
    monkeypatch.setattr(database, "now_ms", lambda: now)
    silent = {"kind": "worker", "started_at_ms": 1, "seen_at_ms": now - BEATS_MS}
    Process.objects.create(name="silent", **silent)
    Process.objects.create(name="gone", **silent | {"seen_at_ms": now, "stopped_at_ms": now})
    with moving._locked_source():
        assert connection.in_atomic_block
        neighbour = houses.open_house(config_of(old, OPTIONS={**old.settings_dict["OPTIONS"], "timeout": 0}))
        with pytest.raises(OperationalError, match="locked"):
            sql(neighbour, "BEGIN IMMEDIATE")
        neighbour.close()
    assert not connection.in_atomic_block
    for name in ("w6", "w2", "w4", "w3", "w5", "w1"):
        Process.objects.create(name=name, **silent | {"seen_at_ms": now - BEATS_MS + 1})
    sentence = "These still live here: w1, w2, w3, w4, w5. Stop all workers and redrivers first."
    assert refusal(lambda: moving._locked_source().__enter__()) == sentence


def test_its_record_must_be_whole(old: House) -> None:
    assert moving._whole_record() == chain.anchor()
    triggers.drop_all()
    sql(old, "UPDATE audit SET note = 'X-1' WHERE seq = 1")
    said = refusal(moving._whole_record)
    assert said.startswith("The record is not whole: ")
    assert "1" in said


# --- the new house --------------------------------------------------------------------------------------------------


def test_it_must_be_empty_and_of_the_same_version(old: House, new: House, capsys: pytest.CaptureFixture[str]) -> None:
    moving._make_ready(old, new)
    assert capsys.readouterr() == ("", "")
    for column in ("0001_initial", "0002_production"):
        sql(old, f"DELETE FROM django_migrations WHERE app = 'queue_app' AND name = '{column}'")
    sql(old, "INSERT INTO django_migrations (app, name, applied) VALUES ('zoo', '0001_ants', '2026-11-30')")
    sql(old, "INSERT INTO django_migrations (app, name, applied) VALUES ('zoo', '0002_bees', '2026-11-30')")
    assert refusal(lambda: moving._make_ready(old, new)) == (
        "The old database is at another version (queue_app.0001_initial, queue_app.0002_production, zoo.0001_ants): "
        "run `manage.py migrate` on it first."
    )
    names = ["a", "b", "c", "d", "e", "f"]
    sql(new, ";".join(f"CREATE TABLE zoo_{name} (n int)" for name in names))
    said = refusal(lambda: moving._make_ready(old, new))
    assert said == "The new database is not empty: zoo_a, zoo_b, zoo_c, zoo_d, zoo_e."


def test_it_gets_what_migrate_makes(old: House, new: House) -> None:
    with houses.living_in(new):
        triggers.drop_all()
    moving._make_ready(old, new)
    with houses.living_in(new):
        assert triggers.missing() == []
    assert connections["default"] is old


# --- copying and its proof ------------------------------------------------------------------------------------------


def copied(old: House, new: House) -> Callable[[], Moved]:
    def copy() -> Moved:
        with houses.living_in(new), transaction.atomic():
            return moving._copied(old, new, Anchor(0, ""), lambda _line: None)

    return copy


def test_a_right_that_the_new_house_does_not_know_is_named(old: House, new: House) -> None:
    one = Permission.objects.get(codename="view_payload")
    for codename in ("zeal", "ants"):
        Permission.objects.create(content_type=one.content_type, codename=codename, name=codename)
    said = refusal(copied(old, new))
    assert said == "The new database does not know queue_app.preference.ants."


def test_a_value_that_the_new_house_does_not_take_is_named_by_its_table(old: House, new: House) -> None:
    sql(old, "UPDATE queues SET max_attempts = 3000000000 WHERE name = 'drinks'")
    assert refusal(copied(old, new)) == "The table queues holds a value that PostgreSQL does not take."
    sql(old, "UPDATE queues SET max_attempts = 3")
    sql(old, "PRAGMA ignore_check_constraints = 1")
    sql(old, "UPDATE queues SET max_attempts = 0 WHERE name = 'drinks'")
    assert refusal(copied(old, new)) == "The table queues holds a value that PostgreSQL does not take."
    with houses.living_in(new):
        assert triggers.missing() == []
        assert Group.objects.filter(name="night shift").count() == 0


def test_what_does_not_read_back_is_not_moved(new: House) -> None:
    sums, anchor = sums_of(new), chain.anchor()
    moving._prove(new, sums, anchor)
    counted = sums["queues"]
    for wrong in (Sum(counted.rows + 1, counted.digest), Sum(counted.rows, "0" * 64)):
        said = refusal(lambda wrong=wrong: moving._prove(new, sums | {"queues": wrong}, anchor))
        assert said == "The table queues does not read back as it was. Nothing was moved."
    for other in (Anchor(anchor.seq + 1, anchor.hash), Anchor(anchor.seq, "f" * 64)):
        said = refusal(lambda other=other: moving._prove(new, sums, other))
        assert said == "The record does not read back as it was. Nothing was moved."


def test_a_record_that_went_on_since_is_not_the_one_that_was_read(old: House, new: House) -> None:
    before = chain.anchor()
    looks.record(User.objects.get(username="tom"), "job", "INC-1", "looking", job_id="b")
    said = refusal(lambda: moving._prove(old, sums_of(old), before))
    assert said == "The record does not read back as it was. Nothing was moved."


def test_a_house_without_its_guards_is_not_moved_into(new: House) -> None:
    sums, anchor = sums_of(new), chain.anchor()
    triggers.drop_all()
    names = ", ".join(triggers.missing()[:5])
    assert names.count(", ") == 4
    said = refusal(lambda: moving._prove(new, sums, anchor))
    assert said == f"Guards are missing: {names}. Nothing was moved."
