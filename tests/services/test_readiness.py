"""What an installation lacks, and that a connection in doubt is given up."""

import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError, connection
from django.db.migrations.executor import MigrationExecutor

from queue_app.services import readiness
from queue_app.store import triggers

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("what", ["plan", "missing"])
@pytest.mark.parametrize("error", [DatabaseError, InterfaceError, OperationalError, ProgrammingError])
def test_a_database_that_does_not_answer_is_what_lacks_and_its_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch, what: str, error: type[Exception]
) -> None:
    def refuse(*_given: object) -> None:
        raise error("out of reach")

    closed: list[bool] = []
    monkeypatch.setattr(connection, "close", lambda: closed.append(True))
    if what == "plan":
        monkeypatch.setattr(MigrationExecutor, "migration_plan", refuse)
    else:
        monkeypatch.setattr(triggers, "missing", refuse)
    assert readiness.lacks() == ["database"]
    assert closed == [True]


def test_migrations_are_named_before_triggers_and_nothing_lacks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(connection, "close", lambda: closed.append(True))
    assert readiness.lacks() == []
    monkeypatch.setattr(triggers, "missing", lambda: ["jobs_guard_delete"])
    assert readiness.lacks() == ["triggers"]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'queue_app'")
    assert readiness.lacks() == ["migrations"]
    assert closed == []
