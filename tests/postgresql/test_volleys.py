"""A volley: what goes over the wire once, what stays prepared, and what becomes of the session when something fails."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import errors, pq
from psycopg.waiting import Ready, Wait

from queue_app.store.statements import Statement
from queue_app.store.volleys import _begin, _dumped, _exchange, _known, fire

IDLE, OPEN, FAILED = (
    pq.TransactionStatus.IDLE,
    pq.TransactionStatus.INTRANS,
    pq.TransactionStatus.INERROR,
)
Session = psycopg.Connection[Any]
ONE, TWO, THREE = "SELECT 1 + %s::int", "SELECT 2 + %s::int, %s::text", "SELECT 3"
SCANS = "SELECT current_setting('enable_seqscan')"


@pytest.fixture
def sessions() -> Iterator[Any]:
    """Sessions straight on the driver; whatever the server remarks in one is an error, for it is a statement too many."""
    config = connection.settings_dict
    made: list[Session] = []
    heard: list[str] = []

    def make(**options: Any) -> Session:
        made.append(psycopg.connect(host=config["HOST"], port=config["PORT"], user=config["USER"], dbname="postgres"))
        made[-1].autocommit = options.get("autocommit", False)
        made[-1].add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        return made[-1]

    yield make
    for session in made:
        session.close()
    assert heard == []


@pytest.fixture
def session(sessions: Any) -> Session:
    return sessions()


def prepared(session: Session) -> list[tuple[str, str, list[str]]]:
    """Name, text and types of everything that the server keeps for this session, in the order of its making."""
    asked = "SELECT name, statement, parameter_types::text[] FROM pg_prepared_statements ORDER BY prepare_time, name"
    rows = session.pgconn.exec_(asked.encode())
    transformer = psycopg.adapt.Transformer(session)
    transformer.set_pgresult(rows)
    return [(name, sql, types) for name, sql, types in transformer.load_rows(0, rows.ntuples, tuple)]


def status(session: Session) -> pq.TransactionStatus:
    return session.pgconn.transaction_status


@pytest.mark.parametrize(
    ("autocommit", "commits", "after"),
    [
        (False, [False], OPEN),
        (False, [False, False], OPEN),
        (False, [True], IDLE),
        (False, [False, True], IDLE),
        (False, [True, True], IDLE),
        (True, [False], IDLE),
    ],
)
def test_a_transaction_is_begun_once_where_there_is_to_be_one_and_ended_only_when_told(
    autocommit: bool, commits: list[bool], after: pq.TransactionStatus, sessions: Any
) -> None:
    session = sessions(autocommit=autocommit)
    statement = "SELECT 5" if not autocommit else THREE
    if autocommit:  # SET LOCAL beside what is new to a session has no transaction to be local to
        _known[session] = {THREE: b"three"}
        session.pgconn.prepare(b"three", THREE.encode())
    for commit in commits:
        assert len(fire(session, [(statement, [])], commit=commit)) == 1
    assert status(session) == after
    assert session.pgconn.pipeline_status == pq.PipelineStatus.OFF


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (None, "read committed"),
        (psycopg.IsolationLevel.READ_COMMITTED, "read committed"),
        (psycopg.IsolationLevel.REPEATABLE_READ, "repeatable read"),
        (psycopg.IsolationLevel.SERIALIZABLE, "serializable"),
    ],
)
def test_the_transaction_has_the_sessions_isolation(
    level: psycopg.IsolationLevel | None, said: str, session: Session
) -> None:
    session.isolation_level = level
    assert _begin(session) == (b"BEGIN" if level is None else b"BEGIN ISOLATION LEVEL " + said.upper().encode())
    assert fire(session, [("SELECT current_setting('transaction_isolation')", [])], commit=True) == [[(said,)]]


def test_every_text_is_prepared_once_in_a_session_and_known_from_then_on(sessions: Any) -> None:
    session, other = sessions(), sessions()
    some: list[Statement] = [(ONE, [4]), (TWO, [5, "x"]), (ONE, [6])]
    assert fire(session, some, commit=True) == [[(5,)], [(7, "x")], [(7,)]]
    first = [
        ("engine_0", "SELECT 1 + $1::int", ["integer"]),
        ("engine_1", "SELECT 2 + $1::int, $2::text", ["integer", "text"]),
    ]
    assert prepared(session) == first
    assert fire(session, [(THREE, []), *some], commit=False) == [[(3,)], [(5,)], [(7, "x")], [(7,)]]
    assert prepared(session) == [*first, ("engine_2", "SELECT 3", [])]
    assert _known[session] == {ONE: b"engine_0", TWO: b"engine_1", THREE: b"engine_2"}
    assert fire(other, [(THREE, [])], commit=True) == [[(3,)]]
    assert prepared(other) == [("engine_0", "SELECT 3", [])]


@pytest.mark.parametrize(
    ("some", "kept", "error"),
    [
        ([(ONE, [1]), ("SELECT nowhere", []), (THREE, [])], [ONE], errors.UndefinedColumn),
        ([("SELECT nowhere", []), (ONE, [1])], [], errors.UndefinedColumn),
        ([("SELECT 1 / %s::int", [0]), (ONE, [1])], ["SELECT 1 / %s::int"], errors.DivisionByZero),
        ([(ONE, [1]), (ONE, ["many"])], [ONE], errors.InvalidTextRepresentation),
    ],
)
def test_the_first_that_fails_ends_them_all_and_what_was_prepared_by_then_stays(
    some: list[Statement], kept: list[str], error: type[Exception], session: Session
) -> None:
    with pytest.raises(error):
        fire(session, some, commit=True)
    assert status(session) == FAILED
    session.rollback()
    assert list(_known[session]) == kept
    assert [name for name, *_ in prepared(session)] == [name.decode() for name in _known[session].values()]
    assert fire(session, [(ONE, [1]), (THREE, [])], commit=True) == [[(2,)], [(3,)]]


def test_the_words_of_an_error_are_read_as_the_server_wrote_them(session: Session) -> None:
    with pytest.raises(errors.InvalidTextRepresentation, match='"チップス"'):
        fire(session, [(ONE, ["チップス"])], commit=False)


def test_what_is_new_to_a_session_is_planned_without_reading_whole_tables_and_nothing_else_is(session: Session) -> None:
    asked: list[Statement] = [(SCANS, [])]
    assert fire(session, asked, commit=True) == [[("off",)]]
    assert fire(session, asked, commit=False) == [[("on",)]]
    assert fire(session, [*asked, (THREE, [])], commit=True) == [[("off",)], [(3,)]]
    assert fire(session, asked, commit=True) == [[("on",)]]


def test_more_than_the_sockets_hold_goes_both_ways_at_once(session: Session) -> None:
    words = [letter * 3_000_000 for letter in "abcde"]
    some: list[Statement] = [("SELECT %s::text, n FROM generate_series(1, 2) AS n", [word]) for word in words]
    assert fire(session, some, commit=True) == [[(word, 1), (word, 2)] for word in words]
    assert fire(session, [(THREE, [])] * 500, commit=True) == [[(3,)]] * 500


def test_a_value_that_is_refused_leaves_the_session_as_it_was(session: Session) -> None:
    with pytest.raises(TypeError) as refused:
        fire(session, [(ONE, [1.5])], commit=True)
    assert str(refused.value) == "The engine's statements take text, numbers, None and lists of them, not float."
    with pytest.raises(TypeError) as refused:
        _dumped([1, 1.5])
    assert str(refused.value) == "A list of the engine's statements holds text, numbers and None, not float."
    assert (session.closed, status(session)) == (False, IDLE)
    assert fire(session, [(ONE, [1])], commit=True) == [[(2,)]]


def test_a_session_that_may_still_owe_an_answer_is_closed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fire(session, [(ONE, [1])], commit=True)
    assert session.closed


def test_a_session_that_the_server_ended_is_an_error_of_the_connection(sessions: Any) -> None:
    session, other = sessions(), sessions()
    other.execute("SELECT pg_terminate_backend(%s)", [session.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        fire(session, [(ONE, [1])], commit=True)
    assert session.closed


def test_rows_are_read_as_the_session_reads_them(session: Session) -> None:
    session.adapters.register_loader(
        "int4", session.adapters.get_loader(psycopg.adapters.types["text"].oid, pq.Format.TEXT)
    )
    assert fire(session, [(ONE, [1])], commit=True) == [[("2",)]]


SENT = SimpleNamespace(status=pq.ExecStatus.TUPLES_OK)
SYNC = SimpleNamespace(status=pq.ExecStatus.PIPELINE_SYNC)


class Libpq:
    """What libpq does, as written: `flushes` says after each flush whether something is unsent, `arrived` what came."""

    def __init__(self, flushes: list[int], arrived: list[list[object]]) -> None:
        self.flushes, self.arrived = flushes, arrived
        self.here: list[object] = []

    def flush(self) -> int:
        return self.flushes.pop(0)

    def consume_input(self) -> None:
        self.here += self.arrived.pop(0)

    def is_busy(self) -> int:
        return self.here == ["the rest of a row is not here"]

    def get_result(self) -> object:
        return self.here.pop(0) if self.here else None


@pytest.mark.parametrize(
    ("flushes", "arrived", "readies", "waits"),
    [
        ([0], [[SENT, None, SENT, None, SYNC]], "R", "R"),
        ([0], [[SENT], [None], [SENT, None], [SYNC]], "RRRR", "RRRR"),
        ([0], [[SENT, None], [SENT, None, SYNC]], "RR", "RR"),
        ([0], [[SENT], [None, SENT, None, SYNC]], "RR", "RR"),
        ([1, 1, 0], [[SENT, None, SENT, None, SYNC]], "WWR", "WWR"),
        ([1, 1, 0], [[SENT, None], [SENT, None, SYNC]], "BWR", "WWR"),
        ([1, 0], [[SENT, None], [SENT, None, SYNC]], "BR", "WR"),
    ],
)
def test_it_sends_while_something_is_unsent_and_reads_until_the_last_answer(
    flushes: list[int], arrived: list[list[object]], readies: str, waits: str
) -> None:
    """`readies`: for reading, writing or both; `waits`: for reading alone, or for writing, too."""
    libpq = Libpq([*flushes], [[*part] for part in arrived])
    asked, answers = carried_through(libpq, readies)
    assert answers == [SENT, SENT]
    assert asked == [{"R": Wait.R, "W": Wait.RW}[sign] for sign in waits]
    assert (libpq.flushes, libpq.arrived) == ([], [])


def carried_through(libpq: Libpq, readies: str) -> tuple[list[Wait], list[object] | None]:
    going = _exchange(libpq)
    asked = [next(going)]
    try:
        for sign in readies:
            asked.append(going.send({"R": Ready.R, "W": Ready.W, "B": Ready.RW}[sign]))
    except StopIteration as ended:
        return asked, ended.value
    return asked, None


@pytest.mark.parametrize(
    ("value", "there"),
    [
        (None, None),
        (0, b"0"),
        (-7, b"-7"),
        ("", b""),
        ("ä", "ä".encode()),
        ([], b"{}"),
        ([1, None, -2], b"{1,NULL,-2}"),
        (["a", None, 'b"c', "d\\e", '\\"', "NULL"], b'{"a",NULL,"b\\"c","d\\\\e","\\\\\\"","NULL"}'),
    ],
)
def test_a_value_goes_as_postgresql_writes_it(value: object, there: bytes | None) -> None:
    assert _dumped(value) == there
