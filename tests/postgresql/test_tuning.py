"""The tables' settings stand after every migration, and renewals of counters touch no index."""

import pytest
from django.db import connection

from queue_app.services import queue
from queue_app.store import tuning
from tests.store.rows import through_django


@pytest.mark.django_db
def test_every_table_of_the_list_has_its_settings_and_they_are_put_back() -> None:
    assert tuning.missing() == []
    through_django("ALTER TABLE jobs RESET (fillfactor)")
    through_django("ALTER TABLE counts SET (fillfactor = 100)")
    assert tuning.missing() == ["counts", "jobs"]
    tuning.create_all()
    assert tuning.missing() == []


@pytest.mark.django_db
def test_what_stands_is_left_alone() -> None:
    with connection.execute_wrapper(refuse_changes):
        tuning.create_all()


def refuse_changes(execute, sql, params, many, context):
    assert not sql.startswith(("ALTER", "DROP"))
    return execute(sql, params, many, context)


@pytest.mark.django_db(transaction=True)
def test_counters_are_changed_within_their_page() -> None:
    def changes() -> tuple[int, int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'counts'")
            return cursor.fetchone()

    all_before, in_place_before = changes()
    for number in range(40):
        queue.enqueue(f"j{number}", 1)
    all_after, in_place_after = changes()
    assert all_after - all_before >= 39
    # a page that is full by then makes one of many move on to the next
    assert in_place_after - in_place_before >= 0.9 * (all_after - all_before)


@pytest.mark.django_db
@pytest.mark.parametrize("table", tuning.WITHOUT_TWINS)
def test_an_id_stands_in_one_index_alone(table: str) -> None:
    """A second one, for LIKE, would find nothing that a range in the first does not, and would cost every move."""
    column = "id" if table == "jobs" else "job_id"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT indexdef FROM pg_indexes WHERE tablename = '{table}'")
        (only,) = [row[0] for row in cursor.fetchall() if f"({column})" in row[0] or f"({column} varchar" in row[0]]
    assert "UNIQUE" in only
