"""The tables' settings stand after every migration, and renewals of counters touch no index."""

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.db.models import ProtectedError

from queue_app.services import queue, ticks
from queue_app.store import tuning
from tests.redrive.story import approved, die
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


def changes(table: str) -> tuple[int, int]:
    """How many rows were changed so far, and how many of them within their page."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s", [table])
        return cursor.fetchone()


@pytest.mark.django_db(transaction=True)
def test_counters_are_changed_within_their_page() -> None:
    all_before, in_place_before = changes("counts")
    for number in range(40):
        queue.enqueue(f"j{number}", 1)
    all_after, in_place_after = changes("counts")
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


@pytest.mark.django_db
def test_rows_of_a_redrive_cost_no_query_and_no_index_of_a_foreign_key() -> None:
    assert (tuning._keys("default"), tuning._indexes_of_keys("default")) == ([], [])
    through_django("ALTER TABLE holds ADD CONSTRAINT to_plan FOREIGN KEY (plan_id) REFERENCES plans (id)")
    through_django("CREATE INDEX who ON redrives (approved_by_id)")
    through_django("CREATE INDEX whose ON redrives (approved_by_id, requested_by_id)")
    assert (tuning._keys("default"), tuning._indexes_of_keys("default")) == ([("holds", "to_plan")], ["who"])
    tuning.create_all()
    assert (tuning._keys("default"), tuning._indexes_of_keys("default")) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_who_asked_for_or_approved_a_redrive_cannot_be_removed_all_the_same(operator: User, team_lead: User) -> None:
    die(1)
    approved(operator, team_lead)
    through_django("DELETE FROM auth_user_groups")
    for user, table in ((operator, "plans"), (team_lead, "approvals")):
        with pytest.raises(IntegrityError, match=f'violates foreign key constraint .* on table "{table}"'):
            through_django(f"DELETE FROM auth_user WHERE id = {user.pk}")


@pytest.mark.django_db
def test_who_asked_for_a_redrive_without_a_plan_is_kept_by_django(operator: User, team_lead: User) -> None:
    (job_id,) = die(1)
    queue.redrive(job_id, "INC-1", approved_by=team_lead, requested_by=operator)
    with pytest.raises(ProtectedError):
        operator.delete()


@pytest.mark.django_db(transaction=True)
def test_an_item_is_redriven_within_its_page(operator: User, team_lead: User) -> None:
    die(60)
    plan = approved(operator, team_lead)
    assert ticks.begin(plan.pk)
    before = changes("plan_items")
    assert ticks.tick(plan.pk, bite=60, unlimited=True).redriven == 60
    after = changes("plan_items")
    assert (after[0] - before[0], after[1] - before[1]) == (60, 60)
