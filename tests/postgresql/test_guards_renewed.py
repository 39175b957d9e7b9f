"""What an earlier release left behind goes when the guards are renewed: two triggers that count the same are one too many."""

import pytest
from django.db import connection

from queue_app.store import triggers
from tests.store.rows import through_django

pytestmark = pytest.mark.django_db


def test_a_trigger_that_is_in_no_list_any_more_is_found_and_goes() -> None:
    for name, function in (("jobs_count_old", "snackops_jobs_moved"), ("plans_guard_old", "snackops_plans_guard")):
        table = name.split("_")[0]
        of_rows = (
            "REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT" if table == "jobs" else "FOR EACH ROW"
        )
        through_django(f"CREATE TRIGGER {name} AFTER UPDATE ON {table} {of_rows} EXECUTE FUNCTION {function}()")
    assert triggers.missing() == ["jobs_count_old", "plans_guard_old"]
    triggers.create_all()
    assert triggers.missing() == []
    assert {"jobs_count_old", "plans_guard_old"} & set(triggers._present(connection)) == set()


def test_without_the_tables_there_is_nothing_to_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    triggers.drop_all()
    monkeypatch.setattr(triggers, "_tables", lambda _connection: {"audit", "plans"})
    triggers.create_all()
    assert triggers._present(connection) == {}
