"""The way that the database goes for a claim, also with a plan that was made for all values (a forced generic plan)."""

import pytest
from django.db import connection

from queue_app.services import passing, queue
from queue_app.store import jobs
from tests.engine.rows import T, declare, put

pytestmark = pytest.mark.django_db


def heard(move):
    """The statements of a move with their values."""
    statements = []

    def listen(execute, sql, params, many, context):
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        move()
    return statements


def fill():
    """Enough rows for a choice, and statistics of these rows: what an autovacuum saw before must not decide."""
    put("a", "b", "c", *(f"n{number}" for number in range(300)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobs" if connection.vendor == "postgresql" else "SELECT 1")


def way(sql, params):
    """The plan as text: SQLite's, or PostgreSQL's generic one."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            return "\n".join(row[3] for row in cursor.fetchall())
        marks = iter(range(1, len(params) + 1))
        text = "".join(f"${next(marks)}" if part == "%s" else part for part in sql.replace("%s", "\0%s\0").split("\0"))
        cursor.execute("SET LOCAL enable_seqscan = off")  # a small table is read whole otherwise
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"PREPARE way AS {text}")
        cursor.execute(f"EXPLAIN EXECUTE way ({', '.join(['%s'] * len(params))})", params)
        plan = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("DEALLOCATE way")
        return plan


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("with_budget", [False, True])
def test_due_jobs_are_found_by_their_own_index_whatever_the_values(ordered, with_budget):
    fill()
    ((sql, params),) = heard(lambda: jobs.due("snacks", T, 2, ordered=ordered, with_budget=with_budget))
    plan = way(sql, params)
    assert "jobs_due" in plan
    assert ("jobs_order_key" in plan) is ordered
    assert "SCAN j\n" not in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


def test_every_statement_of_a_turn_goes_by_an_index():
    declare("tables", ordering="ordered")
    fill()
    (lease,) = queue.claim("w1", now_ms=T)
    turn = heard(
        lambda: queue.finish_and_claim([queue.Result(lease.id, lease.token, "permanent")], "w1", limit=2, now_ms=T)
    )
    for sql, params in turn:
        if "jobs" in sql and sql.split()[0] in ("SELECT", "UPDATE"):
            plan = way(sql, params)
            assert "Seq Scan on jobs" not in plan, sql
            assert "SCAN jobs" not in plan, sql


def test_a_plain_turn_goes_by_its_indexes_by_the_clock_of_the_database(monkeypatch, clock):
    clock.now = T
    fill()
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit)
    (lease,) = queue.claim("w1")
    turn = heard(lambda: queue.finish_and_claim([queue.Result(lease.id, lease.token, "ok")], "w1", limit=2))
    moves = [one for one in turn if one[0].split()[0] in ("SELECT", "UPDATE", "WITH") and " jobs" in one[0]]
    assert len(moves) == 3, "one look at what ended, one at what is due, one move"
    for sql, params in moves:
        plan = way(sql, params)
        assert ("jobs_due" in plan) is ("j.available_at <=" in sql), sql
        assert "Seq Scan on jobs" not in plan, sql
        assert "SCAN j\n" not in f"{plan}\n", sql
        assert "SCAN jobs" not in plan, sql


def test_a_statement_carried_out_ten_times_still_finds_what_it_should():
    """From the sixth time on PostgreSQL may plan once for all values."""
    put(*(f"n{number}" for number in range(12)))
    for number in range(12):
        assert [lease.id for lease in queue.claim("w1", now_ms=T)] == [f"n{number}"]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT sum(generic_plans + custom_plans) FROM pg_prepared_statements WHERE statement LIKE %s",
                ["%FOR UPDATE OF j SKIP%"],
            )
            assert cursor.fetchone()[0] >= 12
