"""What `tuning.create_all` changes, and what it leaves alone: statement by statement."""

from typing import Any

import pytest
from django.db import connection

from queue_app.store import tuning
from tests.store.rows import through_django

pytestmark = pytest.mark.django_db


def changes() -> list[str]:
    """What `create_all` says beside its questions."""
    said: list[str] = []

    def listen(execute: Any, sql: str, params: object, many: bool, context: Any) -> object:
        if not sql.startswith("SELECT"):
            said.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        tuning.create_all()
    return said


def options(table: str) -> dict[str, str]:
    return tuning._present("default")[table]


@pytest.mark.parametrize("table", tuning.WANTED)
def test_a_table_without_its_settings_gets_all_of_them(table: str) -> None:
    wanted = tuning.WANTED[table]
    assert options(table) == wanted
    through_django(f"ALTER TABLE {table} RESET ({', '.join(wanted)})")
    assert (options(table), tuning.missing()) == ({}, [table])
    assert changes() == [
        f"ALTER TABLE {table} SET ({', '.join(f'{name} = {value}' for name, value in wanted.items())})"
    ]
    assert (options(table), tuning.missing(), changes()) == (wanted, [], [])


def test_what_somebody_added_stays_and_what_is_gone_is_missed() -> None:
    through_django("ALTER TABLE jobs SET (autovacuum_freeze_max_age = 100000000)")
    assert (tuning.missing(), changes()) == ([], [])
    through_django("ALTER TABLE jobs RESET (fillfactor)")
    through_django("ALTER TABLE gates RENAME TO elsewhere")
    assert tuning.missing() == ["gates", "jobs"]
    assert len(changes()) == 1
    assert tuning.missing() == ["gates"]
    through_django("CREATE SCHEMA beside; CREATE TABLE beside.gates (n int)")
    assert "gates" not in tuning._present("default")


def test_twins_go_and_every_other_index_stays() -> None:
    assert tuning._twins("default") == []
    through_django("CREATE INDEX tombstones_like ON tombstones (job_id varchar_pattern_ops)")
    through_django("CREATE INDEX jobs_id_like ON jobs (id varchar_pattern_ops)")
    through_django("CREATE UNIQUE INDEX jobs_only_like ON jobs (id varchar_pattern_ops)")
    through_django("CREATE INDEX jobs_alike ON jobs (id varchar_pattern_ops)")
    through_django("CREATE INDEX jobs_like_it ON jobs (id varchar_pattern_ops)")
    through_django("CREATE INDEX failures_like ON failures (job_id varchar_pattern_ops)")
    assert sorted(tuning._twins("default")) == ["jobs_id_like", "tombstones_like"]
    assert sorted(changes()) == ["DROP INDEX jobs_id_like", "DROP INDEX tombstones_like"]
    assert tuning._twins("default") == []


def test_keys_of_rows_that_come_by_the_thousand_go_with_their_indexes() -> None:
    through_django("ALTER TABLE holds ADD CONSTRAINT to_plan FOREIGN KEY (plan_id) REFERENCES plans (id)")
    through_django("ALTER TABLE redrives ADD CONSTRAINT to_lead FOREIGN KEY (approved_by_id) REFERENCES auth_user (id)")
    through_django("CREATE INDEX who ON redrives (approved_by_id)")
    through_django("CREATE INDEX whose ON redrives (requested_by_id, approved_by_id)")
    assert sorted(changes()) == [
        "ALTER TABLE holds DROP CONSTRAINT to_plan",
        "ALTER TABLE redrives DROP CONSTRAINT to_lead",
        "DROP INDEX who",
    ]
    assert changes() == []
