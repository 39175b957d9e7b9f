"""A process whose children die by SIGKILL at a chosen point of a move: `python -m tests.engine.mortal`.

Reads one JSON order a line: {"moves", "move", "arguments", "point", "inside", "trips"}; answers [exit status, answer]. A
child is forked for each, so that a death costs milliseconds. `moves` is the module that knows the move, by its function
`moves()`. Points: before every statement (BEGIN and COMMIT included; after one is before the next), after COMMIT, and one
more after all, before the answer is told. With `inside`, on SQLite what triggers do inside a statement counts as well, and
on PostgreSQL before and after each statement are two points. With `trips`, on PostgreSQL only: before and after each wait
for the server, while nobody listens to cursors, so that statements travel together as they usually do.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import django


class Doom:
    """Counts points; at the chosen one there is no `finally` and no `atexit` any more."""

    def __init__(self, point: int, *, inside: bool) -> None:
        self._left = point
        self._inside = inside

    def __call__(self, *traced: object) -> None:
        if not self._inside and str(*traced[:1]).startswith("-- "):
            return  # of a trigger: the statement that it belongs to is one point
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, connection: Any, *, trips: bool) -> None:
        """From now on the connection counts."""
        connection.ensure_connection()
        if trips:
            session = connection.connection
            wait = session.wait

            def around_wait(*call: Any, **more: Any) -> Any:
                self()
                answer = wait(*call, **more)
                self()
                return answer

            session.wait = around_wait
            return
        if connection.vendor == "sqlite":
            connection.connection.set_trace_callback(self)
            return
        commit = connection._commit

        def around_commit() -> None:
            self()
            commit()
            self()

        def around_statement(execute: Callable[..., Any], *call: Any) -> Any:
            self()
            answer = execute(*call)
            if self._inside:
                self()
            return answer

        connection._commit = around_commit
        connection.execute_wrappers.append(around_statement)


def moves() -> dict[str, Callable[..., Any]]:
    """The engine's moves by name."""
    from queue_app.services import leases, queue

    return {
        "enqueue": queue.enqueue,
        "enqueue_many": queue.enqueue_many,
        "claim": lambda **more: [[lease.id, lease.token] for lease in queue.claim(**more)],
        "finish": queue.finish,
        "finish_and_claim": lambda results, **more: queue.finish_and_claim([queue.Result(*r) for r in results], **more)[
            0
        ],
        "renew": queue.renew,
        "release": queue.release,
        "record_unknown": leases.record_unknown,
        "redrive": queue.redrive,
    }


def _live_and_die(order: dict[str, Any], pipe: int) -> NoReturn:
    from django.contrib.auth.models import User
    from django.db import connection

    arguments = order["arguments"]
    if "approved_by" in arguments:
        arguments["approved_by"] = User.objects.get(pk=arguments["approved_by"])
    move = importlib.import_module(order["moves"]).moves()[order["move"]]
    doom = Doom(order["point"], inside=order["inside"])
    doom.arm(connection, trips=order["trips"])
    answer = move(**arguments)
    doom()
    os.write(pipe, json.dumps(answer).encode())
    os._exit(0)


def main() -> None:
    """Serve orders until standard input ends."""
    django.setup()
    from django.contrib.auth.models import User  # noqa: F401 - every child would read it anew

    print("ready", flush=True)
    for line in sys.stdin:
        importlib.import_module(json.loads(line)["moves"]).moves()  # read once, here, and not by every child
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _live_and_die(json.loads(line), write)
            except BaseException as error:
                os.write(write, json.dumps(f"{type(error).__name__}: {error}").encode())
                os._exit(1)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), json.loads(answer) if answer else None]), flush=True)


if __name__ == "__main__":
    main()
