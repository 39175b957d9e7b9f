"""How PostgreSQL's programs are called, whole: command, environment, and what is said when one does not do. No server."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from queue_app.store import backups_postgresql
from queue_app.store.backups_postgresql import NoProgram

CONFIG = {"dbname": "snacks db", "user": "me", "password": "geheim", "host": "db.example", "port": "5433",
          "sslmode": "require", "options": "-c statement_timeout=1", "tcp_user_timeout": 7, "application_name": "snackops",
          "cursor_factory": object, "context": None}  # fmt: skip
ADDRESS = "--dbname=dbname='snacks db' user=me host=db.example port=5433 sslmode=require"


@pytest.fixture(autouse=True)
def programs() -> None:
    """None of the real ones here."""


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A connection in place of the default one."""
    found = SimpleNamespace(asked=[], pg_version=160_004, settings_dict={"PASSWORD": "geheim"})
    found.ensure_connection = lambda: found.asked.append("connects")
    found.get_connection_params = lambda: CONFIG
    monkeypatch.setattr(backups_postgresql, "connection", found)
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Every program that is started, with all that it is given; `answer` says what becomes of it."""
    found = SimpleNamespace(told=[], answer=lambda _command: SimpleNamespace(returncode=0, stdout=""))

    def run(command: list[Any], **given: Any) -> SimpleNamespace:
        found.told.append((command, given))
        return found.answer(command)

    monkeypatch.setattr(subprocess, "run", run)
    return found


@pytest.mark.parametrize(("number", "major"), [(150_000, 15), (159_999, 15), (160_004, 16)])
def test_the_servers_version_is_asked_of_a_connection(number: int, major: int, house: SimpleNamespace) -> None:
    house.pg_version = number
    assert backups_postgresql.server() == f"PostgreSQL {major}"
    assert house.asked == ["connects"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (lambda: backups_postgresql.dump(Path("bin/pg_dump"), Path("to"), "0001", {"KEPT": "yes"}),
         [Path("bin/pg_dump"), "--snapshot=0001", "--format=custom", "--no-owner", "--no-privileges", "--file=to", ADDRESS]),
        (lambda: backups_postgresql.restore(Path("bin/pg_restore"), Path("from"), {"KEPT": "yes"}),
         [Path("bin/pg_restore"), "--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", ADDRESS,
          Path("from")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("password", "more"), [("geheim", {"PGPASSWORD": "geheim"}), ("", {}), (None, {})])
def test_a_program_gets_its_orders_and_its_password_beside_them(
    call: Callable[[], None], arguments: list[object], password: str | None, more: dict[str, str],
    house: SimpleNamespace, runs: SimpleNamespace,
) -> None:  # fmt: skip
    house.settings_dict = {"PASSWORD": password} if password is not None else {}
    call()
    environ = {"KEPT": "yes", **more, "PGCONNECT_TIMEOUT": "20"}
    ((command, given),) = runs.told
    assert command == arguments
    assert given == {"env": environ, "stdin": subprocess.DEVNULL, "capture_output": True, "check": False}


def raised(error: Exception) -> Callable[[object], Any]:
    def fail(_command: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda _command: SimpleNamespace(returncode=3), "pg_dump failed (exit status 3); nothing was kept."),
        (lambda _command: SimpleNamespace(returncode=-9), "pg_dump failed (exit status -9); nothing was kept."),
        (raised(FileNotFoundError(2, "No such file or directory")),
         "pg_dump cannot be started: No such file or directory."),
    ],
)  # fmt: skip
def test_one_that_fails_is_one_sentence(
    answer: Callable[[object], Any], sentence: str, house: SimpleNamespace, runs: SimpleNamespace
) -> None:
    runs.answer = answer
    with pytest.raises(NoProgram) as refused:
        backups_postgresql.dump(Path("bin/pg_dump"), Path("to"), "0001", {})
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (lambda _command: SimpleNamespace(stdout="pg_dump (PostgreSQL) 15.18 (Debian 15.18-0)\n"), 15),
        (lambda _command: SimpleNamespace(stdout="pg_dump (PostgreSQL) 18beta1\n"), 18),
        (lambda _command: SimpleNamespace(stdout="pg_dump 15.18\n"), 0),
        (lambda _command: SimpleNamespace(stdout=""), 0),
        (raised(PermissionError(13, "no")), 0),
        (raised(subprocess.TimeoutExpired("pg_dump", 20)), 0),
    ],
)
def test_a_programs_version_is_what_it_says(
    answer: Callable[[object], Any], version: int, runs: SimpleNamespace
) -> None:
    runs.answer = answer
    assert backups_postgresql._version(Path("bin/pg_dump")) == version
    given = {"capture_output": True, "text": True, "check": False, "timeout": 20}
    assert runs.told == [([Path("bin/pg_dump"), "--version"], given)]


HINT = "Name the folder of the right one with SNACKOPS_PG_BIN."


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        ({"path": 16}, "path"),
        ({"path": 17, "debian/16/bin": 16}, "path"),
        ({"path": 15, "debian/16/bin": 16, "debian/17/bin": 17}, "debian/17/bin"),
        ({"debian/15/bin": 15, "debian/16/bin": 16}, "debian/16/bin"),
        ({"path": 15, "debian/14/bin": 14},
         f"pg_dump is of version 15, older than the server (16), and would not do. {HINT}"),
        ({"path": 1}, f"pg_dump is of version 1, older than the server (16), and would not do. {HINT}"),
        ({"path": 0}, f"pg_dump is not there: install PostgreSQL's client programs. {HINT}"),
        ({}, f"pg_dump is not there: install PostgreSQL's client programs. {HINT}"),
    ],
)  # fmt: skip
def test_the_first_program_that_is_new_enough_is_taken(
    found: dict[str, int], chosen: str, house: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in found:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pg_dump").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(backups_postgresql, "_DEBIAN", tmp_path / "debian")
    versions = {tmp_path / folder / "pg_dump": version for folder, version in found.items()}
    monkeypatch.setattr(backups_postgresql, "_version", versions.__getitem__)
    if chosen in found:
        assert backups_postgresql.program("pg_dump", "") == tmp_path / chosen / "pg_dump"
        return
    with pytest.raises(NoProgram) as refused:
        backups_postgresql.program("pg_dump", "")
    assert str(refused.value) == chosen


def test_a_folder_that_is_named_is_the_only_one(
    house: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Path] = []

    def version(path: Path) -> int:
        asked.append(path)
        return 16

    monkeypatch.setattr(backups_postgresql, "_version", version)
    assert backups_postgresql.program("pg_restore", str(tmp_path)) == tmp_path / "pg_restore"
    assert asked == [tmp_path / "pg_restore"]
