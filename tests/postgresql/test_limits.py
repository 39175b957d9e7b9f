"""Every wait ends: locks, long statements, sleepers inside transactions, an empty pool (F28, F29, F32)."""

import threading
import time
from contextlib import contextmanager, suppress

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test import Client
from psycopg_pool import PoolTimeout

from queue_app.models import Job
from queue_app.services import queue
from queue_app.store import database
from tests.engine.invariants import check_all
from tests.engine.rows import stand, take

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rival(real_database):
    """Another session, by a plain connection."""
    with psycopg.connect(real_database.url) as session:
        yield session


@contextmanager
def limit(name, value):
    with connection.cursor() as cursor:
        cursor.execute(f"SET {name} = '{value}'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"RESET {name}")


def test_the_limits_of_the_settings_stand_in_every_session():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout', "
            "'idle_in_transaction_session_timeout', 'plan_cache_mode', 'max_parallel_workers_per_gather') ORDER BY name"
        )
        assert cursor.fetchall() == [
            ("idle_in_transaction_session_timeout", "20000"),
            ("lock_timeout", "10000"),
            ("max_parallel_workers_per_gather", "0"),
            ("plan_cache_mode", "force_generic_plan"),
            ("statement_timeout", "30000"),
        ]
    assert connection.connection.prepare_threshold is None


def test_a_lock_that_nobody_frees_is_waited_for_within_bounds(rival):
    queue.enqueue("a", 1)
    lease = take(at=None)
    rival.execute("SELECT 1 FROM jobs WHERE id = 'a' FOR UPDATE")
    with limit("lock_timeout", "100ms"), pytest.raises(OperationalError):
        queue.finish("a", lease.token, "ok")
    assert stand("a")[0] == "leased"
    rival.rollback()
    assert queue.finish("a", lease.token, "ok")
    check_all(["a"])


def test_a_statement_that_runs_too_long_is_ended_and_leaves_nothing():
    def add_and_sleep():
        with database.write(), connection.cursor() as cursor:
            queue.enqueue("x", 1)
            cursor.execute("SELECT pg_sleep(30)")

    with limit("statement_timeout", "300ms"), pytest.raises(OperationalError):
        add_and_sleep()
    assert not Job.objects.exists()


def test_one_who_falls_asleep_inside_a_transaction_holds_nobody_up_for_long(real_database):
    queue.enqueue("a", 1)
    lease = take(at=None)
    sleeper = psycopg.connect(real_database.url, options="-c idle_in_transaction_session_timeout=200")
    sleeper.execute("SELECT 1 FROM jobs WHERE id = 'a' FOR UPDATE")
    assert queue.finish("a", lease.token, "ok")
    sleeper.close()


def test_an_answer_that_never_comes_ends_the_connection(monkeypatch):
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    connection.connection.answer_s = 0.2
    begun = time.monotonic()
    with pytest.raises(OperationalError, match="no answer"), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60)")
    assert time.monotonic() - begun < 20
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_two_that_wait_for_each_other_both_get_done(real_database, monkeypatch):
    """A real deadlock: PostgreSQL gives up one of them, and it begins anew."""
    queue.enqueue_many([{"id": name, "quantity": 1} for name in ("a", "b")])
    both = threading.Barrier(2, timeout=30)
    tried, failed = [], []

    def grab(first, second):
        @database.retried
        def service():
            tried.append(first)
            with database.write(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL deadlock_timeout = '50ms'")
                cursor.execute("UPDATE jobs SET available_at = available_at + 1 WHERE id = %s", [first])
                if len(tried) <= 2:
                    both.wait()
                cursor.execute("UPDATE jobs SET available_at = available_at + 1 WHERE id = %s", [second])

        try:
            service()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    before = dict(Job.objects.values_list("id", "available_at"))
    threads = [threading.Thread(target=grab, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert len(tried) == 3
    assert {name: at + 2 for name, at in before.items()} == dict(Job.objects.values_list("id", "available_at"))


@contextmanager
def a_page_elsewhere(user):
    """`get()` asks for a page in a thread of its own, as the web server does, and gives its connection back."""

    def get(path="/"):
        answers = []

        def run():
            try:
                client = Client(raise_request_exception=False)
                client.cookies.update(signed_in.cookies)
                answers.append(client.get(path).status_code)
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)
        return answers

    signed_in = Client()
    signed_in.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    yield get


def test_F29_with_no_connection_free_a_page_says_so_within_bounds_and_works_again(operator: User, monkeypatch):  # noqa: N802
    pool, taken = connection.pool, []
    with a_page_elsewhere(operator) as get:
        assert get() == [200]
        monkeypatch.setattr(pool, "timeout", 0.3)
        try:
            with suppress(PoolTimeout):
                while len(taken) < pool.max_size:
                    taken.append(pool.getconn())
            assert get() == [503]
            assert get("/readyz") == [503]
        finally:
            for one in taken:
                pool.putconn(one)
        assert get() == [200]


def test_a_page_whose_session_was_ended_by_the_server_is_served_by_another_one(operator, rival):
    with a_page_elsewhere(operator) as get:
        assert get() == [200]
        rival.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                      "AND datname = current_database() AND pid <> %s", [backend()])  # fmt: skip
        assert get() == [200]


def backend():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def test_a_session_that_ends_inside_a_page_gives_one_503_and_the_next_is_served(client, as_user, operator, rival):
    client.raise_request_exception = False
    as_user(client, operator)
    rival.execute("SELECT pg_terminate_backend(%s)", [backend()])
    rival.commit()
    answers = [client.get("/").status_code for _ in range(2)]
    assert answers == [503, 200]


def test_a_lost_session_inside_a_transaction_leaves_nothing_and_the_connection_is_replaced(rival):
    def lose_it_between():
        with transaction.atomic():
            queue.enqueue("a", 1)
            rival.execute("SELECT pg_terminate_backend(%s)", [backend()])
            rival.commit()
            queue.enqueue("b", 1)

    with pytest.raises((OperationalError, InterfaceError)):
        lose_it_between()
    connection.close()
    assert not Job.objects.exists()
    assert queue.enqueue("a", 1) == "accepted"
