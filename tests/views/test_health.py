"""Health for programs: alive, and ready only with database, migrations and triggers."""

import pytest
from django.db import OperationalError, connection
from django.test import Client

from queue_app.store import triggers

pytestmark = pytest.mark.django_db


def test_a_process_that_answers_is_alive_and_asks_the_database_nothing(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert Client().get("/livez").status_code == 200


def test_an_installation_in_order_is_ready() -> None:
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_a_missing_trigger_is_no_readiness() -> None:
    triggers.drop(connection, "jobs_guard_delete")
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.text) == (503, "triggers\n")


def test_a_missing_migration_is_no_readiness() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'queue_app'")
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.text) == (503, "migrations\n")


def test_a_database_out_of_reach_is_no_readiness_and_no_detail(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> list[str]:
        raise OperationalError("unable to open /secret/path")

    monkeypatch.setattr(triggers, "missing", refuse)
    monkeypatch.setattr(connection, "close", lambda: None)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.text) == (503, "database\n")
