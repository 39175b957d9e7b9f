"""Several statements in one round trip to PostgreSQL, BEGIN and COMMIT included.

A turn of one job is five statements in a transaction. Sent one by one they cost seven waits for the server, and the driver's
cursors more processor time than the server takes: 1.1 ms of 2.9. Here they go to libpq at once, in its pipeline mode; the
server stops at the first that fails, so a COMMIT behind it is not carried out.

Each text is prepared once in a session. The driver itself prepares nothing beside it (`prepare_threshold` is off), or its
DEALLOCATE ALL after a rollback would take these away.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.waiting import Ready, Wait

from queue_app.store.statements import Rows, Statement

_BAD = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)
_known: WeakKeyDictionary[Any, dict[str, bytes]] = WeakKeyDictionary()


def fire(session: Any, statements: Sequence[Statement], *, commit: bool) -> list[Rows]:
    """The rows of each statement. Begins a transaction if the session is to have one, and with `commit` ends it.

    Raises psycopg's errors: that of the first statement that failed; OperationalError for a session that was lost.
    """
    pgconn = session.pgconn
    commands: list[Callable[[], None]] = []
    if not session.autocommit and pgconn.transaction_status == pq.TransactionStatus.IDLE:
        commands.append(partial(pgconn.send_query_params, _begin(session), None))
    known = _known.setdefault(session, {})
    prepared: dict[str, bytes] = {}
    planned: dict[int, str] = {}  # the place of each preparation's answer
    asked: list[int] = []  # the place of each statement's answer
    if any(sql not in known for sql, _ in statements):
        # a plan is kept: one made while the tables are small must not read them whole when they have grown
        commands.append(partial(pgconn.send_query_params, b"SET LOCAL enable_seqscan = off", None))
    for sql, values in statements:
        name = known.get(sql) or prepared.get(sql)
        if name is None:
            name = prepared[sql] = b"engine_%d" % (len(known) + len(prepared))
            planned[len(commands)] = sql
            commands.append(partial(pgconn.send_prepare, name, _numbered(sql)))
        asked.append(len(commands))
        commands.append(partial(pgconn.send_query_prepared, name, [_dumped(value) for value in values]))
    if commit:
        commands.append(partial(pgconn.send_query_params, b"COMMIT", None))
    results = _carried_out(session, commands)
    # what was prepared outlives the transaction, also when a later command fails: its name is taken
    known |= {sql: prepared[sql] for place, sql in planned.items() if results[place].status == pq.ExecStatus.COMMAND_OK}
    for result in results:
        if result.status in _BAD:
            raise errors.error_from_result(result, encoding="utf-8")
    transformer = Transformer(session)
    answers = []
    for place in asked:
        transformer.set_pgresult(results[place])
        answers.append(transformer.load_rows(0, results[place].ntuples, tuple))
    return answers


def _carried_out(session: Any, commands: Sequence[Callable[[], None]]) -> list[Any]:
    """One result for each command. A session that may still owe an answer is closed: nobody could tell whose it is."""
    pgconn = session.pgconn
    try:
        with session.lock:
            pgconn.enter_pipeline_mode()
            for command in commands:
                command()
            pgconn.pipeline_sync()
            results: list[Any] = session.wait(_exchange(pgconn))
            pgconn.exit_pipeline_mode()
    except BaseException:
        pgconn.finish()
        raise
    return results


def _exchange(pgconn: Any) -> Generator[Wait, Ready, list[Any]]:
    """Send what libpq holds, taking answers in meanwhile, until the last one is here: one result for each command.

    Not the driver's own `pipeline_communicate`, which looks at the socket before each command and sends it by itself.
    """
    results: list[Any] = []
    unsent = pgconn.flush()
    while True:
        ready = yield Wait.RW if unsent else Wait.R
        if ready & Ready.R:
            pgconn.consume_input()
        if unsent:
            unsent = pgconn.flush()
        ended = False  # a command's result is followed by None; a second one says that the next is not here yet
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            if result is not None:
                results.append(result)
            elif ended:
                break
            ended = result is None


def _begin(session: Any) -> bytes:
    level: psycopg.IsolationLevel | None = session.isolation_level
    return b"BEGIN" if level is None else b"BEGIN ISOLATION LEVEL " + level.name.replace("_", " ").encode()


def _numbered(sql: str) -> bytes:
    """PostgreSQL's own marks: $1, $2, ..."""
    first, *rest = sql.split("%s")
    return (first + "".join(f"${place}{text}" for place, text in enumerate(rest, 1))).encode()


def _dumped(value: object) -> bytes | None:
    """A value as PostgreSQL reads it; the statement says its type."""
    if type(value) is str:
        return value.encode()
    if type(value) is int:
        return b"%d" % value
    if value is None:
        return None
    if type(value) is list:
        return f"{{{','.join(map(_element, value))}}}".encode()
    raise TypeError(f"The engine's statements take text, numbers, None and lists of them, not {type(value).__name__}.")


def _element(value: object) -> str:
    if type(value) is str:
        if "\\" in value or '"' in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    if type(value) is int:
        return str(value)
    if value is None:
        return "NULL"
    raise TypeError(f"A list of the engine's statements holds text, numbers and None, not {type(value).__name__}.")
