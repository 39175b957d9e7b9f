"""The parts of a backup one by one: SQLite's two ways of copying, and what the store says of each failure."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections

from queue_app.policy.chain import Anchor
from queue_app.policy.manifests import Standing
from queue_app.store import backups, backups_postgresql, backups_sqlite
from queue_app.store.backups import CannotCopy, Copied, Programs
from queue_app.store.backups_postgresql import NoProgram
from queue_app.store.backups_sqlite import RESTARTS, TooLong
from tests.backups.conftest import living_in_file

STANDING = Standing({"done": 1}, 2, 3, 4, 5, "d" * 64, Anchor(1, "a" * 64), ("auth.0001_initial",))
PROGRAMS = Programs("folder", {"KEPT": "yes"})


@pytest.fixture(autouse=True)
def programs() -> None:
    """None of the real ones here."""


def noted[T](told: list[object], what: object, answer: T) -> T:
    """Answers, and writes down that it was asked."""
    told.append(what)
    return answer


# --- SQLite: small steps, and one lock ------------------------------------------------------------------------------


class Source:
    """A connection that says how many pages are left after each step."""

    def __init__(self, remaining: list[int], *, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.remaining, self.meanwhile = remaining, meanwhile
        self.told: list[object] = []

    def backup(self, target: object, *, progress: Callable[[int, int, int], None], **given: object) -> None:
        self.told.append((target, given))
        for left in self.remaining:
            self.meanwhile()
            progress(0, left, 100)

    def execute(self, statement: str) -> "Source":
        self.told.append(statement)
        return self

    def fetchall(self) -> list[object]:
        self.told.append("fetched")
        return []


@pytest.mark.parametrize(
    ("remaining", "restarts"),
    [
        ([], 0),
        ([0], 0),
        ([9, 6, 3, 0], 0),
        ([9, 9, 0], 1),  # as far as before: it began anew
        ([9, 6, 7, 3, 0], 1),
        ([9, 10, 1, 2, 0], 2),
        ([9] * (RESTARTS + 1), RESTARTS),
        ([9] * (RESTARTS + 2), RESTARTS + 1),
        ([9] * 20, RESTARTS + 1),  # it gave up
    ],
)
def test_a_step_that_leaves_no_less_than_the_one_before_is_a_beginning_anew(
    remaining: list[int], restarts: int
) -> None:
    source, target = Source(remaining), object()
    assert backups_sqlite._in_steps(source, target, 7) == restarts  # type: ignore[arg-type]
    assert source.told == [(target, {"pages": 7, "sleep": 0.01})]


@pytest.mark.parametrize(("pause_ms", "took_ms"), [(300, 300), (None, 0)])
def test_the_whole_is_copied_in_one_read_transaction_that_ends(
    pause_ms: int | None, took_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 5_000

    def later() -> None:
        nonlocal now
        now += 100

    monkeypatch.setattr(backups_sqlite.clock, "monotonic_ms", lambda: now)
    source, target = Source([2, 1, 0], meanwhile=later), object()
    assert backups_sqlite._under_one_lock(source, target, 7, pause_ms) == took_ms  # type: ignore[arg-type]
    looks = ["BEGIN", "SELECT 1 FROM sqlite_schema LIMIT 1", "fetched"]
    assert source.told == [*looks, (target, {"pages": 7}), "ROLLBACK"]
    if pause_ms is not None:
        with pytest.raises(TooLong):
            backups_sqlite._under_one_lock(source, target, 7, 299)  # type: ignore[arg-type]
        assert source.told[5:] == [*looks, (target, {"pages": 7}), "ROLLBACK"]


def test_a_connection_is_its_own_and_makes_no_file(tmp_path: Path) -> None:
    odd = tmp_path / "100% odd?name#1.sqlite3"
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        backups_sqlite._open(odd)
    odd.touch()
    with closing(backups_sqlite._open(odd)) as link:
        assert link.isolation_level is None
        assert link.execute("PRAGMA busy_timeout").fetchall() == [(20_000,)]
        assert [Path(row[2]).name for row in link.execute("PRAGMA database_list")] == [odd.name]


@pytest.mark.parametrize("wal", [False, True])
@pytest.mark.django_db
def test_a_copy_is_one_file_that_needs_no_other(wal: bool, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite3"
    target.touch()
    with living_in_file(file, wal=wal) as house:
        house.ensure_connection()
        assert backups_sqlite.copy(target, pause_ms=0) == (0, 0)
    with closing(sqlite3.connect(target)) as link:
        assert link.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert link.execute("SELECT name FROM queues").fetchall() == [("snacks",)]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["copy.sqlite3"]


@pytest.mark.parametrize(
    ("wal", "restarts", "asked", "given"),
    [(False, RESTARTS, False, None), (False, RESTARTS + 1, True, 250), (True, 0, True, None)],
)
@pytest.mark.django_db
def test_the_lock_is_asked_for_where_steps_do_not_lead_to_an_end(
    wal: bool,
    restarts: int,
    asked: bool,
    given: int | None,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    target = tmp_path / "copy.sqlite3"
    target.touch()
    monkeypatch.setattr(backups_sqlite, "_in_steps", lambda _source, _copied, pages: noted(seen, pages, restarts))
    monkeypatch.setattr(
        backups_sqlite, "_under_one_lock", lambda _source, _copied, pages, pause: noted(seen, (pages, pause), 44)
    )
    with living_in_file(file, wal=wal) as house:
        house.ensure_connection()
        assert backups_sqlite.copy(target, pause_ms=250, step_pages=3) == (44 if asked else 0, restarts)
    assert seen == ([] if wal else [3]) + ([(3, given)] if asked else [])


@pytest.mark.django_db
def test_pages_in_order_are_no_word_and_others_are_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backups_sqlite.server() == f"SQLite {sqlite3.sqlite_version}"
    with living_in_file(file) as house:
        assert backups_sqlite.integrity() == ""
        with house.cursor() as cursor:  # an index that lacks its row
            cursor.execute("PRAGMA writable_schema = ON")
            cursor.execute("UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'jobs') "
                           "WHERE name = 'queues'")  # fmt: skip
    with living_in_file(file):
        assert backups_sqlite.integrity() == "SQLite finds the file damaged (integrity_check)."


# --- the store: which way, and in which words -----------------------------------------------------------------------


@contextmanager
def vendor(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(backups, "is_postgresql", lambda: name == "postgresql")
        patch.setattr(backups_postgresql, "server", lambda: "PostgreSQL 15")
        patch.setattr(backups_sqlite, "server", lambda: "SQLite 3")
        yield


def test_the_kind_and_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, server in (("sqlite", "SQLite 3"), ("postgresql", "PostgreSQL 15")):
        with vendor(name, monkeypatch):
            assert (backups.kind(), backups.server()) == (name, server)


@pytest.mark.parametrize(("options", "ms"), [({}, 10_000), ({"timeout": 3}, 1_500), ({"timeout": "0.5"}, 250)])
def test_a_copy_may_take_half_of_what_a_commit_waits(
    options: dict[str, object], ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    assert backups.usual_pause_ms() == ms


class Calls:
    """What the programs were called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[object] = []
        monkeypatch.setattr(backups, "is_postgresql", lambda: True)
        monkeypatch.setattr(backups_postgresql, "program", lambda *given: noted(self.told, given, Path("found")))
        monkeypatch.setattr(backups_postgresql, "snapshot", self.snapshot)
        monkeypatch.setattr(backups_postgresql, "dump", lambda *given: self.told.append(given))
        monkeypatch.setattr(backups_postgresql, "restore", lambda *given: self.told.append(given))

    @contextmanager
    def snapshot(self) -> Iterator[str]:
        self.told.append("begins")
        yield "0001"
        self.told.append("ends")


def test_postgresql_dumps_what_its_snapshot_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    target = Path("target")
    looked = backups.copy(target, PROGRAMS, lambda: noted(calls.told, "looks", STANDING), pause_ms=1)
    assert looked == Copied(STANDING, paused_ms=0, restarts=0)
    dumped = (Path("found"), target, "0001", PROGRAMS.environ)
    assert calls.told == [("pg_dump", "folder"), "begins", "looks", dumped, "ends"]
    calls.told.clear()
    backups.put(Path("source"), PROGRAMS)
    assert calls.told == [("pg_restore", "folder"), (Path("found"), Path("source"), PROGRAMS.environ)]
    assert backups.integrity() == ""


@pytest.mark.parametrize("on_postgresql", [True, False])
def test_what_sqlite_finds_is_asked_of_sqlite_alone(on_postgresql: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "is_postgresql", lambda: on_postgresql)
    monkeypatch.setattr(backups_sqlite, "integrity", lambda: "Damaged.")
    assert backups.integrity() == ("" if on_postgresql else "Damaged.")


class Named(sqlite3.Error):
    sqlite_errorname = "SQLITE_FULL"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (NoProgram("There is no pg_dump."), "There is no pg_dump."),
        (TooLong(), "Writers never left 12,345 ms for the copy. Try again when less is written, allow a longer pause, or "
         "use WAL (SNACKOPS_SQLITE_WAL), where a copy holds nobody up."),
        (Named(), "SQLite cannot copy it (SQLITE_FULL); no backup was kept."),
        (sqlite3.DatabaseError(), "SQLite cannot copy it (DatabaseError); no backup was kept."),
    ],
)  # fmt: skip
def test_why_there_is_no_copy_is_one_sentence(error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(backups, "is_postgresql", lambda: isinstance(error, NoProgram))
    for owner, name in ((backups_sqlite, "copy"), (backups_postgresql, "program")):
        monkeypatch.setattr(owner, name, fail)
    with pytest.raises(CannotCopy) as refused:
        backups.copy(Path("target"), PROGRAMS, lambda: STANDING, pause_ms=12_345)
    assert str(refused.value) == sentence
    if isinstance(error, NoProgram):
        with pytest.raises(CannotCopy) as refused:
            backups.put(Path("source"), PROGRAMS)
        assert str(refused.value) == sentence


@pytest.mark.django_db
def test_sqlite_is_looked_at_in_the_copy_itself(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    target = tmp_path / "copy.sqlite3"

    def copy(to: Path, **options: object) -> tuple[int, int]:
        given.append((to, options))
        to.write_bytes(file.read_bytes())
        for ending in ("-journal", "-wal", "-shm", "-other"):
            Path(f"{to}{ending}").touch()
        return 11, 22

    def look() -> Standing:
        given.append(connection.settings_dict["NAME"])
        return STANDING

    monkeypatch.setattr(backups_sqlite, "copy", copy)
    with living_in_file(file):
        assert backups.copy(target, PROGRAMS, look, pause_ms=33) == Copied(STANDING, 11, 22)
        assert given == [(target, {"pause_ms": 33}), str(target)]
        left = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
        assert left == ["copy.sqlite3", "copy.sqlite3-other"]
        monkeypatch.setattr(backups_sqlite, "integrity", lambda: "Damaged.")
        with pytest.raises(CannotCopy) as refused:
            backups.copy(target, PROGRAMS, look, pause_ms=33)
    assert str(refused.value) == (
        "Damaged. No backup was kept: go back to the last good one, and keep the file for whoever looks."
    )


@pytest.mark.django_db
def test_living_at_a_place_is_with_the_usual_settings_and_ends(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.sqlite3"
    with living_in_file(file) as house:
        assert backups.inhabited()
        monkeypatch.setitem(house.settings_dict["OPTIONS"], "pool", {"min_size": 1})
        with backups.living_at(str(empty)):
            there = connections["default"]
            options = {name: value for name, value in house.settings_dict["OPTIONS"].items() if name != "pool"}
            assert (there.settings_dict["NAME"], there.settings_dict["OPTIONS"]) == (str(empty), options)
            assert not backups.inhabited()
            assert there.connection is not None
        assert (connections["default"], there.connection) == (house, None)
        with pytest.raises(OperationalError), backups.living_at(str(tmp_path / "no folder" / "x")):
            backups.inhabited()
        assert connections["default"] is house


def test_side_files_are_forgotten_whether_they_are_there_or_not(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    for ending in ("", "-journal", "-wal", "-shm", "-other"):
        Path(f"{path}{ending}").touch()
    for _ in range(2):
        backups.forget_side_files(path)
        assert sorted(left.name for left in tmp_path.iterdir()) == ["x.sqlite3", "x.sqlite3-other"]
