"""Which guards stand, by name; with which sentence each of them refuses; and what they let a plan do."""

from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from queue_app.models import Plan
from queue_app.policy import plans
from queue_app.store import triggers, triggers_sqlite
from tests.store.rows import one_of_each_insert_only_table, one_of_each_state, through_django

ADDED = sorted(triggers.INSERT_ONLY)
KEPT = {
    "sqlite": ("guard_update", "guard_delete", "guard_replace"),
    "postgresql": ("guard_rows", "guard_truncate"),
}
NAMES = {
    "sqlite": {
        "jobs": "guard_body guard_token guard_done guard_dead guard_delete guard_replace count_insert count_update "
        "count_delete flow_insert flow_died flow_left",
        "plan_items": "guard_update guard_delete guard_replace guard_grow",
        "plans": "guard_closed guard_delete guard_replace",
        "redrives": "count",
        "redrive_outcomes": "count",
    },
    "postgresql": {
        "jobs": "guard_update guard_delete guard_truncate count_insert count_delete count_moved",
        "plan_items": "guard_update guard_delete guard_truncate guard_grow",
        "plans": "guard_closed guard_delete guard_truncate",
        "redrives": "count",
        "redrive_outcomes": "count",
    },
}


def names() -> set[str]:
    vendor = connection.vendor
    told = {f"{table}_{word}" for table, words in NAMES[vendor].items() for word in words.split()}
    return told | {f"{table}_{word}" for table in ADDED for word in KEPT[vendor]}


@pytest.mark.django_db
def test_the_guards_are_these_and_no_others() -> None:
    assert set(triggers._present(connection)) == names()
    triggers.drop_all()
    assert triggers._present(connection) == {}
    assert triggers.missing() == sorted(names())


@pytest.mark.django_db
def test_what_stands_is_not_made_anew_and_what_is_gone_alone_is() -> None:
    said: list[str] = []

    def listen(execute: Any, sql: str, params: object, many: bool, context: Any) -> object:
        if sql.startswith(("DROP", "CREATE TRIGGER")):
            said.append(" ".join(sql.split()[:3]))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        triggers.create_all()
        assert said == []
        triggers.drop(connection, "jobs_guard_delete")
        triggers.create_all()
    assert said == ["DROP TRIGGER IF", "DROP TRIGGER IF", "CREATE TRIGGER jobs_guard_delete"]


THEIRS = {
    "sqlite": ["CREATE TRIGGER jobs_theirs BEFORE UPDATE ON jobs BEGIN SELECT 1; END"],
    "postgresql": [
        "CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER jobs_theirs BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION theirs()",
    ],
}


@pytest.mark.django_db
def test_triggers_of_others_are_nobodys_business() -> None:
    for statement in THEIRS[connection.vendor]:
        through_django(statement)
    assert triggers.missing() == []
    triggers.create_all()
    with pytest.raises(DatabaseError, match="already exists"):
        through_django(THEIRS[connection.vendor][-1])


def refusal(statement: str) -> str:
    """The database's own words; '' if it refuses nothing."""
    try:
        through_django(statement)
    except IntegrityError as error:
        cause = error.__cause__
        return str(cause.diag.message_primary) if connection.vendor == "postgresql" else str(error)
    return ""


BODY = "jobs: id, quantity and body never change"
DEAD = "jobs: a dead order keeps its evidence and leaves only by a redrive"
FROZEN = "plan_items: what was frozen never changes"
GROWN = "plan_items: a list grows only while it is made"
CLOSED = "plans: a closed plan stays closed"
ITEM = "INSERT INTO plan_items (plan_id, pos, job_id, token, reason, code, dead_since_ms, state, why, canary, tries) "
REST = ", ".join(field.column for field in Plan._meta.concrete_fields if field.column not in ("id", "form_key"))
REPLACED = (
    "UPDATE plans SET form_key = 'k'; REPLACE INTO plans (rowid, form_key, {rest}) SELECT {keys}, {rest} FROM plans"
)
REFUSED = [
    ("UPDATE jobs SET quantity = 8 WHERE id = 'new'", BODY),
    ("UPDATE jobs SET token = token - 1 WHERE id = 'leased'", "jobs: a token never goes back"),
    ("UPDATE jobs SET state = 'pending' WHERE id = 'done'", "jobs: done is final"),
    ("UPDATE jobs SET code = 'http_500' WHERE id = 'dead'", DEAD),
    ("UPDATE jobs SET state = 'pending', reason = '', code = '' WHERE id = 'dead'", DEAD),
    ("DELETE FROM jobs WHERE id = 'dead'", "jobs: only a done order may be removed"),
    ("UPDATE plan_items SET pos = 2", FROZEN),
    ("UPDATE plans SET state = 'running'; " + ITEM + "SELECT id, 9, 'k', 1, '', '', 0, 'waiting', '', 0, 0 FROM plans",
     GROWN),
    ("UPDATE plans SET state = 'ended'; UPDATE plans SET state = 'running'", CLOSED),
]  # fmt: skip
BY_VENDOR = {
    "sqlite": [
        *((f"UPDATE {table} SET rowid = rowid", f"{table}: rows are never changed") for table in ADDED),
        *((f"DELETE FROM {table}", f"{table}: rows are never removed") for table in ADDED),
        *((f"REPLACE INTO {table} SELECT * FROM {table}", f"{table}: this row exists") for table in ADDED),
        ("REPLACE INTO jobs SELECT * FROM jobs WHERE id = 'dead'", "jobs: this order exists"),
        ("DELETE FROM plan_items", "plan_items: what was frozen is never removed"),
        ("REPLACE INTO plan_items SELECT * FROM plan_items", "plan_items: this item exists"),
        ("DELETE FROM plans", "plans: plans are never removed"),
        *(
            (REPLACED.format(keys=keys, rest=REST), "plans: this plan exists")
            for keys in ("rowid, 'other'", "rowid + 1, form_key")
        ),
    ],
    "postgresql": [
        *((f"DELETE FROM {table}", f"{table}: rows are only ever added") for table in ADDED),
        *(
            (f"TRUNCATE {table} CASCADE", f"{table}: rows are only ever added")
            for table in ADDED
            if table != "investigations"  # its groups, which go with it, are asked first
        ),
        ("TRUNCATE jobs", "jobs: rows are only ever added"),
        ("DELETE FROM plan_items", "plan_items: rows are only ever added"),
        ("TRUNCATE plan_items", "plan_items: rows are only ever added"),
        ("DELETE FROM plans", "plans: rows are only ever added"),
    ],
}


@pytest.mark.django_db
def test_each_guard_refuses_in_its_own_words() -> None:
    one_of_each_state()
    one_of_each_insert_only_table()
    for statements, words in REFUSED + BY_VENDOR[connection.vendor]:
        *before, last = statements.split("; ")
        with transaction.atomic():
            for statement in before:
                through_django(statement)
            assert refusal(last) == words, statements
            transaction.set_rollback(True)


@pytest.mark.parametrize("state", plans.STATES)
@pytest.mark.django_db
def test_a_plan_leaves_every_state_but_those_that_close_it(state: str) -> None:
    one_of_each_insert_only_table()
    Plan.objects.update(state=state)
    moves = [f"UPDATE plans SET state = '{other}'" for other in plans.STATES if other != state]
    passed = [move for move in moves if refused_in_a_moment(move) == ""]
    assert passed == ([] if state in plans.CLOSED else moves)
    assert refused_in_a_moment("UPDATE plans SET note = 'other'") == ""


def refused_in_a_moment(statement: str) -> str:
    with transaction.atomic():
        said = refusal(statement)
        transaction.set_rollback(True)
    return said


@pytest.mark.parametrize("state", plans.STATES)
@pytest.mark.django_db
def test_a_list_grows_only_while_it_is_frozen(state: str) -> None:
    one_of_each_insert_only_table()
    Plan.objects.update(state=state)
    more = ITEM + "SELECT id, 9, 'k', 1, '', '', 0, 'waiting', '', 0, 0 FROM plans"
    assert refusal(more) == ("" if state == "freezing" else GROWN)


@pytest.mark.parametrize(
    ("tables", "guarded"),
    [
        ({"audit"}, {"audit"}),
        ({"failures", "audit", "jobs"}, {"failures", "audit", "jobs"}),
        ({"redrives", "redrive_outcomes"}, {"redrives", "redrive_outcomes"}),
        ({"results"}, set()),
    ],
)
def test_in_the_middle_of_the_migrations_only_what_is_there_is_guarded(tables: set[str], guarded: set[str]) -> None:
    """And what counts into a table that is not there yet waits for it."""
    made = triggers_sqlite.statements(triggers.INSERT_ONLY, frozenset(tables))
    assert {text.split(" ON ")[1].split()[0] for text in made.values()} == guarded
    assert {"redrives_count", "redrive_outcomes_count"} & set(made) == set()
