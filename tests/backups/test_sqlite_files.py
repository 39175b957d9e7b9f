"""What only files can suffer: a copy without its journal (F20), a row changed beneath everything (F19), a page overwritten,
a file cut off (F18). On whatever we test, the database here is an SQLite file."""

import gc
import json
import sqlite3
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client

from queue_app.policy.rights import TEAM_LEAD
from queue_app.services import backups, queue
from queue_app.store import backups_sqlite
from tests.backups.conftest import Run, living_in_file
from tests.engine.invariants import check_all
from tests.receiver.conftest import open_receiver
from tests.receiver.http_client import post_order

__all__ = ["open_receiver"]

pytestmark = pytest.mark.django_db

MANY = 3_000


def accept_many() -> None:
    queue.enqueue_many([{"id": f"o-{n:05}", "quantity": 1} for n in range(MANY)])


def cp(source: Path, target: Path) -> Path:
    """By another program: whoever opens and closes the file in this process loses SQLite's locks on it."""
    subprocess.run(["cp", source, target], check=True)
    return target


def waited(path: Path) -> dict[int, int]:
    """How many orders stand at which `waited_ms`, by another program."""
    code = (
        "import json, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
        "print(json.dumps([c.execute('PRAGMA integrity_check').fetchall()[0][0], "
        "c.execute('SELECT waited_ms, count(*) FROM jobs GROUP BY 1').fetchall()]))"
    )
    said = subprocess.run(["python3", "-c", code, path], check=True, capture_output=True, text=True).stdout
    integrity, rows = json.loads(said)
    assert integrity == "ok"
    return {int(value): int(n) for value, n in rows}


def test_a_copy_of_the_file_alone_is_torn_although_sqlite_calls_it_whole(file: Path, tmp_path: Path) -> None:
    with living_in_file(file):
        accept_many()
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA cache_size = 10")  # as in a transaction larger than the cache: pages go out early
            cursor.execute("BEGIN IMMEDIATE")
            # 0 and 1 take as much room in a row, so no page is split: each is whole, and only together they are not
            cursor.execute("UPDATE jobs SET waited_ms = 1")
            alone = cp(file, tmp_path / "alone.sqlite3")
            both = cp(file, tmp_path / "both.sqlite3")
            cp(Path(f"{file}-journal"), Path(f"{both}-journal"))
            cursor.execute("ROLLBACK")
        torn = waited(alone)
        assert set(torn) == {0, 1}, "half of a change that was never acknowledged"
        assert sum(torn.values()) == MANY
        assert waited(both) == {0: MANY}
        check_all()


def test_a_copy_without_the_journal_of_a_killed_writer_keeps_what_was_taken_back(file: Path, tmp_path: Path) -> None:
    with living_in_file(file):
        accept_many()
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('PRAGMA journal_mode = PERSIST'); c.execute('PRAGMA cache_size = 10'); "
        "c.execute('BEGIN IMMEDIATE'); c.execute('UPDATE jobs SET waited_ms = 1'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run(["python3", "-c", code, file], check=False).returncode == -9
    alone = cp(file, tmp_path / "alone.sqlite3")
    assert 0 < waited(alone)[1] < MANY
    with living_in_file(file):
        made = backups.make(tmp_path / "backup")
    assert waited(made.folder / made.manifest.file) == {0: MANY}


# --- what only a comparison can show --------------------------------------------------------------------------------


def delivered(url: str, ids: str) -> None:
    """Accepted here, posted there, finished here."""
    for job_id in ids:
        queue.enqueue(job_id, 3)
        (lease,) = queue.claim("w")
        post_order(url, job_id, 3)
        assert queue.finish(job_id, lease.token, "ok")


def test_a_row_changed_with_its_index_passes_every_check_but_the_comparison(
    file: Path, run: Run, open_receiver: Any
) -> None:
    url = open_receiver().url
    with living_in_file(file):
        delivered(url, "abc")
        assert run("audit", "verify", "--receiver", url)[0] == 0
    with closing(sqlite3.connect(file)) as link:  # as a flipped bit does: no trigger asks
        guards = link.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'jobs'"
        ).fetchall()
        for name, _sql in guards:
            link.execute(f"DROP TRIGGER {name}")
        link.execute("UPDATE jobs SET quantity = 7 WHERE id = 'b'")
        for _name, sql in guards:
            link.execute(sql)
        link.commit()
        assert link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with living_in_file(file):
        assert run("audit", "verify")[0] == 0
        status, said, _ = run("audit", "verify", "--receiver", url)
    assert status == 1
    assert "Whole: " in said
    assert "1  Another quantity there." in said
    assert "b" in [line.strip() for line in said.splitlines()]


def test_an_old_file_in_place_of_the_database_is_known_by_anchor_and_receiver(
    file: Path, run: Run, open_receiver: Any, tmp_path: Path
) -> None:
    url = open_receiver().url
    with living_in_file(file):
        delivered(url, "a")
        queue.enqueue("b", 3)
        old = backups.make(tmp_path / "monday")
        queue.enqueue("c", 3)
        for lease in queue.claim("w", limit=2):
            post_order(url, lease.id, 3)
            assert queue.finish(lease.id, lease.token, "ok")
        backups.make(tmp_path / "tuesday")
        anchor = run("audit", "head")[1].strip()
    with living_in_file(old.folder / old.manifest.file):
        status, said, _ = run("audit", "verify", "--expect", anchor, "--receiver", url)
    assert status == 1
    assert "The anchor is ahead of the record" in said
    assert "1  Known to the receiver only." in said  # c
    assert "1  Waiting for delivery here, delivered there." in said  # b
    assert "1  More tries there than were made here." in said  # b, which has token 0 here


# --- writers that overtake ------------------------------------------------------------------------------------------


def commit_one(file: Path) -> bool:
    """Whether a writer without any patience got its commit."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as link:
        try:
            link.execute("UPDATE jobs SET waited_ms = waited_ms + 1 WHERE id = 'o-00001'")
        except sqlite3.OperationalError:
            return False
    return True


def overtaking(monkeypatch: pytest.MonkeyPatch, between: Callable[[], object]) -> None:
    """Something happens after each of the small steps."""
    real = sqlite3.connect

    class Link(sqlite3.Connection):
        def backup(self, target: sqlite3.Connection, *, pages: int = -1, progress: Any = None, **more: object) -> None:
            def look(*numbers: int) -> None:
                progress(*numbers)
                between()

            super().backup(target, pages=pages, progress=look, **more)

    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: real(*given, **more, factory=Link))


@pytest.mark.parametrize("wal", [False, True])
def test_when_writers_overtake_every_step_the_whole_is_copied_under_one_lock(
    wal: bool, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living_in_file(file, wal=wal):
        accept_many()
        commits = 0

        def between() -> None:
            nonlocal commits
            commits += commit_one(file)

        target = tmp_path / "copy.sqlite3"
        target.touch()
        overtaking(monkeypatch, between)
        _paused_ms, restarts = backups_sqlite.copy(target, pause_ms=60_000, step_pages=20)
        monkeypatch.undo()
        seen = commits
    if wal:  # writers went on all the while, and the copy is of the moment at which it began
        assert (restarts, waited(target)) == (0, {0: MANY})
        assert seen > 5
    else:  # they went on during the small steps, and stood still during the one lock
        assert restarts == backups_sqlite.RESTARTS + 1
        assert waited(target) == {0: MANY - 1, seen: 1}
    assert not Path(f"{target}-wal").exists()


def test_commits_never_wait_longer_for_a_copy_than_allowed(
    file: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living_in_file(file):
        accept_many()
        monkeypatch.setattr(backups_sqlite, "STEP_PAGES", 20)
        monkeypatch.setattr(backups_sqlite.copy, "__kwdefaults__", {"step_pages": 20})
        monkeypatch.setattr(backups_sqlite, "RESTARTS", -1)
        ticks = iter(range(0, 10**6, 100))
        monkeypatch.setattr(backups_sqlite.clock, "monotonic_ms", lambda: next(ticks))
        status, said, error = run("backup", tmp_path / "monday", "--pause-ms", "300")
    assert (status, said) == (2, "")
    assert error.startswith("Writers never left 300 ms for the copy.")
    assert not list(tmp_path.glob("monday*"))


# --- files that are broken ------------------------------------------------------------------------------------------


@pytest.fixture
def dropped() -> Iterator[None]:
    """Django drops a connection whose first statement failed without closing it: the collector does, and warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def overwritten(raw: bytearray) -> None:
    for at in range(4_096, len(raw), 4_096):
        raw[at : at + 2_048] = b"\xa5" * 2_048


def truncated(raw: bytearray) -> None:
    del raw[20_000:]


def no_database(raw: bytearray) -> None:
    raw[:100] = b"<html>" + b" " * 94


def emptied(raw: bytearray) -> None:
    raw.clear()


BROKEN = [overwritten, truncated, no_database, emptied]


def break_it(file: Path, how: Callable[[bytearray], None]) -> bytes:
    raw = bytearray(file.read_bytes())
    how(raw)
    file.write_bytes(raw)
    return bytes(raw)


@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_said_to_be_so_and_nothing_is_mended(
    how: Callable[[bytearray], None], file: Path, run: Run, tmp_path: Path
) -> None:
    with living_in_file(file):
        accept_many()
    left = break_it(file, how)
    ends = {}
    for command in (
        ("backup", tmp_path / "monday"),
        ("audit", "verify"),
        ("reconcile", "--receiver", "http://127.0.0.1:1"),
    ):
        with living_in_file(file):
            ends[command[0]] = run(*command)
    for name, (status, said, error) in ends.items():
        assert status in (1, 2), name
        assert "Traceback" not in said + error
        assert len((said + error).strip().splitlines()) <= 4, (name, said, error)
    assert not list(tmp_path.glob("monday*"))
    assert file.read_bytes() == left or how is emptied  # SQLite calls an empty file an empty database


def test_damage_where_no_order_lies_yields_no_backup_either(file: Path, run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(file)) as link:
        (page,) = link.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'auth_permission'").fetchone()
        (size,) = link.execute("PRAGMA page_size").fetchone()

    def one_page(raw: bytearray) -> None:
        raw[(page - 1) * size : page * size] = b"\xa5" * size

    break_it(file, one_page)
    with living_in_file(file):
        status, said, error = run("backup", tmp_path / "monday")
    assert (status, said) == (2, "")
    assert error.startswith("SQLite finds the file damaged (integrity_check). No backup was kept")
    assert not list(tmp_path.glob("monday*"))


@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("how", BROKEN)
def test_pages_of_a_broken_file_say_that_it_cannot_work_now(how: Callable[[bytearray], None], file: Path) -> None:
    with living_in_file(file):
        accept_many()
        lead = User.objects.create_user("tom")
        lead.groups.add(Group.objects.get(name=TEAM_LEAD))
        client = Client(raise_request_exception=False)
        client.force_login(lead, backend="django.contrib.auth.backends.ModelBackend")
    break_it(file, how)
    with living_in_file(file):
        for address in ("/", "/quarantine/", "/orders/o-00001/", "/audit/", "/sign-in/", "/readyz"):
            answer = client.get(address)
            if address == "/sign-in/" and answer.status_code == 200:
                continue  # a form needs no database
            assert answer.status_code == 503, (address, answer.status_code)
            assert "Traceback" not in answer.text
        assert Client().get("/livez").status_code == 200
        assert Client().get("/readyz").status_code == 503
        answer = client.post("/sign-in/", {"login": "tom", "password": "x"})
        assert answer.status_code in (403, 503)
