"""Many jobs restarted at once: who is found and held, which rows move, every column, what each database is asked."""

from typing import Any

import pytest

from queue_app.models import Job
from queue_app.store import given, restarts
from queue_app.store.restarts import Candidate
from tests.store.changed import Asked, changes
from tests.store.rows import AT, job

A = Candidate("a", "dead", 4, "snacks", "permanent", "http_422", 2, 3, AT + 86_400_000, AT)
B = Candidate("b", "leased", 1, "drinks", "", "", 1, 3, AT + 86_400_000, AT - 5)
MOVED = {
    "state": "pending", "reason": "", "code": "", "attempts": 0, "deadline": AT + 70, "available_at": AT + 7,
    "waited_ms": 0, "batch": 12, "changed_at_ms": AT + 7,
}  # fmt: skip


@pytest.fixture
def jobs(db: None) -> None:
    job("a", 1, state="dead", token=4, attempts=2, waited_ms=9, redriven=1)
    job("b", 2, state="leased", queue="drinks", changed_at_ms=AT - 5)
    job("c", 3, state="dead", token=6)


def restart(*some: Candidate, max_attempts: int | None = None) -> int:
    return restarts.restart_all(some, max_attempts=max_attempts, deadline=AT + 70, batch=12, now_ms=AT + 7)


def test_jobs_in_any_state_are_found(jobs: None) -> None:
    assert restarts.candidates(["b", "none", "a"]) == ({"a": A, "b": B}, set())


@pytest.mark.django_db
def test_nothing_is_asked_about_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert restarts.candidates([]) == ({}, set())
        assert restart() == 0


@pytest.mark.parametrize(("max_attempts", "tries"), [(None, {}), (7, {"max_attempts": 7})])
def test_dead_jobs_with_their_tokens_move(jobs: None, max_attempts: int | None, tries: dict[str, int]) -> None:
    found, _ = restarts.candidates(["a", "c"])
    with changes(Job) as rows:
        assert restart(found["a"], found["c"], max_attempts=max_attempts) == 2
    del (moved := dict(MOVED))["waited_ms"]
    assert rows == {"a": {**MOVED, "redriven": 2, **tries}, "c": {**moved, "redriven": 1, **tries}}


def test_all_others_stay(jobs: None) -> None:
    found, _ = restarts.candidates(["a", "b", "c"])
    other_token = Candidate(**{**{name: getattr(found["c"], name) for name in found["c"].__slots__}, "token": 5})
    with changes(Job) as rows:
        assert restart(found["a"], found["b"], other_token) == 1
    assert list(rows) == ["a"]


# --- what each database is asked ------------------------------------------------------------------------------------

COLUMNS = (
    "jobs.id, jobs.state, jobs.token, jobs.queue, jobs.reason, jobs.code, jobs.attempts, jobs.max_attempts, "
    "jobs.deadline, jobs.changed_at_ms"
)
ROW_A = tuple(getattr(A, name) for name in A.__slots__)


def on(monkeypatch: pytest.MonkeyPatch, postgresql: bool, *answers: Any) -> Asked:
    return Asked(*answers).stand_in(monkeypatch, restarts, given, postgresql=postgresql)


@pytest.mark.parametrize(
    ("named", "answers", "busy"),
    [
        (["a"], [[ROW_A]], set()),
        (["b", "a"], [[ROW_A], [("a",), ("b",)]], {"b"}),
        (["a", "none"], [[ROW_A], [("a",)]], set()),
    ],
)
def test_on_postgresql_who_is_held_by_another_is_named(
    monkeypatch: pytest.MonkeyPatch, named: list[str], answers: Any, busy: set[str]
) -> None:
    asked = on(monkeypatch, True, *answers)
    assert restarts.candidates(named) == ({"a": A}, busy)
    wanted = "FROM unnest(%s::text[]) AS g(name) JOIN jobs ON jobs.id = g.name"
    look = f"SELECT {COLUMNS} {wanted} ORDER BY jobs.id FOR UPDATE OF jobs SKIP LOCKED"
    assert asked.statements == [(look, [named]), (f"SELECT jobs.id {wanted}", [named])][: len(answers)]


def test_on_sqlite_nobody_holds_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = on(monkeypatch, False, [ROW_A])
    assert restarts.candidates(["a", "none"]) == ({"a": A}, set())
    ((sql, values),) = asked.statements
    assert values == ['[["a"], ["none"]]']
    table = "(SELECT json_extract(value, '$[0]') AS name FROM json_each(%s)) AS g"
    assert sql == f"SELECT {COLUMNS} FROM {table} JOIN jobs ON jobs.id = g.name"


def test_the_move_is_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = on(monkeypatch, True, [("a",)])
    assert restart(A, B, max_attempts=5) == 1
    ((sql, values),) = asked.statements
    assert sql == (
        "UPDATE jobs SET state = 'pending', reason = '', code = '', attempts = 0, "
        "max_attempts = coalesce(CAST(%s AS integer), jobs.max_attempts), deadline = %s, available_at = %s, waited_ms = 0, "
        "redriven = jobs.redriven + 1, batch = %s, changed_at_ms = %s "
        "FROM unnest(%s::text[], %s::bigint[]) AS g(id, token) "
        "WHERE jobs.id = g.id AND jobs.state = 'dead' AND jobs.token = g.token RETURNING jobs.id"
    )
    assert values == [5, AT + 70, AT + 7, 12, AT + 7, ["a", "b"], [4, 1]]
