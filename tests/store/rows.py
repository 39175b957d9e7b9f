"""One row of each insert-only table, orders in each state, and two doors through which raw SQL is tried."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction

from queue_app import models
from queue_app.models import Job, Plan

AT = 1_800_000_000_000
HASH = "a" * 64
RULES = re.compile(
    r"rows are|row exists|order exists|item exists|never change|never removed|never goes back|done is final"
    r"|keeps its evidence|only a done order"
)
Execute = Callable[[str], None]


def job(job_id: str, seq: int, **columns: object) -> Job:
    """An order as its columns say; `state` decides what else must be set."""
    state = columns.get("state", "pending")
    fitting: dict[str, object] = {
        "queue": "snacks",
        "quantity": 7,
        "payload": '{"item":"chips"}',
        "max_attempts": 3,
        "attempts": 0 if state == "pending" else 1,
        "token": 0 if state == "pending" else 1,
        "available_at": AT,
        "deadline": AT + 86_400_000,
        "created_at_ms": AT,
        "changed_at_ms": AT,
    }
    if state == "leased":
        fitting |= {"owner": "w", "lease_until": AT + 30_000}
    if state == "dead":
        fitting |= {"reason": "permanent", "code": "http_422"}
    return Job.objects.create(id=job_id, seq=seq, **fitting | columns)


def one_of_each_state() -> None:
    """Orders `new`, `leased`, `done` and `dead`, with seq 1 to 4."""
    job("new", 1)
    for seq, state in enumerate(("leased", "done", "dead"), start=2):
        job(state, seq, state=state)
    settle()


def one_of_each_insert_only_table() -> None:
    """One row in every insert-only table and in plan_items."""
    by = User.objects.create_user("writer")
    plan = Plan.objects.create(
        queue="snacks",
        state="freezing",
        selection="{}",
        as_of_ms=AT,
        note="n",
        created_at_ms=AT,
        changed_at_ms=AT,
        expires_at_ms=AT,
        asked_rate_mj=1,
        rate_mj=1,
    )
    of_job = {"job_id": "j", "token": 1}
    group = {"queue": "snacks", "reason": "permanent", "code": "http_422"}
    models.PlanItem.objects.create(
        plan=plan, pos=1, job_id="j", token=1, reason="permanent", code="http_422", dead_since_ms=AT
    )
    models.Failure.objects.create(**of_job, attempt=1, at_ms=AT, outcome="retry")
    models.LateFinish.objects.create(**of_job, at_ms=AT, outcome="ok")
    models.Unblock.objects.create(**of_job, at_ms=AT, note="n", by=by)
    models.Tombstone.objects.create(job_id="j", body_digest=HASH, quantity=7, done_at_ms=AT, removed_at_ms=AT)
    redrive(1, by)
    outcome(1, "done")
    look = models.Investigation.objects.create(
        at_ms=AT, by=by, by_name="writer", scope="group", as_of_ms=AT, count=1, note="n", finding="looking"
    )
    models.InvestigatedGroup.objects.create(investigation=look, **group)
    models.Approval.objects.create(
        plan=plan,
        round=1,
        decision="approve",
        by=by,
        by_name="writer",
        at_ms=AT,
        note="n",
        digest=HASH,
        rate_mj=1,
        canary=0,
        proof="password",
    )
    models.AuditEvent.objects.create(
        seq=1, link=2, at_ms=AT, name="writer", action="plan", target="R-1", source="code", prev=HASH, hash=HASH
    )
    settle()


def redrive(link: int, by: User, **columns: object) -> models.Redrive:
    """A redrive of order `j<link>`."""
    fitting = {
        "job_id": f"j{link}",
        "token": 1,
        "at_ms": AT,
        "note": "n",
        "queue": "snacks",
        "reason": "permanent",
        "code": "http_422",
        "old_attempts": 1,
        "old_max_attempts": 3,
        "old_deadline": AT,
        "new_max_attempts": 3,
        "new_deadline": AT,
        "approved_by": by,
        "hash": HASH,
    }
    return models.Redrive.objects.create(link=link, **fitting | columns)


def outcome(link: int, what: str, **columns: object) -> models.RedriveOutcome:
    """The first end after the redrive of order `j<link>`."""
    fitting = {
        "job_id": f"j{link}",
        "token": 1,
        "queue": "snacks",
        "was_reason": "permanent",
        "was_code": "http_422",
        "outcome": what,
        "end_token": 2,
        "at_ms": AT,
    }
    return models.RedriveOutcome.objects.create(**fitting | columns)


def settle() -> None:
    """PostgreSQL refuses TRUNCATE and DDL while checks of foreign keys are pending in the same transaction."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


# --- doors ----------------------------------------------------------------------------------------------------------
def through_django(statement: str) -> None:
    """Execute in a savepoint of the product's own connection."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@contextmanager
def plain_door() -> Iterator[Execute]:
    """A connection without Django and without any pragma, as a stranger with the file or the password has it."""
    config = connection.settings_dict
    if connection.vendor == "sqlite":
        plain: sqlite3.Connection | psycopg.Connection = sqlite3.connect(config["NAME"], isolation_level=None)
    else:
        plain = psycopg.connect(
            host=config["HOST"], port=config["PORT"], user=config["USER"], dbname=config["NAME"], autocommit=True
        )
    try:
        yield lambda statement: plain.execute(statement).close()
    finally:
        plain.close()


def got_through(execute: Execute, statements: Sequence[str]) -> list[str]:
    """The statements that no rule stopped; an error of any other kind is an error of the test."""
    passed = []
    for statement in statements:
        try:
            execute(statement)
        except (DatabaseError, sqlite3.DatabaseError, psycopg.Error) as error:
            if not RULES.search(str(error)):
                raise
        else:
            passed.append(statement)
    return passed


def everything_in(table: str) -> list[tuple[object, ...]]:
    """All rows of a table, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return sorted(cursor.fetchall(), key=repr)
