"""Whoever holds the file of the database can change anything in it; the proof finds it all the same."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.audit import story
from tests.audit.story import ODD_TYPES, ROWS, Tampering
from tests.conftest import BASE_DIR

pytestmark = pytest.mark.django_db  # the lists of columns come from the models


def python(database: Path, *arguments: str | Path, module: str = "tests.audit.raw_files") -> str:
    environ = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{database}",
        "DJANGO_SETTINGS_MODULE": "snackops.settings",
        "SNACKOPS_DATA": str(database.parent),
    }
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, env=environ, cwd=BASE_DIR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of which nobody has changed a row; its guards are thrown away."""
    path = tmp_path_factory.mktemp("whole") / "snackops.sqlite3"
    python(path, "build", path)
    with closing(sqlite3.connect(path)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
    return path


def changed(path: Path, change: Callable[[story.Run], object]) -> None:
    """Change the file as somebody with nothing but the sqlite3 program would (and in no fear of a power cut)."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        change(lambda sql: connection.execute(sql).fetchall())
        connection.commit()


def all_of(what: Tampering) -> Callable[[story.Run], object]:
    return lambda run: [run(statement) for statement in what.statements]


def test_every_tampering_in_the_raw_file_is_found(whole: Path, tmp_path: Path) -> None:
    tamperings = {f"{n:03}": what for n, what in enumerate([*story.every_column(), *ROWS, *ODD_TYPES])}
    for stem, what in tamperings.items():
        changed(Path(shutil.copy(whole, tmp_path / f"{stem}.sqlite3")), all_of(what))
    shutil.copy(whole, tmp_path / "whole.sqlite3")
    found = json.loads(python(whole, tmp_path))
    assert found.pop("whole") is None
    assert [tamperings[stem].title for stem, broken in found.items() if broken is None] == []
    for stem, broken in found.items():
        what = tamperings[stem]
        assert {what.what, "cut", "beyond", "gap"} & set(broken["what"]), (what.title, broken)
        assert what.where in broken["sentence"], (what.title, broken)
    assert len(found) == len(tamperings) > 80


def test_the_anchor_shows_a_mended_cut_a_new_chain_and_an_old_backup(whole: Path, tmp_path: Path) -> None:
    anchor = python(whole, "audit", "head", module="manage").strip()

    def cut(run: story.Run) -> None:
        run("DELETE FROM audit WHERE seq = 5")
        run("DELETE FROM redrives WHERE link > 6")
        story.rechain(run, since=1)

    def backup(run: story.Run) -> None:  # the state after event 2, as it was then
        run("DELETE FROM audit WHERE seq > 2")
        run("DELETE FROM redrives WHERE link > 4")
        story.rechain(run, since=1)

    def forged(run: story.Run) -> None:
        run("UPDATE redrives SET approved_by_id = (SELECT min(id) FROM auth_user) WHERE id = 3")
        story.rechain(run, since=3)

    for name, change in (("cut", cut), ("backup", backup), ("forged", forged)):
        changed(Path(shutil.copy(whole, tmp_path / f"{name}.sqlite3")), change)
    shutil.copy(whole, tmp_path / "whole.sqlite3")
    without: dict[str, Any] = json.loads(python(whole, tmp_path))
    assert without == {"cut": None, "backup": None, "forged": None, "whole": None}
    found = json.loads(python(whole, tmp_path, anchor))
    assert {name: broken and broken["what"] for name, broken in found.items()} == {
        "cut": ["ahead"],
        "backup": ["ahead"],
        "forged": ["hash"],
        "whole": None,
    }
