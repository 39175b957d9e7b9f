"""Backup while everything runs, and restore into a new place only (issue "Backup and restore").

A backup is one folder with the data and a manifest. It is written under another name and gets its own by one rename when it
is whole, so under a backup's name there is never half of one. Nothing is ever overwritten.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, InterfaceError

from queue_app import conf
from queue_app.policy.chain import Anchor
from queue_app.policy.manifests import BadManifest, Manifest, contradictions, parse
from queue_app.reads import standings
from queue_app.services import copy_checks
from queue_app.services.reconciling import Result
from queue_app.store import backups, chain, database
from queue_app.store.backups import FILES, CannotCopy, Programs
from queue_app.store.chain import Event

MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 1_000_000
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """A whole backup, and what it cost. `recorded`: its event stands in the record (else the database took no write)."""

    folder: Path
    manifest: Manifest
    paused_ms: int
    restarts: int
    recorded: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """A copy in its new place: `problems` must be looked at before it is used, `remarks` should be known."""

    place: str
    manifest: Manifest
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    result: Result | None


# --- making one -----------------------------------------------------------------------------------------------------


def make(target: Path, *, pause_ms: int | None = None) -> Made:
    """Back the default database up into the new folder `target`, with an event in the record.

    `pause_ms` bounds how long commits of SQLite may have to wait for it (None: half their own patience). A database that
    takes no write is backed up all the same, for then it is needed most. Raises CannotCopy with one sentence.
    """
    _must_be_new(target)
    recorded = _record()
    kind = backups.kind()
    with _appearing(target) as folder:
        file = folder / FILES[kind]
        file.touch(mode=0o600)
        made_at_ms = database.now_ms()
        limit_ms = backups.usual_pause_ms() if pause_ms is None else pause_ms
        try:
            copied = backups.copy(file, _programs(), standings.standing, pause_ms=limit_ms)
        except (DatabaseError, InterfaceError) as error:
            raise CannotCopy(f"The database cannot be read ({type(error).__name__}); no backup was kept.") from None
        sha256 = _synced_digest(file)
        size = file.stat().st_size
        manifest = Manifest(made_at_ms, kind, backups.server(), file.name, size, sha256, copied.standing)
        _write(folder / MANIFEST, manifest.text())
    return Made(target, manifest, copied.paused_ms, copied.restarts, recorded)


def _record() -> bool:
    try:
        with database.write():
            at_ms = database.now_ms()
            chain.append([Event(at_ms=at_ms, action="backup", target="database", name="backup", source="cli")])
    except (DatabaseError, InterfaceError):
        return False
    return True


# --- putting one in place -------------------------------------------------------------------------------------------


def restore(
    source: Path, into: str, *, expect: Anchor | None = None, compare: Callable[[], Result] | None = None
) -> Restored:
    """Put a backup into a new place and prove the copy: SQLite a new folder, PostgreSQL an empty database of that name
    on the configured server. `compare` asks the receiver; it is called with the copy as the default database.

    Raises CannotCopy or BadManifest with one sentence; then nothing is left in the new place.
    """
    manifest = _manifest_of(source)
    if manifest.database != backups.kind():
        raise CannotCopy(f"This backup is of {manifest.database}, and DATABASE_URL names {backups.kind()}.")
    if manifest.database == "postgresql":
        return _into_database(source / manifest.file, manifest, into, expect, compare)
    target = Path(into)
    _must_be_new(target)
    with _appearing(target) as folder:
        copy = folder / FILES["sqlite"]
        copy.touch(mode=0o600)
        _check_digest(manifest, source / manifest.file, copy)
        with backups.living_at(str(copy)):
            _check_pages()
            problems, remarks, result = _proved(manifest, expect, compare)
        backups.forget_side_files(copy)
        _sync(copy)
    return Restored(str(target / FILES["sqlite"]), manifest, problems, remarks, result)


def _into_database(
    file: Path, manifest: Manifest, name: str, expect: Anchor | None, compare: Callable[[], Result] | None
) -> Restored:
    _check_digest(manifest, file, None)
    with backups.living_at(name):
        try:
            inhabited = backups.inhabited()
        except (DatabaseError, InterfaceError):
            raise CannotCopy(f"There is no database {name!a} to be had: make an empty one first (createdb).") from None
        if inhabited:
            raise CannotCopy(f"The database {name!a} is not empty; a backup is never put over something.")
        backups.put(file, _programs())
        return Restored(name, manifest, *_proved(manifest, expect, compare))


def _proved(
    manifest: Manifest, expect: Anchor | None, compare: Callable[[], Result] | None
) -> tuple[tuple[str, ...], tuple[str, ...], Result | None]:
    try:
        found = contradictions(manifest.standing, standings.standing())
        problems, remarks = copy_checks.look(expect or manifest.standing.anchor)
    except (DatabaseError, InterfaceError) as error:
        return (f"The copy cannot be read whole ({type(error).__name__}).",), (), None
    return (*found, *problems), tuple(remarks), compare() if compare else None


def _check_pages() -> None:
    try:
        damaged = backups.integrity()
    except (DatabaseError, InterfaceError):
        damaged = "SQLite cannot read the file."
    if damaged:
        raise CannotCopy(f"{damaged} Nothing was restored.")


def _manifest_of(source: Path) -> Manifest:
    try:
        with (source / MANIFEST).open("rb") as file:
            return parse(file.read(MANIFEST_BYTES_MAX))
    except OSError:
        raise BadManifest(f"There is no backup in {source}: no {MANIFEST} can be read there.") from None


def _check_digest(manifest: Manifest, source: Path, copy: Path | None) -> None:
    """Read the data once, writing what is read into `copy`; CannotCopy unless it is byte for byte what was backed up."""
    digest = hashlib.sha256()
    try:
        with source.open("rb") as file, (copy or Path(os.devnull)).open("wb") as out:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
    except OSError as error:
        raise CannotCopy(f"The backup's data cannot be read or written: {error.strerror}.") from None
    if digest.hexdigest() != manifest.sha256:
        raise CannotCopy("The backup is damaged: its data is not what its manifest says. Nothing was restored.")


# --- files ----------------------------------------------------------------------------------------------------------


def _programs() -> Programs:
    return Programs(conf.postgresql_programs(), conf.environment())


def _must_be_new(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise CannotCopy(f"{target} is there already; nothing is ever overwritten.")
    if not target.parent.is_dir():
        raise CannotCopy(f"There is no folder {target.parent}.")


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A folder for its owner only that gets its name when the block ends well, and is removed when it does not."""
    folder = target.with_name(f"{target.name}.partial-{os.getpid()}")
    try:
        folder.mkdir(mode=0o700)
        try:
            yield folder
            _sync(folder)
            folder.rename(target)  # fails on everything but an empty folder
            _sync(target.parent)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise CannotCopy(f"{target} cannot be written: {error.strerror}. Nothing was kept.") from None


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    with path.open("w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _synced_digest(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Until a file's name, too, is on the disk, a power cut may take it away: folders are synced as well."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
