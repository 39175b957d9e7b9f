"""A process that bears the others of a storm by fork, so that a successor costs little: `python -m tests.storm.nursery`.

Reads one JSON order a line, {"start": kind, ...} or {"alive": pid}, and answers with a number: the process's id, or 1 and 0.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django


def _worker(name: str, kept: str) -> None:
    """The product's worker; each token that it was handed is written down, once its commit was answered."""
    from queue_app.services import leases

    plain = leases.finish_and_claim

    def told(*results: Any, **more: Any) -> Any:
        answers, taken = plain(*results, **more)
        _write(kept, *(f"{name} {lease.id} {lease.token}" for lease in taken))
        return answers, taken

    leases.finish_and_claim = told  # type: ignore[assignment]
    _command("worker", "--owner", name, "--concurrency", "2")


def _redriver(name: str) -> None:
    _command("redriver", "--owner", name)


def _receiver(db: str, port: int, fault: list[str]) -> None:
    faults = [word for one in fault for word in ("--fault", one)]
    _command("receiver", "--db", db, "--port", str(port), *faults)


def _dashboard(session: str, kept: str) -> None:
    """Pages as a browser polls them, ever again."""
    client = _client(session)
    while True:
        for path in ("/", "/live/", "/quarantine/", "/redrives/", "/workers/"):
            _write(kept, f"{path} {client.get(path).status_code}")


def _exporter(session: str, kept: str) -> None:
    """An export whose reader is slow, ever again."""
    client = _client(session)
    while True:
        answer = client.post("/quarantine/export/", {"format": "csv"})
        for _bite in answer.streaming_content if answer.streaming else ():
            time.sleep(0.1)  # the reader's slowness is the point
        answer.close()
        _write(kept, f"export {answer.status_code}")


def _client(session: str) -> Any:
    from django.test import Client

    client = Client(raise_request_exception=False, SERVER_NAME="localhost")
    client.cookies["sessionid"] = session
    return client


def _command(*words: str) -> None:
    from django.core.management import call_command

    call_command(*words)


def _write(kept: str, *lines: str) -> None:
    """Whole lines, in one write each: several processes share the file, and any of them may die."""
    file = os.open(kept, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for line in lines:
        os.write(file, f"{line}\n".encode())
    os.close(file)


KINDS: dict[str, Callable[..., None]] = {
    "worker": _worker,
    "redriver": _redriver,
    "receiver": _receiver,
    "dashboard": _dashboard,
    "exporter": _exporter,
}


def _born(order: dict[str, Any]) -> int:
    kind = order.pop("start")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        try:
            KINDS[kind](**order)
        except SystemExit as end:
            os._exit(int(end.code or 0))
        except BaseException as error:
            print(f"STORM {kind} {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(70)
        os._exit(0)
    return child


def _lives(pid: int) -> int:
    try:
        gone, _status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return int(gone == 0)


def main() -> None:
    """Serve orders until standard input ends."""
    django.setup()
    from django import test
    from django.urls import get_resolver

    from queue_app.management.commands import receiver, redriver, worker

    get_resolver().url_patterns  # noqa: B018 - loads every view before the first fork
    assert all((test, receiver, redriver, worker, Path))
    print("0", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(_born(order) if "start" in order else _lives(order["alive"]), flush=True)


if __name__ == "__main__":
    main()
