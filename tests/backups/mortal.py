"""A backup that is killed at every step: `python -m tests.backups.mortal FOLDER` prints `n status` for each.

The n-th child dies by SIGKILL before its n-th call to the file system that makes, syncs or names something; the first
that lives to the end is the last. Children are forked before anything is connected.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

STEPS = 40


def main(folder: Path) -> None:
    """Fork a child for each point."""
    django.setup()
    for n in range(1, STEPS):
        pid = os.fork()
        if pid == 0:
            _die_at(n)
            from queue_app.services import backups

            backups.make(folder / f"backup-{n}")
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(n, status, flush=True)
        if status == 0:
            return


def _die_at(n: int) -> None:
    left = n

    def mortal(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return counted

    for owner, name in ((os, "fsync"), (os, "mkdir"), (os, "utime"), (Path, "rename")):
        setattr(owner, name, mortal(getattr(owner, name)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
