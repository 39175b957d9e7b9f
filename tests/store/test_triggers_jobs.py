"""An order's id, quantity, body and evidence outlive raw SQL; its state and its columns always agree."""

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from queue_app.models import Job
from queue_app.store import triggers
from tests.store.rows import everything_in, got_through, job, one_of_each_state, plain_door, through_django

ROW = (
    "id, seq, queue, quantity, max_attempts, available_at, deadline, created_at_ms, changed_at_ms, state, reason, code, "
    "attempts, token, owner, lease_until"
)
FORBIDDEN = [
    # identity and body
    *(
        f"UPDATE jobs SET {change} WHERE id = '{state}'"
        for state in ("new", "leased", "done", "dead")
        for change in (
            "id = 'other'",
            "id = 'NEW'",
            "seq = 99",
            "queue = 'drinks'",
            "order_key = 'k'",
            "quantity = 8",
            "quantity = quantity + 1",
            "payload = '{}'",
            "created_at_ms = 0",
        )
    ),
    # the token
    "UPDATE jobs SET token = token - 1 WHERE id = 'leased'",
    "UPDATE jobs SET token = 0, state = 'pending', owner = NULL, lease_until = NULL WHERE id = 'leased'",
    # removal
    *(f"DELETE FROM jobs WHERE id = '{state}'" for state in ("new", "leased", "dead")),
    "DELETE FROM jobs",
    # done is final
    "UPDATE jobs SET state = 'pending' WHERE id = 'done'",
    "UPDATE jobs SET state = 'dead', reason = 'permanent' WHERE id = 'done'",
    "UPDATE jobs SET state = 'leased', owner = 'w', lease_until = 1, token = 2 WHERE id = 'done'",
    # dead keeps its evidence and leaves only by a redrive
    "UPDATE jobs SET state = 'done', reason = '', code = '' WHERE id = 'dead'",
    "UPDATE jobs SET state = 'leased', reason = '', code = '', owner = 'w', lease_until = 1, token = 2 WHERE id = 'dead'",
    "UPDATE jobs SET state = 'pending', reason = '', code = '', attempts = 0 WHERE id = 'dead'",
    "UPDATE jobs SET state = 'pending', reason = '', code = '', redriven = redriven + 2 WHERE id = 'dead'",
    *(
        f"UPDATE jobs SET {change} WHERE id = 'dead'"
        for change in (
            "reason = 'deadline'",
            "code = ''",
            "code = 'http_500'",
            "changed_at_ms = changed_at_ms + 1",
            "attempts = 0",
            "max_attempts = 9",
            "deadline = deadline + 1",
            "token = token + 1",
            "redriven = 5",
            "batch = 1",
        )
    ),
]
FORBIDDEN_BY_VENDOR = {
    "sqlite": [
        *(
            f"{verb} INTO jobs ({ROW}) SELECT {ROW} FROM jobs WHERE id = '{state}'"
            for verb in ("REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE")
            for state in ("new", "leased", "done", "dead")
        ),
        # by each of its keys alone
        f"REPLACE INTO jobs ({ROW}) SELECT {ROW.replace('seq', '99', 1)} FROM jobs WHERE id = 'dead'",
        f"REPLACE INTO jobs ({ROW}) SELECT 'x', {ROW.removeprefix('id, ')} FROM jobs WHERE id = 'dead'",
        f"REPLACE INTO jobs (rowid, {ROW}) SELECT rowid, 'x', 99, {ROW.removeprefix('id, seq, ')} FROM jobs",
        "UPDATE OR REPLACE jobs SET id = 'dead' WHERE id = 'new'",
        "UPDATE OR REPLACE jobs SET seq = 4 WHERE id = 'new'",
        "UPDATE OR REPLACE jobs SET rowid = (SELECT rowid FROM jobs WHERE id = 'dead') WHERE id = 'new'",
        "UPDATE jobs SET rowid = 99 WHERE id = 'new'",
        "UPDATE jobs SET token = 'x' WHERE id = 'leased'",
        "UPDATE jobs SET token = 1.5 WHERE id = 'leased'",
        f"INSERT INTO jobs ({ROW}) SELECT {ROW} FROM jobs WHERE id = 'dead' "
        "ON CONFLICT (id) DO UPDATE SET state = 'done', reason = '', code = ''",
    ],
    "postgresql": [
        "TRUNCATE jobs",
        "TRUNCATE jobs RESTART IDENTITY CASCADE",
        f"INSERT INTO jobs ({ROW}) SELECT {ROW} FROM jobs WHERE id = 'dead' "
        "ON CONFLICT (id) DO UPDATE SET state = 'done', reason = '', code = ''",
        "MERGE INTO jobs AS j USING (SELECT 1) AS s ON j.id = 'dead' WHEN MATCHED THEN DELETE",
    ],
}


def forbidden() -> list[str]:
    return FORBIDDEN + FORBIDDEN_BY_VENDOR[connection.vendor]


@pytest.mark.django_db
def test_no_order_is_changed_in_its_identity_through_the_products_own_connection() -> None:
    one_of_each_state()
    before = everything_in("jobs")
    assert got_through(through_django, forbidden()) == []
    assert everything_in("jobs") == before


@pytest.mark.django_db(transaction=True)
def test_nor_through_a_plain_connection_without_any_pragma() -> None:
    one_of_each_state()
    before = everything_in("jobs")
    with plain_door() as execute:
        assert got_through(execute, forbidden()) == []
    assert everything_in("jobs") == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM jobs WHERE id = 'dead'",
        "UPDATE jobs SET quantity = 8 WHERE id = 'dead'",
        "UPDATE jobs SET state = 'done', reason = '', code = '' WHERE id = 'dead'",
        "UPDATE jobs SET token = 0 WHERE id = 'leased'",
        "UPDATE jobs SET state = 'pending' WHERE id = 'done'",
    ],
)
@pytest.mark.django_db
def test_without_the_guards_the_same_statements_do_harm(statement: str) -> None:
    triggers.drop_all()
    one_of_each_state()
    assert got_through(through_django, [statement]) == [statement]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET state = 'leased', owner = 'w', lease_until = 1, token = 1, attempts = 1 WHERE id = 'new'",
        "UPDATE jobs SET lease_until = lease_until + 1 WHERE id = 'leased'",
        "UPDATE jobs SET owner = 'v', token = token + 1, attempts = attempts + 1 WHERE id = 'leased'",
        "UPDATE jobs SET state = 'done', owner = NULL, lease_until = NULL WHERE id = 'leased'",
        "UPDATE jobs SET state = 'pending', owner = NULL, lease_until = NULL WHERE id = 'leased'",
        "UPDATE jobs SET state = 'dead', reason = 'deadline', token = 1 WHERE id = 'new'",
        "UPDATE jobs SET state = 'pending', reason = '', code = '', attempts = 0, redriven = redriven + 1 "
        "WHERE id = 'dead'",
        "DELETE FROM jobs WHERE id = 'done'",
    ],
)
@pytest.mark.django_db
def test_the_moves_of_an_orders_life_are_free(statement: str) -> None:
    one_of_each_state()
    assert got_through(through_django, [statement]) == [statement]


# --- checks ---------------------------------------------------------------------------------------------------------
CHECKED = [
    ("jobs_state", "UPDATE jobs SET state = 'lost' WHERE id = 'new'"),
    ("jobs_reason_iff_dead", "UPDATE jobs SET state = 'dead' WHERE id = 'new'"),
    ("jobs_reason_iff_dead", "UPDATE jobs SET state = 'dead', reason = 'because' WHERE id = 'new'"),
    ("jobs_reason_iff_dead", "UPDATE jobs SET reason = 'permanent' WHERE id = 'new'"),
    ("jobs_reason_iff_dead", "UPDATE jobs SET code = 'http_503' WHERE id = 'done'"),
    ("jobs_reason_iff_dead", "UPDATE jobs SET state = 'pending', redriven = 1, code = '' WHERE id = 'dead'"),
    ("jobs_lease_iff_leased", "UPDATE jobs SET owner = 'w' WHERE id = 'new'"),
    ("jobs_lease_iff_leased", "UPDATE jobs SET lease_until = 1 WHERE id = 'done'"),
    ("jobs_lease_iff_leased", "UPDATE jobs SET owner = NULL WHERE id = 'leased'"),
    ("jobs_lease_iff_leased", "UPDATE jobs SET lease_until = NULL WHERE id = 'leased'"),
    ("jobs_lease_iff_leased", "UPDATE jobs SET state = 'done' WHERE id = 'leased'"),
    ("jobs_lease_iff_leased", "UPDATE jobs SET state = 'leased', token = 1 WHERE id = 'new'"),
    ("jobs_budget", "UPDATE jobs SET attempts = -1 WHERE id = 'new'"),
    ("jobs_budget", "UPDATE jobs SET attempts = 4 WHERE id = 'leased'"),
    ("jobs_budget", "UPDATE jobs SET max_attempts = 0 WHERE id = 'new'"),
]


def refused_by_check(statement: str) -> str:
    try:
        through_django(statement)
    except IntegrityError as error:
        return str(error)
    return "nothing"


@pytest.mark.parametrize(("rule", "statement"), CHECKED)
@pytest.mark.django_db
def test_state_and_columns_always_agree(rule: str, statement: str) -> None:
    one_of_each_state()
    assert rule in refused_by_check(statement)


@pytest.mark.parametrize(
    "quantity", ["0", "-1", "1000001", "'x'", "'1.5'", "'1e3x'", "''", "NULL", "9223372036854775807"]
)
@pytest.mark.django_db
def test_a_quantity_is_a_whole_number_of_its_range(quantity: str) -> None:
    statement = (
        f"INSERT INTO jobs (id, seq, queue, quantity, max_attempts, available_at, deadline, created_at_ms, "
        f"changed_at_ms) VALUES ('q', 1, 'snacks', {quantity}, 3, 0, 0, 0, 0)"
    )
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_a_broken_number_is_refused_or_at_least_never_stored_as_one() -> None:
    """SQLite refuses 1.5. PostgreSQL rounds a number on its way into an integer column, before any rule can see it."""
    statement = (
        "INSERT INTO jobs (id, seq, queue, quantity, max_attempts, available_at, deadline, created_at_ms, "
        "changed_at_ms) VALUES ('q', 1, 'snacks', 1.5, 3, 0, 0, 0, 0)"
    )
    if connection.vendor == "sqlite":
        assert "jobs_quantity" in refused_by_check(statement)
    else:
        through_django(statement)
        assert Job.objects.values_list("quantity", flat=True).get() == 2


@pytest.mark.parametrize("quantity", [1, 1_000_000])
@pytest.mark.django_db
def test_the_ends_of_the_range_are_in_it(quantity: int) -> None:
    job("q", 1, quantity=quantity)
    assert Job.objects.get().quantity == quantity


@pytest.mark.django_db
def test_ids_are_ordered_bytewise() -> None:
    for seq, job_id in enumerate(["b", "B", "a", "a-1", "a.1", "a1", "A", "Z", "a:1", "a_1"]):
        job(job_id, seq)
    ids = list(Job.objects.order_by("id").values_list("id", flat=True))
    assert ids == sorted(ids)
