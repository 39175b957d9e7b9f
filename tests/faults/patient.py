"""The test's side of a process whose children move orders while their disk fails (`tests.faults.sick`)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import BASE_DIR

WRITES = "pwrite64,fdatasync,fsync,ftruncate"


class Patient:
    """Children do as told on an SQLite file, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        environ = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder / 'nobody.sqlite3'}",  # each order names its file
            "SNACKOPS_DATA": str(folder),
            "DJANGO_SETTINGS_MODULE": "snackops.settings",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.sick"],
            env=environ, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def does(self, file: Path, *moves: list[Any], **how: Any) -> list[Any]:
        """What each move answered: its value, or `Error: text`. `how`: inject, trace, limit, nobody (see `sick`)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"file": str(file), "moves": moves, **how}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "failed" not in answer, answer
        return answer["answers"]  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=30) == 0
        self._process.stdout.close()


def traceable() -> str:
    """'' where system calls can be traced, else a sentence: the tests then prove less, and print it."""
    if shutil.which("strace") is None:
        return "There is no strace on this machine: no system call was counted or made to fail."
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return (
        "" if tried.returncode == 0 else "This machine lets nobody trace: no system call was counted or made to fail."
    )
