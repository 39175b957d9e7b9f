"""The processes of the demo: started, watched, started again when they die, and stopped together."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from queue_app import clock

STOP_S = 40
ROOM_BYTES = 262_144  # less than this is a full disk for a database with its journal
RESTARTS_IN_A_MINUTE = 5
_PR_SET_PDEATHSIG = 1


class CannotStart(Exception):
    """A process of the demo does not come up; the message is a sentence."""


@dataclass
class Child:
    """One process: its command, the file that takes its output, and when it was restarted."""

    name: str
    command: list[str]
    env: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    restarts: deque[int] = field(default_factory=deque)

    def start(self) -> None:
        """Start it in a session of its own, so that Ctrl-C reaches only the parent."""
        with self.log.open("ab") as output:
            self.process = _popen(self.command, self.env, output)

    def ended(self) -> str | None:
        """How it ended, in words, or None while it runs."""
        code = self.process.poll() if self.process else None
        if code is None:
            return None
        return f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"


def _popen(command: list[str], env: dict[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Children:
    """All processes of one demo, in the order of their start; they are stopped in the opposite order."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._children: list[Child] = []

    def add(self, child: Child) -> Child:
        """Start a process and watch it from now on."""
        child.start()
        self._children.append(child)
        return child

    def watch(self, stop: threading.Event, folder: Path) -> bool:
        """Look after the processes and the room in `folder` until `stop` is set; False when one cannot be kept alive."""
        full = False
        while not stop.wait(0.3):
            was_full, full = full, shutil.disk_usage(folder).free < ROOM_BYTES
            if full and not was_full:
                self._say(
                    f"The disk of {folder} is full: orders wait and nothing is lost. Make room; no restart needed."
                )
            for child in self._children:
                how = child.ended()
                if how is not None and not self._again(child, how):
                    return False
        return True

    def _again(self, child: Child, how: str) -> bool:
        now = clock.monotonic_ms()
        while child.restarts and child.restarts[0] < now - 60_000:
            child.restarts.popleft()
        if len(child.restarts) >= RESTARTS_IN_A_MINUTE:
            self._say(f"The {child.name} {how} again and again: stopping. Its last words are in {child.log}.")
            return False
        child.restarts.append(now)
        self._say(f"The {child.name} {how}: starting it again. No order is lost by this.")
        child.start()
        return True

    def stop(self) -> None:
        """End every process: politely first, and after 40 s for good."""
        for child in reversed(self._children):
            if child.process and child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        end = clock.monotonic_ms() + STOP_S * 1000
        for child in reversed(self._children):
            if child.process is None:
                continue
            try:
                child.process.wait(timeout=max(0.1, (end - clock.monotonic_ms()) / 1000))
            except subprocess.TimeoutExpired:
                self._say(f"The {child.name} does not end: killing it. What it had in hand comes back by itself.")
                child.process.kill()
                child.process.wait()


def wait_until_up(url: str, child: Child, limit_s: float = 30) -> None:
    """Wait until the address answers 200. Raises CannotStart when the process ends or the limit passes."""
    end = clock.monotonic_ms() + limit_s * 1000
    pause = threading.Event()
    while clock.monotonic_ms() < end:
        how = child.ended()
        if how is not None:
            raise CannotStart(f"The {child.name} {how}. Its last words: {_last_line(child.log)}")
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - an address of our own
                return
        except (urllib.error.URLError, OSError):
            pause.wait(0.1)
    raise CannotStart(f"The {child.name} does not answer at {url}. Its output is in {child.log}.")


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "none."


def python(*arguments: str) -> list[str]:
    """The command line of this installation's manage.py."""
    return [sys.executable, str(Path(__file__).resolve().parents[2] / "manage.py"), *arguments]


def environment(**extra: str) -> dict[str, str]:
    """The environment of a child: this one's, plus `extra`."""
    return {**os.environ, "PYTHONUNBUFFERED": "1", **extra}
