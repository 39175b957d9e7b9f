"""PostgreSQL's own programs: pg_dump under a snapshot that the manifest is read from too, and pg_restore.

The password never stands on a command line, where everybody on the machine sees it: it goes by the environment.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from django.db import connection, transaction
from psycopg import pq
from psycopg.conninfo import make_conninfo

_DEBIAN = Path("/usr/lib/postgresql")
_LIBPQ = frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())
# Ours bound every wait of a page; a dump takes as long as it takes.
_NOT_FOR_PROGRAMS = frozenset({"options", "password", "tcp_user_timeout", "application_name"})


class NoProgram(Exception):
    """pg_dump or pg_restore is missing, too old, or failed; the message is one sentence."""


def server() -> str:
    """Version of the server."""
    return f"PostgreSQL {_major()}"


def program(name: str, folder: str) -> Path:
    """`pg_dump` or `pg_restore`, not older than the server: from `folder`, or PATH, or Debian's. Raises NoProgram."""
    if folder:
        found = [Path(folder) / name]
    else:
        on_path = shutil.which(name)
        found = [*([Path(on_path)] if on_path else []), *sorted(_DEBIAN.glob(f"*/bin/{name}"), reverse=True)]
    versions = {path: _version(path) for path in found}
    usable = [path for path, version in versions.items() if version >= _major()]
    if usable:
        return usable[0]
    newest = max(versions.values(), default=0)
    hint = "Name the folder of the right one with SNACKOPS_PG_BIN."
    if newest == 0:
        raise NoProgram(f"{name} is not there: install PostgreSQL's client programs. {hint}")
    raise NoProgram(f"{name} is of version {newest}, older than the server ({_major()}), and would not do. {hint}")


@contextmanager
def snapshot() -> Iterator[str]:
    """One state of the whole database for this transaction and for a program that is given its name. Reads only."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # it waits for the program
        cursor.execute("SELECT pg_export_snapshot()")
        yield str(cursor.fetchone()[0])


def dump(pg_dump: Path, target: Path, snapshot_name: str, environ: Mapping[str, str]) -> None:
    """Write the database as of the snapshot into the file. Raises NoProgram."""
    wanted = [f"--snapshot={snapshot_name}", "--format=custom", "--no-owner", "--no-privileges", f"--file={target}"]
    _run([pg_dump, *wanted, f"--dbname={_address()}"], environ)


def restore(pg_restore: Path, source: Path, environ: Mapping[str, str]) -> None:
    """Put a dump into the default database, all or nothing. Raises NoProgram."""
    wanted = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"]
    _run([pg_restore, *wanted, f"--dbname={_address()}", source], environ)


def _major() -> int:
    connection.ensure_connection()
    return int(connection.pg_version) // 10_000  # type: ignore[attr-defined]


def _version(path: Path) -> int:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r"\(PostgreSQL\) ([0-9]+)", said)
    return int(match[1]) if match else 0


def _address() -> str:
    parts = connection.get_connection_params()
    return make_conninfo(
        **{key: value for key, value in parts.items() if key in _LIBPQ and key not in _NOT_FOR_PROGRAMS}
    )


def _run(command: list[str | Path], environ: Mapping[str, str]) -> None:
    password = connection.settings_dict.get("PASSWORD") or ""
    env = {**environ, **({"PGPASSWORD": str(password)} if password else {}), "PGCONNECT_TIMEOUT": "20"}
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise NoProgram(f"{Path(command[0]).name} cannot be started: {error.strerror}.") from None
    if done.returncode != 0:  # its words may quote rows, so they are not shown
        raise NoProgram(f"{Path(command[0]).name} failed (exit status {done.returncode}); nothing was kept.")
