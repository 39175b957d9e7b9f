"""The receiver's database file: how it is opened, shared between threads, and when it counts as unusable."""

import contextlib
import queue
import sqlite3
from collections.abc import Iterator
from pathlib import Path

# Says whose file it is, so that a path typed wrong never mixes the receiver's tables into another program's database.
APPLICATION_ID = 0x534E5243
BUSY_MS = 5_000

SCHEMA = (
    """
    CREATE TABLE orders (
        id TEXT NOT NULL PRIMARY KEY,
        quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 1000000),
        applied_at_ms INTEGER,
        requests INTEGER NOT NULL CHECK (requests > 0)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE totals (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        keys INTEGER NOT NULL, stock INTEGER NOT NULL, writes INTEGER NOT NULL, requests INTEGER NOT NULL
    ) STRICT
    """,
    "INSERT INTO totals VALUES (1, 0, 0, 0, 0)",
    "CREATE TABLE run_time_faults (only INTEGER PRIMARY KEY CHECK (only = 1), rules TEXT NOT NULL) STRICT",
    "CREATE TRIGGER orders_stay BEFORE DELETE ON orders BEGIN SELECT RAISE(ABORT, 'records are kept'); END",
    f"PRAGMA application_id = {APPLICATION_ID}",
)


class Unusable(Exception):
    """The database cannot be used now; the message is one sentence. `full` says that only space is missing."""

    def __init__(self, sentence: str, *, full: bool = False) -> None:
        super().__init__(sentence)
        self.full = full


class Database:
    """A file of orders, totals and faults, used by any number of threads and processes at once.

    Each transaction borrows a connection of its own: two threads in one sqlite3 connection would share a transaction.
    """

    def __init__(self, path: str | Path) -> None:
        """Open or create the file. Raises `Unusable` for a directory, a foreign or broken file, an impossible path."""
        self.path = Path(path).absolute()
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        if self.path.is_dir():
            raise Unusable(f"The database path {self.path} is a directory.")
        if not self.path.parent.is_dir():
            raise Unusable(f"The database path {self.path} is in a directory that does not exist.")
        try:
            self._prepare()
        except sqlite3.Error as error:
            raise Unusable(f"The database {self.path} cannot be used ({name_of(error)}).") from error
        self._inode = self.path.stat().st_ino

    def connect(self) -> sqlite3.Connection:
        """A new connection whose commits survive a power cut."""
        link = self._open("rw")  # never creates a file in place of a lost one
        try:
            _make_durable(link)
        except sqlite3.Error:
            link.close()
            raise
        return link

    def _open(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
        )

    def _prepare(self) -> None:
        link = self._open("rwc")
        try:
            link.execute("BEGIN")
            known = self._has_tables(link)
            link.execute("COMMIT")
            _make_durable(link)  # after the look at whose file it is: this may change a journal mode stored in it
            link.execute("BEGIN IMMEDIATE")  # shows at once if the file cannot be written
            if not known and not self._has_tables(link):
                for statement in SCHEMA:
                    link.execute(statement)
            link.execute("COMMIT")
        finally:
            link.close()

    def _has_tables(self, link: sqlite3.Connection) -> bool:
        """Whether the receiver's tables are there. Raises `Unusable` if there are another program's."""
        [(tables,)] = link.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        [(owner,)] = link.execute("PRAGMA application_id").fetchall()
        if tables and owner != APPLICATION_ID:
            raise Unusable(f"The file {self.path} is the database of another program.")
        return bool(tables)

    @contextlib.contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end of the block, gone whole on any exception.

        IMMEDIATE takes the write lock at once, where waiting (up to 5 s) is safe. Raises `Unusable` for every error of
        the database, among them a full disk and a file that was deleted or replaced under the running process.
        """
        link: sqlite3.Connection | None = None
        try:
            self._check_place()
            link = self._borrow()
            link.execute(begin)
            yield link
            link.execute("COMMIT")
        except sqlite3.Error as error:
            full = name_of(error) == "SQLITE_FULL"
            sentence = "The receiver's disk is full." if full else "The receiver's database is not usable now."
            raise Unusable(sentence, full=full) from error
        finally:
            if link is not None:
                self._give_back(link)

    def close(self) -> None:
        """Close every idle connection; call it when no transaction runs any more."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _check_place(self) -> None:
        """SQLite would go on writing into an unlinked file, and every acknowledged order would be lost."""
        try:
            same = self.path.stat().st_ino == self._inode
        except OSError:
            same = False
        if not same:
            raise Unusable("The receiver's database file was removed or replaced.")

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self.connect()

    def _give_back(self, link: sqlite3.Connection) -> None:
        """Keep a connection without an open transaction; close one whose block failed, which also rolls back."""
        if link.in_transaction:
            link.close()
        else:
            self._idle.put(link)


def _make_durable(link: sqlite3.Connection) -> None:
    """PERSIST, because DELETE unlinks the journal without a sync of the directory: a power cut could undo that."""
    link.execute("PRAGMA journal_mode = PERSIST").fetchall()
    link.execute("PRAGMA synchronous = FULL")


def name_of(error: sqlite3.Error) -> str:
    """SQLite's own name of the cause, such as SQLITE_FULL: safe to show, unlike a message that may quote data."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
