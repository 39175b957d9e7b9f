"""Copies of the whole database while everything runs, and copies put in place; which vendor's way it is, is known here.

SQLite: SQLite's own backup. PostgreSQL: its programs pg_dump and pg_restore.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connection, connections

from queue_app.policy.errors import SnackOpsError
from queue_app.policy.manifests import Standing
from queue_app.store import backups_postgresql, backups_sqlite, houses
from queue_app.store.backups_postgresql import NoProgram
from queue_app.store.backups_sqlite import TooLong
from queue_app.store.database import is_postgresql

FILES = {"sqlite": "snackops.sqlite3", "postgresql": "snackops.dump"}
_SIDE_FILES = ("-journal", "-wal", "-shm")


class CannotCopy(SnackOpsError):
    """Why there is no copy, in one sentence; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where PostgreSQL's programs are ('' looks for them), and the environment that they run in."""

    folder: str
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Copied:
    """Where everything stood in the copy, and what it cost the others: ms without a commit, after so many restarts."""

    standing: Standing
    paused_ms: int = 0
    restarts: int = 0


def kind() -> str:
    """`sqlite` or `postgresql`."""
    return "postgresql" if is_postgresql() else "sqlite"


def server() -> str:
    """Version of the database, for people."""
    return backups_postgresql.server() if is_postgresql() else backups_sqlite.server()


def usual_pause_ms() -> int:
    """Half of what a commit waits for readers: a copy may not take as long as makes the others give up."""
    return int(float(connection.settings_dict["OPTIONS"].get("timeout", 20)) * 500)


def copy(target: Path, programs: Programs, look: Callable[[], Standing], *, pause_ms: int) -> Copied:
    """Copy the default database into the empty file; `look` is called with exactly what was copied as the default
    database. Raises CannotCopy."""
    try:
        if is_postgresql():
            program = backups_postgresql.program("pg_dump", programs.folder)
            with backups_postgresql.snapshot() as name:
                standing = look()
                backups_postgresql.dump(program, target, name, programs.environ)
            return Copied(standing)
        paused_ms, restarts = backups_sqlite.copy(target, pause_ms=pause_ms)
    except NoProgram as error:
        raise CannotCopy(str(error)) from None
    except TooLong:
        raise CannotCopy(
            f"Writers never left {pause_ms:,} ms for the copy. Try again when less is written, allow a longer pause, "
            "or use WAL (SNACKOPS_SQLITE_WAL), where a copy holds nobody up."
        ) from None
    except sqlite3.Error as error:
        raise CannotCopy(f"SQLite cannot copy it ({_name(error)}); no backup was kept.") from None
    with living_at(str(target)):
        damaged = backups_sqlite.integrity()
        if damaged:
            raise CannotCopy(
                f"{damaged} No backup was kept: go back to the last good one, and keep the file for whoever looks."
            )
        copied = Copied(look(), paused_ms, restarts)
    forget_side_files(target)
    return copied


def put(source: Path, programs: Programs) -> None:
    """Put a dump into the default database, which must be PostgreSQL and empty. Raises CannotCopy."""
    try:
        program = backups_postgresql.program("pg_restore", programs.folder)
        backups_postgresql.restore(program, source, programs.environ)
    except NoProgram as error:
        raise CannotCopy(str(error)) from None


def integrity() -> str:
    """'' when SQLite finds its pages in order, else one sentence. It may also raise DatabaseError. PostgreSQL: ''."""
    return "" if is_postgresql() else backups_sqlite.integrity()


def inhabited() -> bool:
    """Whether the default database has any table."""
    return bool(connection.introspection.table_names())


@contextmanager
def living_at(name: str) -> Iterator[None]:
    """Everything that asks for the default database gets the one of this name (SQLite: this path), in this thread."""
    config = dict(connections[DEFAULT_DB_ALIAS].settings_dict)
    options = {
        key: value for key, value in config["OPTIONS"].items() if key != "pool"
    }  # pools go by alias, not by name
    house = houses.open_house({**config, "NAME": name, "OPTIONS": options})
    try:
        with houses.living_in(house):
            yield
    finally:
        house.close()


def forget_side_files(path: Path) -> None:
    """Remove what reading a copy left beside it; nobody may have it open."""
    for ending in _SIDE_FILES:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
