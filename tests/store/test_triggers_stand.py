"""A guard that is gone or changed is found, said, and put back by `migrate`."""

from io import StringIO

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import OperationalError, connection, models

from queue_app.models import Count, Failure, Flow, Job, Queue, Result
from queue_app.store import defaults, triggers
from tests.store.rows import one_of_each_state, through_django

DROPPED = {
    "sqlite": "DROP TRIGGER failures_guard_replace",
    "postgresql": "DROP TRIGGER failures_guard_truncate ON failures",
}
CHANGED = {
    "sqlite": [
        "DROP TRIGGER jobs_guard_token",
        "CREATE TRIGGER jobs_guard_token BEFORE UPDATE ON jobs WHEN NEW.token < -1 BEGIN SELECT RAISE(ABORT, ''); END",
    ],
    # the name and the function stay; only the condition is another
    "postgresql": [
        "DROP TRIGGER jobs_guard_delete ON jobs",
        "CREATE TRIGGER jobs_guard_delete BEFORE DELETE ON jobs FOR EACH ROW WHEN (OLD.token < 0) "
        "EXECUTE FUNCTION snackops_jobs_delete()",
    ],
}
POSTGRESQL_ONLY = [
    "ALTER TABLE jobs DISABLE TRIGGER jobs_guard_update",
    "ALTER TABLE jobs ENABLE REPLICA TRIGGER jobs_guard_update",
    "CREATE OR REPLACE FUNCTION snackops_jobs_guard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
]


def wounds() -> list[tuple[list[str], str]]:
    """Ways to take one guard away, each with the guard's name."""
    vendor = connection.vendor
    found = [([DROPPED[vendor]], DROPPED[vendor].split()[2]), (CHANGED[vendor], CHANGED[vendor][0].split()[2])]
    if vendor == "postgresql":
        found += [([statement], "jobs_guard_update") for statement in POSTGRESQL_ONLY]
    return found


def warnings_of_the_check() -> list[str]:
    return [found.msg for found in run_checks(databases=["default"]) if found.id == "queue_app.W001"]


@pytest.mark.django_db
def test_a_guard_that_is_gone_or_changed_is_found_and_put_back() -> None:
    for statements, name in wounds():
        assert triggers.missing() == []
        assert warnings_of_the_check() == []
        for statement in statements:
            through_django(statement)
        assert triggers.missing() == [name]
        assert name in warnings_of_the_check()[0]
        triggers.create_all()
    assert triggers.missing() == []


@pytest.mark.django_db(transaction=True)
def test_migrate_mends_guards_and_default_rows_though_the_check_complains() -> None:
    through_django(DROPPED[connection.vendor])
    Queue.objects.all().delete()
    said = StringIO()
    call_command("migrate", verbosity=0, skip_checks=False, stderr=said)
    assert triggers.missing() == []
    assert Queue.objects.filter(name="snacks").exists()


@pytest.mark.django_db
def test_putting_back_what_stands_changes_nothing() -> None:
    Queue.objects.filter(name="snacks").update(paused=True)
    for _ in range(2):
        triggers.create_all()
        defaults.create_all()
    assert triggers.missing() == []
    assert Queue.objects.get().paused is True


def extra_column(**options: object) -> models.Field:
    field = models.IntegerField(**options)
    field.set_attributes_from_name("extra")
    return field


@pytest.mark.parametrize("model", [Failure, Job])
@pytest.mark.django_db(transaction=True)
def test_a_table_remade_by_a_migration_gets_its_guards_back(model: type[models.Model]) -> None:
    """On SQLite a new column with a default remakes the table, and its triggers are gone without a word."""
    one_of_each_state()
    column = extra_column(default=0)
    with connection.schema_editor() as editor:
        editor.add_field(model, column)
    try:
        lost = triggers.missing()
        assert bool(lost) is (connection.vendor == "sqlite")
        assert bool(warnings_of_the_check()) is (connection.vendor == "sqlite")
        call_command("migrate", verbosity=0)
        assert triggers.missing() == []
        with pytest.raises(Exception, match="only a done order"):
            through_django("DELETE FROM jobs WHERE id = 'dead'")
    finally:
        with connection.schema_editor() as editor:
            editor.remove_field(model, column)
        triggers.create_all()


@pytest.mark.parametrize("model", [Job, Failure, Count, Flow, Result])
@pytest.mark.django_db(transaction=True)
def test_a_nullable_column_leaves_every_guard_in_its_place(model: type[models.Model]) -> None:
    column = extra_column(null=True)
    with connection.schema_editor() as editor:
        editor.add_field(model, column)
    try:
        assert triggers.missing() == []
    finally:
        with connection.schema_editor() as editor:
            editor.remove_field(model, column)
        triggers.create_all()


@pytest.mark.parametrize("model", [Count, Flow, Result])
@pytest.mark.django_db(transaction=True)
def test_a_counter_table_cannot_be_remade_under_the_triggers_that_write_to_it(model: type[models.Model]) -> None:
    """So counter tables, too, only gain nullable columns: SQLite stops such a migration, loudly and whole."""
    if connection.vendor == "sqlite":
        with pytest.raises(OperationalError, match="error in trigger"), connection.schema_editor() as editor:
            editor.add_field(model, extra_column(default=0))
    with connection.cursor() as cursor:
        names = {found.name for found in connection.introspection.get_table_description(cursor, model._meta.db_table)}
    assert "extra" not in names
    assert triggers.missing() == []
