"""PostgreSQL is restarted, frozen, cut off or silent while workers work: every loop goes on by itself (F28, F29, F32).

A server of their own, because it is done harm to; real processes, because what must survive is a process.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.conftest import BASE_DIR
from tests.demo.running import eventually
from tests.pgserver import Server, server
from tests.postgresql.hosts import ORDERS, Host, asker
from tests.postgresql.proxy import Proxy

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


FAULTS = {
    "restarted": restart, "frozen": freeze, "cut before COMMIT": cut_before, "cut after COMMIT": cut_after,
    "silent": fall_silent,
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


def test_with_no_connection_to_be_had_a_worker_steps_back_and_goes_on(other):
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
