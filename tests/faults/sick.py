"""A process whose children move orders while their disk fails: `python -m tests.faults.sick`.

Reads one JSON order a line: {"file", "moves": [[name, arguments], ...]} and at most one of "inject" (what `strace -e
inject=` is given), "trace" (where to write the calls down), "limit" (the largest file in bytes, RLIMIT_FSIZE), "nobody"
(without the right to write the file); the move "repair" lifts what fails. Answers {"answers": [...]}.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

NOBODY = 65_534
CALLS = "pread64,pwrite64,fdatasync,fsync,ftruncate"


def _moves() -> dict[str, Callable[..., Any]]:
    from queue_app.services import queue

    return {
        "enqueue": queue.enqueue,
        "enqueue_many": queue.enqueue_many,
        "claim": lambda **more: [[lease.id, lease.token] for lease in queue.claim(**more)],
        "finish": queue.finish,
        "redrive": _redrive,
        "states": _states,
        "sql": _sql,
    }


def _redrive(approved_by: int, **more: Any) -> str:
    from django.contrib.auth.models import User

    from queue_app.services import queue

    queue.redrive(approved_by=User.objects.get(pk=approved_by), **more)
    return "redriven"


def _sql(statement: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement)


def _states() -> dict[str, str]:
    from queue_app.models import Job

    return dict(Job.objects.values_list("id", "state"))


def _live(order: dict[str, Any], go: int, tell: int, pipe: int) -> None:
    """In the child: wait to be told to go, make the moves, say what became of them."""
    from django.db import connection

    connection.settings_dict["NAME"] = order["file"]
    if order.get("nobody") and os.getuid() == 0:
        os.setuid(NOBODY)
    connection.ensure_connection()
    os.write(tell, b"?")
    os.read(go, 1)
    if "limit" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["limit"], resource.RLIM_INFINITY))
    answers: list[Any] = []
    moves = _moves()
    for name, arguments in order["moves"]:
        if name == "repair":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            os.write(tell, b"!")
            os.read(go, 1)
            continue
        try:
            answers.append(moves[name](**arguments))
        except Exception as error:
            answers.append(f"{type(error).__name__}: {error}")
    os.write(pipe, json.dumps({"answers": answers}).encode())


def _traced(child: int, inject: str, kept: str) -> "subprocess.Popen[bytes]":
    more = ["-e", f"inject={inject}"] if inject else []
    command = ["strace", "-qq", "-f", "-o", kept, "-e", f"trace={CALLS}", *more, "-p", str(child)]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    status = Path(f"/proc/{child}/status")
    while "TracerPid:\t0" in status.read_text():
        assert tracer.poll() is None, "strace does not hold the process"
        time.sleep(0.001)
    return tracer


def _serve(order: dict[str, Any]) -> str:
    go_read, go = os.pipe()
    told, tell = os.pipe()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            _live(order, go_read, tell, write)
        except BaseException as error:
            os.write(write, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(0)
    os.close(write)
    os.close(tell)
    tracer = None
    while os.read(told, 1) == b"?":
        if "inject" in order or "trace" in order:
            tracer = _traced(child, order.get("inject", ""), order.get("trace", "/dev/null"))
        os.write(go, b".")
    if tracer is not None:
        tracer.send_signal(signal.SIGTERM)
        tracer.wait()
    with contextlib.suppress(BrokenPipeError):
        os.write(go, b".")
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    for one in (go_read, go, told):
        os.close(one)
    return answer


def main() -> None:
    """Serve orders until standard input ends."""
    django.setup()
    _moves()
    print("ready", flush=True)
    for line in sys.stdin:
        print(_serve(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
