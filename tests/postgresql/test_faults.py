"""PostgreSQL is restarted, frozen, cut off, silent, full or read-only while processes work: every loop goes on by itself
(F14, F17, F28, F29, F32).

A server of their own, because it is done harm to; real processes, because what must survive is a process.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, connections

from queue_app.models import Plan, Redrive
from queue_app.policy import buckets
from queue_app.policy.rights import OPERATOR, TEAM_LEAD
from queue_app.policy.terms import Terms
from queue_app.services import queue
from queue_app.store import houses
from tests.conftest import BASE_DIR, PASSWORD
from tests.demo.running import eventually
from tests.engine.invariants import check_jobs
from tests.pgserver import Server, server
from tests.postgresql.hosts import ORDERS, Host, asker
from tests.postgresql.proxy import Proxy
from tests.redrive.invariants import check_plans
from tests.redrive.story import approved, die, work
from tests.waiting import came_true, until

ENVIRON = {"SNACKOPS_PG_STATEMENT_S": "1", "SNACKOPS_PG_POOL": "2"}
JOBS = int(os.environ.get("TESTS_FAULT_JOBS", "120"))


@pytest.fixture(scope="module")
def other():
    """A migrated server that may be broken; it keeps what it acknowledged, unlike that of the other tests."""
    with server(durable=True) as running:
        environ = {**os.environ, "DATABASE_URL": running.url, "DJANGO_SETTINGS_MODULE": "snackops.settings"}
        command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        subprocess.run(command, env=environ, cwd=BASE_DIR, check=True)
        yield running


def url_of(port: int) -> str:
    return f"postgres://postgres@127.0.0.1:{port}/postgres"


def processes_of(running: Server) -> list[int]:
    """The server and its children."""
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii")
    return [running.pid, *map(int, children.split())]


def restart(running: Server, _proxy: Proxy, _worker: Host) -> None:
    running.restart()


def freeze(running: Server, _proxy: Proxy, worker: Host) -> None:
    """Longer than a worker waits for an answer; the other side's kernel goes on acknowledging."""
    frozen = processes_of(running)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        seen = len(worker.delivered)
        worker.begun.clear()
        worker.begun.wait(3)
        assert len(worker.delivered) <= seen + 9, "it goes on without a database"
    finally:
        for pid in reversed(frozen):
            os.kill(pid, signal.SIGCONT)


def cut_before(_running: Server, proxy: Proxy, _worker: Host) -> None:
    proxy.break_at_commit("before_commit", 4)
    eventually(lambda: proxy.done == 4, "four lost COMMITs")


def cut_after(_running: Server, proxy: Proxy, _worker: Host) -> None:
    proxy.break_at_commit("after_commit", 4)
    eventually(lambda: proxy.done == 4, "four lost answers")


def fall_silent(_running: Server, proxy: Proxy, worker: Host) -> None:
    proxy.break_at_commit("silent")
    eventually(lambda: proxy.done, "a silent COMMIT")
    worker.begun.clear()
    worker.begun.wait(3)
    proxy.heal()


def goes_on(worker: Host, seen: int) -> bool:
    """Whether it delivers more than it had in hand."""
    return came_true(lambda: len(worker.delivered) > seen + 9, limit_s=1.5)


def full_disk(running: Server, _proxy: Proxy, worker: Host) -> None:
    """F14: what a server says that has no room for the next page of a table."""
    ask = asker(running.url)
    ask(
        "CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
    )
    ask("CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON jobs FOR EACH STATEMENT EXECUTE FUNCTION full_disk()")
    assert not goes_on(worker, len(worker.delivered)), "it goes on without a database"
    ask("DROP TRIGGER full_disk ON jobs")


def read_only(running: Server, _proxy: Proxy, worker: Host) -> None:
    """F17: as by a hand that wanted to spare the disk; sessions that are there obey, too."""
    ask = asker(running.url)
    ask("ALTER SYSTEM SET default_transaction_read_only = on")
    ask("SELECT pg_reload_conf()")
    try:
        assert came_true(lambda: ask("SHOW default_transaction_read_only") == [("on",)])
        assert not goes_on(worker, len(worker.delivered)), "it goes on without a database"
    finally:
        ask("ALTER SYSTEM RESET default_transaction_read_only")
        ask("SELECT pg_reload_conf()")


FAULTS = {
    "restarted": restart, "frozen": freeze, "cut before COMMIT": cut_before, "cut after COMMIT": cut_after,
    "silent": fall_silent, "full disk": full_disk, "read only": read_only,
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_workers_and_redrivers_go_on_by_themselves_and_nothing_is_lost_or_told_twice(other, fault):
    ask = asker(other.url)
    prefix = f"{fault.split()[-1].lower()}{'b' if 'before' in fault else ''}-"
    ask(ORDERS, prefix, JOBS)
    with ExitStack() as stack:
        proxy = Proxy(other.port)
        stack.callback(proxy.close)
        worker = stack.enter_context(Host("worker", f"w-{prefix}", url_of(proxy.port), **ENVIRON))
        redriver = stack.enter_context(Host("redriver", f"r-{prefix}", url_of(proxy.port), **ENVIRON))
        assert worker.begun.wait(60)
        eventually(lambda: ask("SELECT 1 FROM processes WHERE name = %s", f"r-{prefix}"), "the redriver's sign of life")
        FAULTS[fault](other, proxy, worker)
        proxy.times = 0
        ((healed_ms,),) = ask("SELECT snackops_now_ms()")
        eventually(
            lambda: not ask("SELECT 1 FROM jobs WHERE id LIKE %s AND state <> 'done' LIMIT 1", f"{prefix}%"),
            "every order is done",
        )
        eventually(
            lambda: ask("SELECT 1 FROM processes WHERE name = %s AND seen_at_ms > %s", f"r-{prefix}", healed_ms),
            "the redriver's next sign of life",
        )
        assert worker.lives
        assert redriver.lives
        assert [worker.leave(), redriver.leave()] == [0, 0]
    handed = Counter(worker.delivered)
    assert set(handed.values()) == {1}, "one token was delivered twice"
    assert {job_id for job_id, _ in handed} == {f"{prefix}{n}" for n in range(1, JOBS + 1)}
    ((rows, counted),) = ask(
        "SELECT (SELECT count(*) FROM jobs WHERE state = 'done'), (SELECT sum(n) FROM counts WHERE state = 'done')"
    )
    assert rows == counted, "a counter that a lost COMMIT left behind"


@contextmanager
def living_on(running: Server) -> Iterator[None]:
    """Everything in this thread that asks for the database gets that server, as the product connects to it."""
    config = dict(connection.settings_dict) | {"HOST": "127.0.0.1", "PORT": str(running.port), "NAME": "postgres"}
    options = {key: value for key, value in config["OPTIONS"].items() if key != "pool"}  # pools go by alias
    house = houses.open_house(config | {"USER": "postgres", "PASSWORD": "", "OPTIONS": options})
    try:
        with houses.living_in(house):
            yield
    finally:
        house.close()


@pytest.mark.django_db
def test_F32_a_batch_goes_on_over_restarts_of_the_server_each_order_once_and_at_its_pace(other):  # noqa: N802
    rate = 20  # orders a second
    with living_on(other):
        people = [User.objects.create_user(name, password=PASSWORD) for name in ("oda-f32", "tom-f32")]
        for user, role in zip(people, (OPERATOR, TEAM_LEAD), strict=True):
            user.groups.add(Group.objects.get(name=role))
        ids = die(40, prefix="batch-")
        plan = approved(*people, Terms(rate * 1_000, canary=0))
        house = connections["default"]
        url = url_of(other.port)
        with Host("redriver", "r-1", url, **ENVIRON) as one, Host("redriver", "r-2", url, **ENVIRON) as two:
            for enough in (5, 20):
                until(lambda: Redrive.objects.filter(batch=plan.pk).count() >= enough, "it moves")  # noqa: B023
                other.restart()
                house.close()
            until(lambda: Plan.objects.get(pk=plan.pk).state == "ended", "the batch ends by itself")
            assert one.lives
            assert two.lives
            assert [one.leave(), two.leave()] == [0, 0]
        assert Redrive.objects.filter(batch=plan.pk).count() == len(ids)
        check_plans()
        times = sorted(Redrive.objects.filter(batch=plan.pk).values_list("at_ms", flat=True))
        for first, at_ms in enumerate(times):
            within = sum(at_ms <= other_ms < at_ms + 1_000 for other_ms in times[first:])
            assert within <= rate + buckets_hold(rate), "a burst after a restart"
        assert work() == len(ids)
        check_jobs()


def buckets_hold(rate: int) -> int:
    """Orders that may have gathered in the bucket while nobody ticked."""
    return buckets.window_ms(rate * 1_000) * rate // 1_000 + 1


@pytest.mark.django_db
def test_every_commit_is_synced_by_the_server_before_it_is_acknowledged(other):
    """Counted by the server itself: without its syncs an acknowledged order would not survive a power cut."""
    orders = [f"sync-{n}" for n in range(30)]
    with living_on(other):
        before = syncs()
        assert {queue.enqueue(one, 1) for one in orders} == {"accepted"}
        assert syncs() - before >= len(orders)
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = off")
        before = syncs()
        assert {queue.enqueue(f"{one}-unsafe", 1) for one in orders} == {"accepted"}
        assert syncs() - before < len(orders), "the count notices nothing"
        assert work() == 2 * len(orders)


def syncs() -> int:
    """Syncs of the log by this server so far."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT current_setting('server_version_num')::int >= 180000")
        ((new,),) = cursor.fetchall()
        cursor.execute(
            "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'" if new else "SELECT wal_sync FROM pg_stat_wal"
        )
        return int(cursor.fetchone()[0])


def test_F29_with_no_connection_to_be_had_a_worker_steps_back_and_goes_on(other):  # noqa: N802
    ask = asker(other.url)
    sql = (BASE_DIR / "snackops" / "ops" / "application_role.sql").read_text(encoding="utf-8")
    with psycopg.connect(other.url, autocommit=True) as owner:
        owner.execute(sql)
    ask("ALTER ROLE snackops_app CONNECTION LIMIT 0")
    ask(ORDERS, "crowd-", 5)
    url = f"postgres://snackops_app@127.0.0.1:{other.port}/postgres"
    with Host("worker", "w-crowd", url, PGCONNECT_TIMEOUT="2", **ENVIRON) as worker:
        assert not worker.begun.wait(2)
        assert worker.lives
        ask("ALTER ROLE snackops_app CONNECTION LIMIT 2")
        eventually(lambda: len(worker.delivered) == 5, "the orders are delivered")
        assert worker.leave() == 0
