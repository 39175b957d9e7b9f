"""PostgreSQL's programs: which is taken, and that no password stands on a command line. On whatever we test."""

import subprocess
from pathlib import Path

import pytest

from queue_app.store import backups_postgresql, houses
from queue_app.store.backups_postgresql import NoProgram

pytestmark = pytest.mark.django_db

SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo "{name} (PostgreSQL) {version}"; exit 0; fi
for one in "$@"; do echo "$one"; done > {folder}/arguments
echo "${{PGPASSWORD-none}} ${{KEPT-none}}" > {folder}/environment
exit {status}
"""


def fake(folder: Path, version: str, *, name: str = "pg_dump", status: int = 0) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(SCRIPT.format(name=name, version=version, folder=folder, status=status))
    path.chmod(0o755)
    return str(folder)


@pytest.fixture(autouse=True)
def programs() -> None:
    """None of the real ones here."""


@pytest.fixture
def server_16(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(backups_postgresql, "_major", lambda: 16)
    monkeypatch.setattr(backups_postgresql, "_DEBIAN", tmp_path / "debian")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


@pytest.mark.parametrize("version", ["16.1", "16.14 (Debian 16.14-1)", "18beta1"])
def test_a_program_as_new_as_the_server_is_taken(version: str, server_16: None, tmp_path: Path) -> None:
    folder = fake(tmp_path / "named", version)
    assert backups_postgresql.program("pg_dump", folder) == tmp_path / "named" / "pg_dump"
    fake(tmp_path / "path", version)
    assert backups_postgresql.program("pg_dump", "") == tmp_path / "path" / "pg_dump"


def test_one_that_is_new_enough_is_found_behind_one_that_is_not(server_16: None, tmp_path: Path) -> None:
    fake(tmp_path / "path", "15.4")
    for major in ("15", "17"):
        (tmp_path / "debian" / major / "bin").mkdir(parents=True)
        fake(tmp_path / "debian" / major / "bin", f"{major}.2")
    assert backups_postgresql.program("pg_dump", "") == tmp_path / "debian" / "17" / "bin" / "pg_dump"


def test_none_or_an_old_one_is_said_with_what_to_do(server_16: None, tmp_path: Path) -> None:
    with pytest.raises(NoProgram, match=r"^pg_dump is not there: .* SNACKOPS_PG_BIN\.$"):
        backups_postgresql.program("pg_dump", "")
    folder = fake(tmp_path / "named", "15.18")
    with pytest.raises(NoProgram, match=r"^pg_dump is of version 15, older than the server \(16\).*SNACKOPS_PG_BIN\.$"):
        backups_postgresql.program("pg_dump", folder)
    with pytest.raises(NoProgram, match="is not there"):
        backups_postgresql.program("pg_restore", folder)
    with pytest.raises(NoProgram, match="is not there"):
        backups_postgresql.program("pg_dump", fake(tmp_path / "odd", "many"))


def test_the_password_goes_by_the_environment_alone(tmp_path: Path) -> None:
    config = {
        "ENGINE": "django.db.backends.postgresql", "NAME": "snacks db", "USER": "me", "PASSWORD": "geheim",
        "HOST": "db.example", "PORT": "5433", "OPTIONS": {"sslmode": "require", "options": "-c statement_timeout=1"},
    }  # fmt: skip
    folder = Path(fake(tmp_path / "named", "16"))
    with houses.living_in(houses.open_house(config)):
        backups_postgresql.dump(folder / "pg_dump", tmp_path / "out", "0001", {"KEPT": "yes"})
    arguments = (folder / "arguments").read_text()
    assert "geheim" not in arguments
    assert "statement_timeout" not in arguments  # a dump takes as long as it takes
    assert "--snapshot=0001" in arguments
    for part in ("dbname='snacks db'", "user=me", "host=db.example", "port=5433", "sslmode=require"):
        assert part in arguments
    assert (folder / "environment").read_text() == "geheim yes\n"


def test_a_program_that_fails_is_one_sentence_without_its_words(tmp_path: Path) -> None:
    folder = Path(fake(tmp_path / "named", "16", status=3))
    with pytest.raises(NoProgram, match=r"^pg_dump failed \(exit status 3\); nothing was kept\.$"):
        backups_postgresql._run([folder / "pg_dump", "x"], {})
    (folder / "pg_dump").chmod(0o600)
    with pytest.raises(NoProgram, match=r"^pg_dump cannot be started: "):
        backups_postgresql._run([folder / "pg_dump", "x"], {})
    assert subprocess.run(["true"], check=False).returncode == 0
