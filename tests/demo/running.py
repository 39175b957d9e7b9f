"""A demo started as its README says, for a test: its output, its pages, its database."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Self

import httpx2

BASE_DIR = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(true: Callable[[], object], what: str, limit_s: float = 60) -> None:
    """Wait for a condition, with a limit."""
    pause = threading.Event()
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        pause.wait(0.1)


def environ(data: Path) -> dict[str, str]:
    """The environment of a newcomer: data of its own, and the default database whatever the tests run on."""
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**kept, "SNACKOPS_DATA": str(data), "DJANGO_SETTINGS_MODULE": "snackops.settings"}


class Demo:
    """`manage.py demo` as a process; `lines` is what it printed so far."""

    def __init__(self, data: Path, *options: str, port: int | None = None) -> None:
        self.data = data
        self.port = port or free_port()
        self.receiver_port = free_port()
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [
                sys.executable,
                "manage.py",
                "demo",
                f"--port={self.port}",
                f"--receiver-port={self.receiver_port}",
                *options,
            ],
            cwd=BASE_DIR,
            env=environ(data),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def output(self) -> str:
        """All that it printed so far."""
        return "".join(self.lines)

    def up(self) -> Self:
        """Wait until it says where it runs."""
        eventually(lambda: "Ctrl-C stops everything" in self.output or self.process.poll() is not None, "the welcome")
        assert self.process.poll() is None, self.output
        return self

    def password(self, name: str) -> str:
        """The printed password."""
        found = re.search(rf"name {name}\s+password (\S+)", self.output)
        assert found, self.output
        return found.group(1)

    def sign_in(self, name: str) -> httpx2.Client:
        """A client signed in with the printed password."""
        client = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", follow_redirects=True, trust_env=False)
        page = client.get("/sign-in/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, page
        answer = client.post(
            "/sign-in/",
            data={"username": name, "password": self.password(name), "csrfmiddlewaretoken": token.group(1)},
            headers={"Referer": f"http://127.0.0.1:{self.port}/sign-in/"},
        )
        assert answer.status_code == 200, answer.status_code
        return client

    def sql(self, statement: str) -> list[tuple]:
        """Rows by a plain connection."""
        with closing(sqlite3.connect(f"file:{self.data}/snackops.sqlite3?mode=ro", uri=True, timeout=20)) as connection:
            return connection.execute(statement).fetchall()

    def manage(self, *arguments: str, stdin: str = "") -> str:
        """Run a command on the same data."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=BASE_DIR,
            env=environ(self.data),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def children(self) -> list[int]:
        """Process ids of its children."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def stop(self, how: int = signal.SIGINT) -> int:
        """Stop it as Ctrl-C does; its exit status."""
        self.process.send_signal(how)
        status = self.process.wait(timeout=60)
        self._reader.join(timeout=10)
        assert self.process.stdout
        self.process.stdout.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.stop()
        elif self.process.stdout and not self.process.stdout.closed:
            self._reader.join(timeout=10)
            self.process.stdout.close()
