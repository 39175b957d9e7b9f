"""A disk that is full, a file that is gone or foreign, a database that is locked: 5xx, no record, no effect, alive."""

import contextlib
import sqlite3

import pytest

from queue_app.receiver import database
from queue_app.receiver.database import Database, Unusable
from queue_app.receiver.ledger import Ledger
from tests.receiver.http_client import get, post_order, requests_of, totals


class SmallDisk(Database):
    """A file that may not grow beyond some pages until `grown`."""

    grown = False

    def connect(self):
        link = super().connect()
        if not self.grown:
            link.execute("PRAGMA max_page_count = 8").fetchall()
        return link


class OnSmallDisk(Ledger):
    def open_database(self, path):
        return SmallDisk(path)


def long_id(number):
    return f"{number:05d}".ljust(64, "x")


def fill(url):
    """Post orders until the disk is full; give back how many were taken and the refusal."""
    for number in range(2_000):
        reply = post_order(url, long_id(number), 3)
        if reply.status != 201:
            return number, reply
    raise AssertionError("the disk never filled")


def test_a_full_disk_refuses_with_507_and_keeps_no_trace_of_the_order(open_receiver):
    url = open_receiver(kind=OnSmallDisk).url
    taken, reply = fill(url)
    assert taken > 50
    assert (reply.status, reply.document) == (507, {"ok": False, "error": "The receiver's disk is full."})
    assert totals(url) == {"keys": taken, "stock": 3 * taken, "writes": taken, "requests": taken}
    assert long_id(taken) not in requests_of(url)


def test_with_a_full_disk_the_process_lives_and_known_orders_are_still_duplicates(open_receiver):
    url = open_receiver(kind=OnSmallDisk).url
    taken, _ = fill(url)
    assert get(url, "/livez").status == 200
    assert post_order(url, long_id(0), 3).document["duplicate"] is True
    assert [post_order(url, long_id(taken), 3).status for _ in range(3)] == [507] * 3
    assert totals(url)["stock"] == 3 * taken


def test_after_space_returns_the_same_order_is_taken_without_a_restart(open_receiver):
    opened = open_receiver(kind=OnSmallDisk)
    taken, _ = fill(opened.url)
    opened.ledger._database.grown = True
    opened.ledger._database.close()  # drop the pooled connections, which remember the old limit
    assert post_order(opened.url, long_id(taken), 3).document["duplicate"] is False
    assert totals(opened.url)["writes"] == taken + 1


def test_a_database_locked_for_too_long_is_503_come_again_and_nothing_is_written(open_receiver, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_MS", 50)
    url = open_receiver().url
    with contextlib.closing(sqlite3.connect(tmp_path / "receiver.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        reply = post_order(url, "a", 1)
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert totals(url)["requests"] == 0
        other.execute("ROLLBACK")
    assert post_order(url, "a", 1).status == 201


def test_a_file_deleted_under_the_running_process_stops_acceptance_and_is_not_made_anew(open_receiver, tmp_path):
    url = open_receiver().url
    assert post_order(url, "a", 1).status == 201
    path = tmp_path / "receiver.sqlite3"
    path.unlink()
    reply = post_order(url, "b", 1)
    assert (reply.status, reply.document["error"]) == (503, "The receiver's database file was removed or replaced.")
    assert not path.exists()
    assert get(url, "/livez").status == 200


def test_a_file_replaced_by_another_stops_acceptance(open_receiver, tmp_path):
    url = open_receiver().url
    post_order(url, "a", 1)
    path = tmp_path / "receiver.sqlite3"
    path.rename(tmp_path / "moved.sqlite3")
    path.write_bytes((tmp_path / "moved.sqlite3").read_bytes())
    assert post_order(url, "a", 1).status == 503


def test_every_connection_survives_a_power_cut_after_its_commit(tmp_path):
    store = Database(tmp_path / "r.sqlite3")
    with store.transaction() as link:
        assert link.execute("PRAGMA journal_mode").fetchone() == ("persist",)
        assert link.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_a_transaction_holds_the_write_lock_from_its_first_moment(tmp_path):
    store = Database(tmp_path / "r.sqlite3")
    other = sqlite3.connect(store.path, timeout=0, isolation_level=None)
    with store.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    store.close()


def test_a_new_connection_never_makes_a_file_in_place_of_a_lost_one(tmp_path):
    store = Database(tmp_path / "r.sqlite3")
    store.path.unlink()
    with pytest.raises(sqlite3.OperationalError):
        store.connect()
    assert not store.path.exists()


def test_a_transaction_is_gone_whole_on_any_exception(tmp_path):
    store = Database(tmp_path / "r.sqlite3")

    def fail_half_way():
        with store.transaction() as link:
            link.execute("UPDATE totals SET stock = 99")
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    with store.transaction("BEGIN") as link:
        assert link.execute("SELECT stock FROM totals").fetchone() == (0,)
    store.close()


def make_foreign(path):
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.execute("PRAGMA journal_mode = WAL")
        link.execute("CREATE TABLE jobs (id TEXT)")
        link.commit()


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"not a database" * 100), "cannot be used"),
        (make_foreign, "is the database of another program"),
    ],
    ids=["directory", "no database", "foreign database"],
)
def test_a_path_that_cannot_be_the_receivers_file_is_refused_and_left_alone(tmp_path, prepare, sentence):
    path = tmp_path / "r.sqlite3"
    prepare(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(Unusable, match=sentence):
        Ledger(path, now_ms=lambda: 0)
    assert before is None or path.read_bytes() == before


def test_a_directory_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(Unusable, match="in a directory that does not exist"):
        Ledger(tmp_path / "no" / "r.sqlite3", now_ms=lambda: 0)


def test_a_name_that_looks_like_a_uri_or_memory_is_a_plain_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "a?mode=memory", "a%20b#c"):
        Ledger(name, now_ms=lambda: 0).close()
        assert (tmp_path / name).is_file()


def test_stored_faults_that_cannot_be_read_stop_the_start(tmp_path):
    Ledger(tmp_path / "r.sqlite3", now_ms=lambda: 0).close()
    with contextlib.closing(sqlite3.connect(tmp_path / "r.sqlite3")) as link:
        link.execute("INSERT INTO run_time_faults VALUES (1, '{}')")
        link.commit()
    with pytest.raises(Unusable, match="faults stored in the database cannot be read"):
        Ledger(tmp_path / "r.sqlite3", now_ms=lambda: 0, demo=True)
