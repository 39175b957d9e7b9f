"""What lies below every write, step by step without a database: patience at the lock, stepping back, beginning anew.

That real transactions behave so is in tests/engine/test_locks.py, test_fairness.py and test_begun_anew.py.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from structlog.testing import capture_logs

from queue_app.policy.orders import MAX_INSTANT_MS
from queue_app.store import database
from tests.store.changed import Asked

LOCKED, OTHER = OperationalError("database is locked"), OperationalError("disk I/O error")


class Machine:
    """A SQLite connection, its transactions, a monotonic clock and chance, all in the hand of the test."""

    vendor = "sqlite"
    in_atomic_block = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings_dict: dict[str, Any] = {"OPTIONS": {"timeout": 0.25}}
        self.wrap_database_errors = nullcontext()
        self.now_ms, self.version = 1_000, 7
        self.said: list[object] = []
        self.begins: list[Exception | None] = []  # what becomes of each BEGIN; then all succeed
        monkeypatch.setattr(database, "connection", self)
        monkeypatch.setattr(database, "clock", SimpleNamespace(monotonic_ms=lambda: self.now_ms))
        monkeypatch.setattr(database, "transaction", SimpleNamespace(atomic=self.atomic))
        monkeypatch.setattr(database, "random", SimpleNamespace(uniform=lambda *bounds: bounds))
        monkeypatch.setattr(database, "time", SimpleNamespace(sleep=self.sleep))
        monkeypatch.setattr(database, "_neighbours", database._Neighbours())

    @property
    def connection(self) -> "Machine":
        assert "connected" in self.said
        return self

    def ensure_connection(self) -> None:
        self.said.append("connected")

    def execute(self, sql: str) -> "Machine":
        if sql != "PRAGMA data_version":
            self.said.append(sql)
        return self

    def fetchone(self) -> tuple[int]:
        return (self.version,)

    @contextmanager
    def atomic(self) -> Iterator[None]:
        error = self.begins.pop(0) if self.begins else None
        self.said.append("begin" if error is None else "no turn")
        if error:
            raise error
        yield
        self.said.append("commit")

    def sleep(self, bounds: tuple[float, float]) -> None:
        self.said.append(bounds)
        self.now_ms += 4


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """SQLite as far as it goes here."""
    return Machine(monkeypatch)


# --- the clock ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vendor", "is_it"), [("postgresql", True), ("sqlite", False), ("mysql", False)])
def test_the_vendor_decides_and_is_asked_once(monkeypatch: pytest.MonkeyPatch, vendor: str, is_it: bool) -> None:
    assert database.is_postgresql() is (connection.vendor == "postgresql")
    monkeypatch.setattr(database, "connection", SimpleNamespace(vendor=vendor))
    assert database.is_postgresql.__wrapped__() is is_it
    assert database.is_postgresql() is (connection.vendor == "postgresql"), "as long as the process lives"


@pytest.mark.parametrize(("postgresql", "now"), [(False, 5), (True, 7)])
def test_the_instant_is_the_machines_or_the_databases(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, now: int
) -> None:
    asked = Asked([("7",)], [("7",)]).stand_in(monkeypatch, database, postgresql=postgresql)
    monkeypatch.setattr(database, "clock", SimpleNamespace(now_ms=lambda: 5))
    assert [database.now_ms(), database.instant(None)] == [now, now]
    assert asked.statements == [("SELECT snackops_now_ms()", [])] * (2 if postgresql else 0)


@pytest.mark.parametrize("given_ms", [0, 1, MAX_INSTANT_MS])
def test_the_callers_instant_wins(given_ms: int) -> None:
    assert database.instant(given_ms) == given_ms


@pytest.mark.parametrize("given_ms", [-1, MAX_INSTANT_MS + 1, True, 1.0, "1"])
def test_what_is_no_instant_is_refused(given_ms: Any) -> None:
    with pytest.raises(ValueError, match="now_ms") as refused:
        database.instant(given_ms)
    assert str(refused.value) == (
        "now_ms must be a whole number of milliseconds from 0 to 253,402,300,799,999, or None."
    )


# --- one write transaction --------------------------------------------------------------------------------------------

PATIENT, USUAL = "PRAGMA busy_timeout = 0", "PRAGMA busy_timeout = 250"


@pytest.mark.parametrize(
    ("begins", "limit_ms", "said", "ends"),
    [
        ([], 0, ["begin"], True),
        ([LOCKED], 1, ["no turn", (0.0003, 0.001), "begin"], False),
        ([LOCKED] * 3, 9, [*["no turn", (0.0003, 0.001)] * 3, "begin"], False),
        ([LOCKED] * 4, 8, [*["no turn", (0.0003, 0.001)] * 2, "no turn"], LOCKED),
        ([LOCKED], 0, ["no turn"], LOCKED),
        ([OTHER], 9, ["no turn"], OTHER),
        ([LOCKED, OTHER], 9, ["no turn", (0.0003, 0.001), "no turn"], OTHER),
    ],
)
def test_the_lock_is_waited_for_in_short_steps_up_to_a_limit(
    machine: Machine, begins: list[Exception | None], limit_ms: int, said: list[object], ends: object
) -> None:
    machine.begins = begins.copy()
    with ExitStack() as stack:
        try:
            given: object = database._begin_patiently(stack, limit_ms)
        except OperationalError as error:
            given = error
        assert machine.said == ["connected", PATIENT, *said, USUAL]
        assert given is ends
    assert machine.said[-1] == ("commit" if ends in (True, False) else USUAL)


def test_the_usual_time_out_is_that_of_the_settings_or_twenty_seconds(machine: Machine) -> None:
    machine.settings_dict["OPTIONS"] = {}
    with ExitStack() as stack:
        database._begin_patiently(stack, 1)
    assert machine.said == ["connected", PATIENT, "begin", "PRAGMA busy_timeout = 20000", "commit"]


def test_one_that_steps_back_does_so_after_its_commit(machine: Machine) -> None:
    with database.write():
        machine.said.append("work")
    assert machine.said == ["connected", PATIENT, "begin", USUAL, "work", "commit"]
    machine.said.clear()
    machine.version += 1
    with database.write():
        machine.said.append("work")
    assert machine.said == ["connected", PATIENT, "begin", USUAL, "work", "commit", (0.0005, 0.0015)]
    machine.begins = [LOCKED]
    machine.said.clear()
    with database.write(limit_ms=5):
        machine.said.append("work")
    assert machine.said[-2:] == ["work", "commit"], "it has waited itself"


def test_one_that_fails_does_not_step_back(machine: Machine) -> None:
    with database.write():
        pass
    machine.version += 1
    with pytest.raises(ZeroDivisionError), database.write():
        1 / 0  # noqa: B018
    assert machine.said[-1] == USUAL


@pytest.mark.parametrize(("limit", "tries"), [({}, 5_001), ({"limit_ms": 0}, 1), ({"limit_ms": 5}, 3)])
def test_who_never_gets_the_lock_is_told(machine: Machine, limit: dict[str, int], tries: int) -> None:
    machine.begins = [LOCKED] * 6_000
    with pytest.raises(OperationalError, match="locked"), database.write(**limit):
        machine.said.append("work")
    assert machine.said.count("no turn") == tries
    assert "work" not in machine.said


@pytest.mark.parametrize(("vendor", "inside"), [("postgresql", False), ("sqlite", True), ("postgresql", True)])
def test_inside_another_and_on_postgresql_it_is_a_plain_transaction(
    machine: Machine, vendor: str, inside: bool
) -> None:
    machine.vendor, machine.in_atomic_block = vendor, inside  # type: ignore[misc]
    with database.write():
        machine.said.append("work")
    assert machine.said == ["begin", "work", "commit"]


# --- turns between writers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "turns",
    [
        # when, what the data's version is, whether the lock was free at once, whether a pause follows
        [(1_000, 5, True, False), (1_199, 5, True, False), (1_200, 5, True, True), (1_399, 5, True, False),
         (1_400, 5, True, True)],
        [(1_000, 0, True, False), (1_001, 1, True, True), (1_100, 1, True, True), (1_101, 1, True, False),
         (1_299, 1, True, False), (1_300, 1, True, True)],
        [(1_000, 5, False, False), (1_099, 5, True, True), (1_100, 5, True, False)],
        [(1_000, 5, True, False), (1_150, 5, False, False), (1_250, 5, True, False), (1_349, 5, True, False),
         (1_350, 5, True, True)],
        [(1_000, 5, True, False), (1_010, 4, True, True), (1_020, 4, False, False), (1_119, 4, True, True)],
    ],
)  # fmt: skip
def test_when_a_writer_steps_back(machine: Machine, turns: list[tuple[int, int, bool, bool]]) -> None:
    machine.ensure_connection()
    neighbours = database._Neighbours()
    for machine.now_ms, machine.version, at_once, steps_back in turns:
        assert neighbours.steps_back(at_once) is steps_back, machine.now_ms


# --- time for a command -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("using", [None, "default", "other"])
def test_a_command_takes_its_time_and_gives_it_back(monkeypatch: pytest.MonkeyPatch, using: str | None) -> None:
    both = {name: Asked() for name in ("default", "other")}
    sessions = {name: SimpleNamespace(answer_s=5) for name in both}
    for name, fake in both.items():
        fake.connection = sessions[name]  # type: ignore[attr-defined]
    monkeypatch.setattr(database, "connections", both)
    named = () if using is None else (using,)
    chosen = using or "default"
    database.take_time(*named)
    assert {name: (fake.statements, sessions[name].answer_s) for name, fake in both.items()} == {
        name: ([("SET statement_timeout = 0", [])], None) if name == chosen else ([], 5) for name in both
    }
    for _ in range(2):
        both[chosen].statements.clear()
        database.take_the_usual_time(*named)
        assert both[chosen].statements == [("RESET statement_timeout", [])]
    assert {name: vars(session) for name, session in sessions.items()} == {
        name: {} if name == chosen else {"answer_s": 5} for name in both
    }


def test_sqlite_knows_no_such_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Asked()
    fake.vendor = "sqlite"
    monkeypatch.setattr(database, "connections", {"default": fake})
    database.take_time()
    database.take_the_usual_time()
    assert fake.statements == []


# --- once more --------------------------------------------------------------------------------------------------------


def failure(cause: Exception | None) -> OperationalError:
    """An error of Django's with what the driver said."""
    error = OperationalError("x")
    error.__cause__ = cause
    return error


SERIAL, DEADLOCK = psycopg.errors.SerializationFailure("x"), psycopg.errors.DeadlockDetected("x")
NO_CONFLICT = [failure(None), failure(psycopg.errors.LockNotAvailable("x")), failure(psycopg.OperationalError("gone"))]


@pytest.mark.parametrize(("error", "is_one"), [(failure(SERIAL), True), (failure(DEADLOCK), True)] + [
    (error, False) for error in [*NO_CONFLICT, failure(ValueError("x"))]
])  # fmt: skip
def test_what_is_a_conflict(error: OperationalError, is_one: bool) -> None:
    assert database.is_conflict(error) is is_one


class Service:
    """Fails as often as it is told, and keeps what it was given each time."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), list[tuple[Any, ...]]()

    def of(self) -> Callable[..., object]:
        """The service as a function of its own name."""

        def gathers(*args: Any, **kwargs: Any) -> object:
            """Its words."""
            self.calls.append((*(list(value) if isinstance(value, Iterator) else value for value in args), kwargs))
            if self.errors:
                raise self.errors.pop(0)
            return len(self.calls)

        return database.retried(gathers)


@pytest.mark.parametrize("conflicts", range(6))
def test_a_service_is_begun_anew_whole_and_five_times_at_most(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    monkeypatch.setattr(database.random, "uniform", lambda low, high: (low + high) / 3)
    service = Service(*[failure((SERIAL, DEADLOCK)[n % 2]) for n in range(conflicts)])
    acts = service.of()
    assert (acts.__name__, acts.__doc__) == ("gathers", "Its words.")
    with capture_logs() as logs:
        if conflicts < 5:
            assert acts(iter([1, 2]), "x", key=3) == conflicts + 1
        else:
            with pytest.raises(OperationalError):
                acts(iter([1, 2]), "x", key=3)
    tries = min(conflicts, 4)
    assert service.calls == [([1, 2], "x", {"key": 3})] * (tries + 1)
    assert machine.said == pytest.approx([0.005, 0.01, 0.02, 0.04][:tries])
    assert logs == [
        {"event": "begun_anew", "log_level": "info", "service": "gathers", "tried": n + 1} for n in range(tries)
    ]


@pytest.mark.parametrize("error", [*NO_CONFLICT, ValueError("x")])
def test_what_is_no_conflict_is_told_at_once(machine: Machine, error: Exception) -> None:
    service = Service(error)
    with pytest.raises(type(error)) as told:
        service.of()(1)
    assert told.value is error
    assert (service.calls, machine.said) == ([(1, {})], [])


def test_inside_anothers_transaction_it_passes_through(machine: Machine) -> None:
    machine.in_atomic_block = True  # type: ignore[misc]
    service = Service(failure(SERIAL))
    with pytest.raises(OperationalError):
        service.of()(iter([1]), key=2)
    assert (service.calls, machine.said) == ([([1], {"key": 2})], [])
    assert service.of()(iter([1]), key=2) == 2


@pytest.mark.parametrize(("count", "text"), [(1, "%s"), (2, "%s, %s"), (3, "%s, %s, %s")])
def test_so_many_places_for_values(count: int, text: str) -> None:
    assert database.placeholders(count) == text
