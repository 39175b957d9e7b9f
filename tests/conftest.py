"""The floor that every test stands on: the database, three people, a clock that is set by hand."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import hypothesis
import pytest
import pytest_django
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client, TransactionTestCase
from django.utils import timezone, translation

from queue_app import clock as product_clock
from queue_app.policy.rights import AUDITOR, OPERATOR, TEAM_LEAD
from queue_app.store import triggers
from tests.faults import numbers
from tests.sentences import refusals_are_sentences  # noqa: F401 - for every test

BASE_DIR = Path(__file__).resolve().parent.parent
START_MS = 1_800_000_000_000  # 2027-01-15 08:00 UTC; a clock that starts at 0 hides mistakes with zero
PASSWORD = "correct horse battery"  # of the three people, for tests of the sign-in

# A shared machine is slow at times: an example may take as long as it needs, the time-out of the test still holds.
hypothesis.settings.register_profile("house", deadline=None)
hypothesis.settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`-k F13` finds the tests of a case by its number in queue_app/docs/promises.md."""
    numbers.number(items)


def pytest_unconfigure() -> None:
    """End the process whose children die; remove this process's folder of run-time data."""
    from tests.engine import mortals

    mortals.end_all()
    shutil.rmtree(os.environ["SNACKOPS_DATA"], ignore_errors=True)


# --- the database ---------------------------------------------------------------------------------------------------
_flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]


def _flush_without_guards(case: TransactionTestCase) -> None:
    triggers.drop_all()  # insert-only tables refuse to be emptied; post_migrate, at the flush's end, restores them
    _flush(case)


TransactionTestCase._fixture_teardown = _flush_without_guards  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker) -> Iterator[None]:
    """PostgreSQL drops no database that somebody uses: a thread of the live server may hold its session to the end."""
    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
                [connection.settings_dict["NAME"]],
            )


@dataclass(frozen=True)
class RealDatabase:
    """The test database as other processes reach it."""

    url: str

    @property
    def environ(self) -> dict[str, str]:
        """The whole environment for a child process that works on this database."""
        return {**os.environ, "DATABASE_URL": self.url, "DJANGO_SETTINGS_MODULE": "snackops.settings"}


@pytest.fixture
def real_database(transactional_db: None) -> RealDatabase:
    """A database in which changes are committed, and its address for other processes."""
    config = connection.settings_dict
    if connection.vendor == "sqlite":
        return RealDatabase(f"sqlite:///{quote(config['NAME'])}")
    return RealDatabase(
        f"postgres://{config['USER']}:{config['PASSWORD']}@{config['HOST']}:{config['PORT']}/{config['NAME']}"
    )


@pytest.fixture(autouse=True)
def _no_language_or_zone_of_another_test() -> Iterator[None]:
    """A request through the test client leaves its language and zone on in this thread; the next test begins without."""
    yield
    translation.deactivate()
    timezone.deactivate()


# --- the clock ------------------------------------------------------------------------------------------------------
class Clock:
    """A clock that stands still until a test moves it; also the database's clock where that one decides."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._sequence = ""

    @property
    def now(self) -> int:
        """The instant in ms."""
        return self._now

    @now.setter
    def now(self, value: int) -> None:
        self._now = value
        if self._sequence:
            with connection.cursor() as cursor:
                cursor.execute("SELECT setval(%s, %s)", [self._sequence, value])

    def advance(self, ms: int) -> int:
        """Move on by some ms; returns the new instant."""
        self.now += ms
        return self.now

    def rule_the_database(self) -> None:
        """PostgreSQL asks its own clock. A sequence, because every session sees its value at once."""
        with connection.cursor() as cursor:
            cursor.execute("CREATE SEQUENCE IF NOT EXISTS tests_clock MINVALUE 0")
            cursor.execute(
                "CREATE OR REPLACE FUNCTION snackops_now_ms() RETURNS bigint LANGUAGE sql VOLATILE "
                "AS 'SELECT last_value FROM tests_clock'"
            )
        self._sequence = "tests_clock"
        self.now = self._now


@pytest.fixture
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A settable clock in place of `queue_app.clock.now_ms`: `.now` and `.advance(ms)`."""
    fake = Clock(START_MS)
    monkeypatch.setattr(product_clock, "now_ms", lambda: fake.now)
    marker = request.node.get_closest_marker("django_db")
    committed = bool(marker and marker.kwargs.get("transaction")) or bool(
        {"transactional_db", "live_server"} & set(request.fixturenames)
    )
    uses_database = marker is not None or committed or "db" in request.fixturenames
    if not (uses_database and connection.vendor == "postgresql"):
        yield fake
        return
    request.getfixturevalue("transactional_db" if committed else "db")
    fake.rule_the_database()
    yield fake
    if committed:  # otherwise the test's rollback does it
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION snackops_now_ms(); DROP SEQUENCE tests_clock")  # made anew after the flush


# --- three people ---------------------------------------------------------------------------------------------------
def _person(name: str, role: str) -> User:
    user = User.objects.create_user(name, password=PASSWORD)
    user.groups.add(Group.objects.get(name=role))
    return user


@pytest.fixture
def operator(db: None) -> User:
    """Oda, an operator: looks, investigates, asks for redrives, stops."""
    return _person("oda", OPERATOR)


@pytest.fixture
def team_lead(db: None) -> User:
    """Tom, a team lead: also approves and rejects."""
    return _person("tom", TEAM_LEAD)


@pytest.fixture
def auditor(db: None) -> User:
    """Ada, an auditor: reads and exports everything, changes nothing."""
    return _person("ada", AUDITOR)


@pytest.fixture
def as_user() -> Callable[[Client, User], Client]:
    """`as_user(client, user)`: the same client, signed in."""

    def sign_in(client: Client, user: User) -> Client:
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in
