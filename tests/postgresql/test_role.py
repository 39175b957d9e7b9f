"""The product works as a role that owns nothing, and that role can do nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from queue_app.policy.terms import Terms
from queue_app.services import accounts, housekeeping, life_signs, looks, queue, readiness
from queue_app.services.verification import verify
from queue_app.store import counters
from tests.conftest import BASE_DIR
from tests.engine.invariants import check_counters, check_jobs
from tests.redrive.invariants import check_plans
from tests.redrive.story import approve, ask, die, run, work

pytestmark = pytest.mark.django_db(transaction=True)
SQL = (Path(BASE_DIR) / "snackops" / "ops" / "application_role.sql").read_text(encoding="utf-8")
ROLE = "snackops_app"


def grant() -> None:
    with connection.cursor() as cursor:
        cursor.execute(SQL)


@pytest.fixture(autouse=True)
def _role() -> Iterator[None]:
    grant()
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP OWNED BY {ROLE}")  # its rights in this database; the role itself may be in use elsewhere


@contextmanager
def as_the_application() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('tests_clock')")
        if cursor.fetchone()[0]:  # the clock of the tests is a sequence of their own
            cursor.execute(f"GRANT ALL ON SEQUENCE tests_clock TO {ROLE}")
        cursor.execute(f"SET ROLE {ROLE}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")


def test_everything_that_people_and_workers_do_works_as_the_role(operator, team_lead, clock, client, as_user):
    with as_the_application():
        assert readiness.lacks() == []
        assert queue.enqueue("a", 7) == "accepted"
        assert queue.enqueue("a", 7) == "duplicate"
        for name in ("w1", "w2"):
            life_signs.arrive(name, "worker", "snacks")
        (lease,) = queue.claim("w1")
        assert queue.renew("a", lease.token)
        assert queue.release("a", lease.token)
        assert work() == 1
        die(30)
        looks.record(operator, "job", "INC-1", "looking", job_id="o1")
        plan = ask(operator, terms=Terms(1_000_000, canary=3))
        approve(team_lead, plan)
        run(plan, clock)
        work()
        clock.advance(1_000)
        run(plan, clock)
        assert work() > 20
        counters.fold_slots(1_000)
        housekeeping.tidy_if_due()
        life_signs.leave("w1")
        accounts.set_person("new", role="auditor", password="correct horse battery", see_payloads=True)
        assert as_user(client, team_lead).get("/").status_code == 200
        assert verify().whole
    check_jobs()
    check_counters()
    check_plans()


REFUSED = [
    "ALTER TABLE jobs ADD COLUMN extra integer",
    "ALTER TABLE jobs DISABLE TRIGGER ALL",
    "DROP TRIGGER jobs_guard_update ON jobs",
    "DROP TABLE failures",
    "TRUNCATE jobs",
    "TRUNCATE audit",
    "DELETE FROM audit",
    "UPDATE audit SET note = 'x'",
    "DELETE FROM failures",
    "UPDATE redrives SET note = 'x'",
    "DELETE FROM plans",
    "DELETE FROM plan_items",
    "DELETE FROM auth_user",
    "DELETE FROM heads",
    "INSERT INTO auth_group (name) VALUES ('x')",
    "INSERT INTO queues (name) VALUES ('x')",
    "CREATE TABLE mine (a integer)",
    "CREATE OR REPLACE FUNCTION snackops_now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
    "CREATE OR REPLACE FUNCTION snackops_jobs_guard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "SELECT setval('jobs_seq', 1)",
    "SET session_replication_role = replica",
    "ALTER ROLE snackops_app SUPERUSER",
]


def test_whoever_gets_in_as_the_role_cannot_change_the_rules_or_the_record(real_database):
    """By a sign-in of its own, which cannot step back to the owner."""
    parts = urlsplit(real_database.url)
    address = f"postgres://{ROLE}@{parts.hostname}:{parts.port}{parts.path}"
    with psycopg.connect(address, autocommit=True) as outsider:
        for statement in REFUSED:
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue)):
                outsider.execute(statement)
        outsider.execute("SELECT count(*) FROM audit")


def test_a_dead_order_is_kept_by_its_trigger_where_the_right_alone_would_not(operator):
    die(1)
    with as_the_application(), pytest.raises(Exception, match="only a done order"), connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs")


def test_every_table_has_its_place_in_the_list():
    """A new table is a decision: without one here the product would fail on it as the role."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' "
            "AND c.relkind = 'r' AND NOT has_table_privilege(%s, c.oid, 'SELECT')",
            [ROLE],
        )
        assert [name for (name,) in cursor.fetchall()] == []
        cursor.execute(
            "SELECT c.relname, p.privilege_type FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, "
            "aclexplode(c.relacl) AS p WHERE n.nspname = 'public' AND p.grantee = %s::regrole "
            "AND p.privilege_type IN ('TRUNCATE', 'TRIGGER', 'REFERENCES', 'MAINTAIN')",
            [ROLE],
        )
        assert cursor.fetchall() == []
