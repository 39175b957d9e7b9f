"""A backup's folder, its manifest, and each sentence with which one is refused; what is said of a restored copy."""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, InterfaceError

from queue_app import conf
from queue_app.models import AuditEvent
from queue_app.policy.chain import Anchor
from queue_app.policy.manifests import BadManifest, Manifest, Standing
from queue_app.reads import standings
from queue_app.services import backups, copy_checks
from queue_app.services.backups import MANIFEST, Made, Restored
from queue_app.store.backups import FILES, CannotCopy, Copied, Programs
from tests.backups.manifests import DATA, SHA, STANDING, manifest
from tests.conftest import Clock

ERRORS = (DatabaseError("words"), InterfaceError("words"))


@pytest.fixture(autouse=True)
def programs() -> None:
    """None of the real ones here."""


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


def refusal(move: Callable[[], object], error: type[Exception] = CannotCopy) -> str:
    with pytest.raises(error) as refused:
        move()
    return str(refused.value)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of the room below: `kind`, and what is done instead of copying, looking and putting."""
    found = SimpleNamespace(kind="sqlite", told=[], copy=None, inhabited=lambda: False, integrity=lambda: "")

    def copy(file: Path, programs: Programs, look: object, *, pause_ms: int) -> Copied:
        found.told.append((file.name, mode(file), programs, look, pause_ms))
        if found.copy:
            raise found.copy
        file.write_bytes(DATA)
        return Copied(STANDING, paused_ms=11, restarts=22)

    def living_at(name: str) -> Any:
        found.told.append(name)
        return nullcontext()

    for name, value in {
        "copy": copy, "kind": lambda: found.kind, "server": lambda: "SQLite 3", "usual_pause_ms": lambda: 1_234,
        "living_at": living_at, "inhabited": lambda: found.inhabited(), "integrity": lambda: found.integrity(),
        "put": lambda *given: found.told.append(given), "forget_side_files": found.told.append,
    }.items():  # fmt: skip
        monkeypatch.setattr(backups.backups, name, value)
    monkeypatch.setattr(conf, "postgresql_programs", lambda: "folder")
    monkeypatch.setattr(conf, "environment", lambda: {"KEPT": "yes"})
    return found


PROGRAMS = Programs("folder", {"KEPT": "yes"})

# --- making one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "pause_ms"), [({}, 1_234), ({"pause_ms": 0}, 0), ({"pause_ms": 9}, 9)])
@pytest.mark.django_db
def test_a_backup_is_what_its_manifest_says(
    given: dict[str, int], pause_ms: int, store: SimpleNamespace, tmp_path: Path, clock: Clock
) -> None:
    target = tmp_path / "monday"
    made = backups.make(target, **given)
    assert made == Made(target, manifest(made_at_ms=clock.now), paused_ms=11, restarts=22, recorded=True)
    assert store.told == [("snackops.sqlite3", 0o600, PROGRAMS, standings.standing, pause_ms)]
    assert (target / MANIFEST).read_text() == made.manifest.text()
    assert (target / FILES["sqlite"]).read_bytes() == DATA
    assert [mode(target), *map(mode, sorted(target.iterdir()))] == [0o700, 0o600, 0o600]
    event = AuditEvent.objects.get()
    assert (event.at_ms, event.action, event.target, event.name, event.source, event.actor_id, event.detail) == (
        clock.now, "backup", "database", "backup", "cli", None, "{}",
    )  # fmt: skip


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.django_db
def test_one_that_cannot_be_made_leaves_nothing(error: Exception, store: SimpleNamespace, tmp_path: Path) -> None:
    store.copy = error
    said = refusal(lambda: backups.make(tmp_path / "monday"))
    assert said == f"The database cannot be read ({type(error).__name__}); no backup was kept."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.django_db
def test_one_of_a_database_that_takes_no_write_is_not_in_the_record(
    error: Exception, store: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_events: object) -> None:
        raise error

    monkeypatch.setattr(backups.chain, "append", refuse)
    assert backups.make(tmp_path / "monday").recorded is False


def test_a_place_is_new_and_its_folder_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    for taken in (tmp_path, tmp_path / "file", tmp_path / "nowhere"):
        said = refusal(lambda taken=taken: backups.make(taken))
        assert said == f"{taken} is there already; nothing is ever overwritten."
    for parent in (tmp_path / "none", tmp_path / "file"):
        said = refusal(lambda parent=parent: backups._must_be_new(parent / "monday"))
        assert said == f"There is no folder {parent}."
    backups._must_be_new(tmp_path / "monday")


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files and folders that were synced, in order."""
    names: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: names.append(Path(f"/proc/self/fd/{file}").readlink().name))
    return names


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path, synced: list[str]) -> None:
    target = tmp_path / "monday"
    partial = f"monday.partial-{os.getpid()}"
    with backups._appearing(target) as folder:
        assert (folder, mode(folder), target.exists()) == (tmp_path / partial, 0o700, False)
        (folder / "data").touch()
    assert [path.name for path in target.iterdir()] == ["data"]
    assert synced == [partial, tmp_path.name]
    with pytest.raises(KeyError):
        appear(tmp_path / "tuesday", meanwhile=raising(KeyError()))
    assert [path.name for path in tmp_path.iterdir()] == ["monday"]


def appear(target: Path, *, meanwhile: Callable[[], object] = lambda: None) -> None:
    with backups._appearing(target):
        meanwhile()


def test_one_that_cannot_appear_says_why(tmp_path: Path) -> None:
    target = tmp_path / "none" / "monday"
    assert refusal(lambda: appear(target)) == (
        f"{target} cannot be written: No such file or directory. Nothing was kept."
    )
    target = tmp_path / "monday"

    def another() -> None:
        target.mkdir()
        (target / "theirs").touch()

    assert refusal(lambda: appear(target, meanwhile=another)) == (
        f"{target} cannot be written: Directory not empty. Nothing was kept."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["monday"]
    assert [path.name for path in target.iterdir()] == ["theirs"]


def test_what_is_written_is_on_the_disk_before_it_counts(tmp_path: Path, synced: list[str]) -> None:
    backups._write(tmp_path / "text", "plain\n")
    assert (mode(tmp_path / "text"), (tmp_path / "text").read_bytes()) == (0o600, b"plain\n")
    with pytest.raises(UnicodeEncodeError):
        backups._write(tmp_path / "other", "雪")
    (tmp_path / "data").write_bytes(DATA)
    assert backups._synced_digest(tmp_path / "data") == SHA
    backups._sync(tmp_path)
    assert synced == ["text", "data", tmp_path.name]
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    backups._sync(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files


# --- putting one in place -------------------------------------------------------------------------------------------


def made(folder: Path, record: Manifest, data: bytes = DATA) -> Path:
    folder.mkdir()
    (folder / MANIFEST).write_text(record.text())
    (folder / record.file).write_bytes(data)
    return folder


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """In place of what is asked of a copy: it stands as it stood, with one problem and one remark."""
    asked: list[object] = []

    def look(expect: Anchor) -> tuple[list[str], list[str]]:
        asked.append(expect)
        return ["A problem."], ["A remark."]

    monkeypatch.setattr(standings, "standing", lambda: STANDING)
    monkeypatch.setattr(copy_checks, "look", look)
    return asked


def test_a_file_is_put_into_a_new_folder_and_proved(
    store: SimpleNamespace, looks: list[object], tmp_path: Path, synced: list[str]
) -> None:
    source, into = made(tmp_path / "monday", manifest()), tmp_path / "new"
    done = backups.restore(source, str(into))
    assert done == Restored(str(into / "snackops.sqlite3"), manifest(), ("A problem.",), ("A remark.",), None)
    younger, result = Anchor(9, "b" * 64), object()
    more = backups.restore(source, str(tmp_path / "more"), expect=younger, compare=lambda: result)  # type: ignore[arg-type,return-value]
    assert (more.place, more.result) == (str(tmp_path / "more" / "snackops.sqlite3"), result)
    assert looks == [STANDING.anchor, younger]
    partial = tmp_path / f"new.partial-{os.getpid()}"
    assert store.told[:2] == [str(partial / "snackops.sqlite3"), partial / "snackops.sqlite3"]
    assert synced[:3] == ["snackops.sqlite3", partial.name, tmp_path.name]
    assert (into / "snackops.sqlite3").read_bytes() == DATA
    assert [mode(into), mode(into / "snackops.sqlite3")] == [0o700, 0o600]


def test_a_dump_is_put_into_an_empty_database_and_proved(
    store: SimpleNamespace, looks: list[object], tmp_path: Path
) -> None:
    store.kind = "postgresql"
    source, younger, result = made(tmp_path / "monday", manifest("postgresql")), Anchor(9, "b" * 64), object()
    done = backups.restore(source, "orders", expect=younger, compare=lambda: result)  # type: ignore[arg-type,return-value]
    assert done == Restored("orders", manifest("postgresql"), ("A problem.",), ("A remark.",), result)  # type: ignore[arg-type]
    assert looks == [younger]
    assert store.told == ["orders", (source / "snackops.dump", PROGRAMS)]


def test_what_differs_from_the_manifest_comes_first(
    store: SimpleNamespace, looks: list[object], tmp_path: Path
) -> None:
    source = made(
        tmp_path / "monday", manifest(standing=Standing({"done": 1}, 2, 3, 99, 5, "d" * 64, Anchor(0, ""), ()))
    )
    with pytest.raises(BadManifest):  # an anchor that is none
        backups.restore(source, str(tmp_path / "new"))
    changed = Standing({"done": 1}, 2, 3, 99, 5, "d" * 64, STANDING.anchor, STANDING.migrations)
    source = made(tmp_path / "tuesday", manifest(standing=changed))
    problems = backups.restore(source, str(tmp_path / "new")).problems
    assert len(problems) == 2
    assert problems[0].startswith("Tokens are lower")
    assert problems[1] == "A problem."


@pytest.mark.parametrize("error", ERRORS)
def test_a_copy_that_cannot_be_read_whole_is_in_place_and_said_to_be_so(
    error: Exception, store: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standings, "standing", raising(error))
    source = made(tmp_path / "monday", manifest())
    done = backups.restore(source, str(tmp_path / "new"), compare=lambda: pytest.fail("asked"))
    assert (done.problems, done.remarks, done.result) == (
        (f"The copy cannot be read whole ({type(error).__name__}).",), (), None,
    )  # fmt: skip
    assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize(
    ("kind", "below", "sentence"),
    [
        ("postgresql", {"kind": "sqlite"}, "This backup is of postgresql, and DATABASE_URL names sqlite."),
        ("sqlite", {"kind": "postgresql"}, "This backup is of sqlite, and DATABASE_URL names postgresql."),
        ("sqlite", {"integrity": lambda: "Pages are lost."}, "Pages are lost. Nothing was restored."),
        *(
            ("sqlite", {"integrity": raising(error)}, "SQLite cannot read the file. Nothing was restored.")
            for error in ERRORS
        ),
        *(
            ("postgresql", {"kind": "postgresql", "inhabited": raising(error)},
             "There is no database 'new\\u96ea' to be had: make an empty one first (createdb).")
            for error in ERRORS
        ),
        ("postgresql", {"kind": "postgresql", "inhabited": lambda: True},
         "The database 'new\\u96ea' is not empty; a backup is never put over something."),
    ],
)  # fmt: skip
def test_nothing_is_left_in_the_new_place_by_what_is_refused(
    kind: str, below: dict[str, Any], sentence: str, store: SimpleNamespace, tmp_path: Path
) -> None:
    vars(store).update(below)
    source = made(tmp_path / "monday", manifest(kind))
    into = str(tmp_path / "new雪") if kind == "sqlite" else "new雪"
    assert refusal(lambda: backups.restore(source, into)) == sentence
    assert [path.name for path in tmp_path.iterdir()] == ["monday"]
    assert not any(isinstance(told, tuple) for told in store.told)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_data_that_is_not_what_was_backed_up_goes_nowhere(kind: str, store: SimpleNamespace, tmp_path: Path) -> None:
    store.kind = kind
    source = made(tmp_path / "monday", manifest(kind), DATA + b"!")
    into = str(tmp_path / "new")
    said = "The backup is damaged: its data is not what its manifest says. Nothing was restored."
    assert refusal(lambda: backups.restore(source, into)) == said
    (source / FILES[kind]).unlink()
    said = "The backup's data cannot be read or written: No such file or directory."
    assert refusal(lambda: backups.restore(source, into)) == said
    assert [path.name for path in tmp_path.iterdir()] == ["monday"]
    (source / MANIFEST).unlink()
    said = f"There is no backup in {source}: no manifest.json can be read there."
    assert refusal(lambda: backups.restore(source, into), BadManifest) == said
    if kind == "sqlite":
        made(tmp_path / "tuesday", manifest())
        assert refusal(lambda: backups.restore(tmp_path / "tuesday", str(tmp_path))) == (
            f"{tmp_path} is there already; nothing is ever overwritten."
        )


def test_data_is_read_once_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[bytes] = []
    digest = SimpleNamespace(update=pieces.append, hexdigest=lambda: hashlib.sha256(b"".join(pieces)).hexdigest())
    monkeypatch.setattr(backups, "hashlib", SimpleNamespace(sha256=lambda: digest))
    monkeypatch.setattr(backups, "CHUNK", 50)
    (tmp_path / "data").write_bytes(DATA)
    backups._check_digest(manifest(), tmp_path / "data", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == DATA
    assert pieces == [DATA[:50], DATA[50:]]


def test_of_a_manifest_no_more_is_read_than_one_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = made(tmp_path / "monday", manifest())
    size = len(manifest().text())
    monkeypatch.setattr(backups, "MANIFEST_BYTES_MAX", size)
    assert backups._manifest_of(source) == manifest()
    monkeypatch.setattr(backups, "MANIFEST_BYTES_MAX", size - 2)  # the last two are a brace and the line's end
    assert refusal(lambda: backups._manifest_of(source), BadManifest).endswith("it is damaged.")
