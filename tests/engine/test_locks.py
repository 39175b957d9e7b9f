"""Somebody else holds the lock: a bounded wait, an error that says so, and nothing changed (faults F23 and F25).

Differs by database: SQLite has one writer, and in its rollback journal a reader stops COMMIT; PostgreSQL locks rows.
"""

import threading
import time
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from queue_app.models import Job
from queue_app.services import queue
from queue_app.store import database
from tests.engine.invariants import check_all
from tests.engine.rows import T, put, snapshot, stand, take

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT_S = 30


@contextmanager
def elsewhere(work):
    """`work()` is a context manager that another thread, on a connection of its own, holds open meanwhile."""
    holds, go_on = threading.Event(), threading.Event()

    def run():
        try:
            with work():
                holds.set()
                go_on.wait(LIMIT_S)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert holds.wait(LIMIT_S)
        yield
    finally:
        go_on.set()
        thread.join()


@contextmanager
def a_writer():
    with transaction.atomic():
        Job.objects.filter(pk="a").update(available_at=T)
        yield


@contextmanager
def a_reader():
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM jobs")
        cursor.fetchone()
        yield


def test_a_held_lock_is_waited_for_within_bounds_and_then_said(monkeypatch):
    put("a", "b", "c")
    before = snapshot()
    monkeypatch.setattr(database.write.__wrapped__, "__kwdefaults__", {"limit_ms": 300})
    with elsewhere(a_writer):
        begun = time.monotonic()
        if connection.vendor == "postgresql":
            assert [lease.id for lease in queue.claim("w1", limit=9, now_ms=T)] == ["b", "c"]
            assert queue.finish("b", 1, "ok", now_ms=T)
        else:
            for move in (lambda: queue.claim("w1", now_ms=T), lambda: queue.enqueue("d", 1, now_ms=T)):
                with pytest.raises(OperationalError, match="locked"):
                    move()
            assert 0.598 <= time.monotonic() - begun < 5  # two waits, each bounded in whole ms
            assert snapshot() == before
            assert not connection.in_atomic_block
    assert take().id == "a"
    assert queue.finish("a", 1, "ok", now_ms=T)
    check_all(["a", "b", "c"])


def test_the_usual_time_out_is_back_after_a_patient_begin():
    if connection.vendor == "postgresql":
        with database.write(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        assert not connection.in_atomic_block
        return

    def busy_ms():
        with connection.cursor() as cursor:
            return cursor.execute("PRAGMA busy_timeout").fetchone()[0]

    put("a")
    assert busy_ms() == 20_000
    with elsewhere(a_writer), pytest.raises(OperationalError), database.write(limit_ms=10):
        pass
    assert busy_ms() == 20_000


def test_a_slow_reader_can_delay_an_end_but_never_half_do_it(monkeypatch):
    if connection.vendor == "sqlite":
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.2)
    put("a", "b")
    take()
    with elsewhere(a_reader):
        if connection.vendor == "postgresql":
            assert queue.finish("a", 1, "permanent", code="http_422", now_ms=T)
        else:
            with pytest.raises(OperationalError, match="locked"):
                queue.finish("a", 1, "permanent", code="http_422", now_ms=T)
            assert not connection.in_atomic_block
            assert stand("a") == ("leased", "", "", 1, 1)
            with pytest.raises(
                OperationalError, match="locked"
            ):  # even a COMMIT that changed nothing waits for readers
                queue.claim("w1", queue="snacks", now_ms=T - 1)
    assert queue.finish("a", 1, "permanent", code="http_422", now_ms=T) is (connection.vendor == "sqlite")
    assert stand("a") == ("dead", "permanent", "http_422", 1, 1)
    check_all(["a", "b"])
