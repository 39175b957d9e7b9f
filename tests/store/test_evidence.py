"""Rows that are only added, by themselves: whole rows, at most one for each job and token, counts by name."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import Failure, LateFinish, RedriveOutcome, Tally
from queue_app.store import evidence, given
from queue_app.store.evidence import End, FailureRow
from tests.store.changed import Asked, changes
from tests.store.rows import AT, redrive


def rows_of(changed: dict[int, dict[str, object]]) -> list[dict[str, object]]:
    """New rows without the numbers that a sequence gave, in the order of jobs and tokens."""
    rows = [{key: value for key, value in row.items() if key != "id"} for row in changed.values()]
    return sorted(rows, key=lambda row: (row["job_id"], row["token"]))


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_failure_is_kept_whole_and_only_the_first_of_a_token() -> None:
    Failure.objects.create(job_id="a", token=1, attempt=9, at_ms=AT, outcome="retry", code="old")
    some = [
        FailureRow("a", 1, 1, "unknown", "bad_ack", "w1"),
        FailureRow("a", 2, 2, "permanent", "http_422", "w2"),
        FailureRow("b", 1, 3, "retry", "", ""),
    ]
    with changes(Failure) as changed:
        assert evidence.add_failures(some, AT + 5) == {("a", 2), ("b", 1)}
    assert rows_of(changed) == [one._asdict() | {"at_ms": AT + 5} for one in some[1:]]
    with changes(Failure) as changed:
        assert evidence.add_failures(some, AT + 6) == set()
    assert changed == {}


@pytest.mark.django_db
def test_the_last_code_is_that_of_the_greatest_token() -> None:
    some = [
        FailureRow("a", 9, 1, "retry", "nine", ""), FailureRow("a", 10, 2, "retry", "ten", ""),
        FailureRow("b", 3, 1, "unknown", "", ""), FailureRow("c", 1, 1, "retry", "c", ""),
    ]  # fmt: skip
    evidence.add_failures(some, AT)
    assert evidence.last_codes(iter(["b", "none", "a"])) == {"a": "ten", "b": ""}


# --- refused finishes -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_first_refused_finish_of_a_token_is_kept_and_all_are_counted() -> None:
    LateFinish.objects.create(job_id="a", token=1, at_ms=AT, outcome="ok")
    evidence.tally("late_finish", 3)
    late = [("a", 1, "retry"), ("b", 1, "ok"), ("b", 1, "permanent"), ("a", 2, "retry")]
    with changes(LateFinish) as changed:
        evidence.note_late_finishes(late, AT + 5)
    assert rows_of(changed) == [
        {"job_id": "a", "token": 2, "at_ms": AT + 5, "outcome": "retry"},
        {"job_id": "b", "token": 1, "at_ms": AT + 5, "outcome": "ok"},
    ]
    assert list(Tally.objects.values_list("name", "n")) == [("late_finish", 7)]


@pytest.mark.django_db
def test_a_count_grows_by_one_or_by_what_is_said_and_each_name_for_itself() -> None:
    for how in (("a",), ("a", 5), ("b",), ("a", 2)):
        evidence.tally(*how)
    assert sorted(Tally.objects.values_list("name", "n")) == [("a", 8), ("b", 1)]
    if connection.vendor == "sqlite":
        assert set(Tally.objects.values_list("slot", flat=True)) == {0}


# --- results of redrives --------------------------------------------------------------------------------------------

RESULTS = [
    (End("j1", "done", "", "", 5), {"outcome": "done", "reason": "", "code": "", "end_token": 5}),
    (
        End("j1", "dead", "permanent", "http_422", 6),
        {"outcome": "dead_same", "reason": "permanent", "code": "http_422", "end_token": 6},
    ),
    (
        End("j1", "dead", "permanent", "http_400", 5),
        {"outcome": "dead_other", "reason": "permanent", "code": "http_400", "end_token": 5},
    ),
    (
        End("j1", "dead", "exhausted", "http_422", 5),
        {"outcome": "dead_other", "reason": "exhausted", "code": "http_422", "end_token": 5},
    ),
    (End("none", "done", "", "", 5), None),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("end", "result"), RESULTS)
def test_the_first_end_after_the_last_redrive_is_its_result(
    team_lead: User, end: End, result: dict[str, object] | None
) -> None:
    redrive(1, team_lead, token=2, reason="exhausted", code="old")
    redrive(2, team_lead, job_id="j1", token=4, batch=8, queue="drinks")
    redrive(3, team_lead, token=1)
    with changes(RedriveOutcome) as changed:
        evidence.add_redrive_outcomes([end], AT + 5)
        evidence.add_redrive_outcomes([end._replace(token=7, state="done")], AT + 6)
    known = {"job_id": "j1", "token": 4, "queue": "drinks", "batch": 8, "was_reason": "permanent"}
    known |= {"was_code": "http_422", "at_ms": AT + 5}
    assert rows_of(changed) == ([] if result is None else [known | result])


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_nothing_to_add_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked().stand_in(monkeypatch, evidence)
    assert (evidence.add_failures([], AT), evidence.last_codes([])) == (set(), {})
    evidence.note_late_finishes([], AT)
    evidence.add_redrive_outcomes([], AT)
    assert asked.statements == []


@pytest.mark.parametrize(("postgresql", "slot"), [(False, "0"), (True, "pg_backend_pid()")])
def test_each_session_counts_in_a_place_of_its_own(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, slot: str
) -> None:
    asked = Asked().stand_in(monkeypatch, evidence, postgresql=postgresql)
    evidence.tally("x", 2)
    evidence.tally("y")
    sql = (
        f"INSERT INTO tallies AS t (name, slot, n) VALUES (%s, {slot}, %s) "
        "ON CONFLICT (name, slot) DO UPDATE SET n = t.n + excluded.n"
    )
    assert asked.statements == [(sql, ["x", 2]), (sql, ["y", 1])]


@pytest.mark.parametrize("postgresql", [False, True])
def test_two_hosts_that_refuse_the_same_finish_at_once_do_not_fail(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool
) -> None:
    asked = Asked().stand_in(monkeypatch, evidence, given, postgresql=postgresql)
    evidence.note_late_finishes([("b", 2, "ok"), ("a", 1, "retry")], AT)
    (sql, values), (_, count) = asked.statements
    assert count == ["late_finish", 2]
    assert sql == (
        f"INSERT INTO late_finishes (job_id, token, at_ms, outcome) SELECT g.job_id, g.token, %s, g.outcome "
        f"FROM {evidence._LATE.table} WHERE NOT EXISTS (SELECT 1 FROM late_finishes AS l WHERE l.job_id = g.job_id AND "
        "l.token = g.token)" + (" ON CONFLICT DO NOTHING" if postgresql else "")
    )
    both = [["a", "b"], [1, 2], ["retry", "ok"]]
    assert values == [AT, *(both if postgresql else ['[["a", 1, "retry"], ["b", 2, "ok"]]'])]


ASKED = [
    (
        lambda: evidence.add_failures([FailureRow("b", 2, 3, "retry", "c", "w")], AT),
        "INSERT INTO failures (job_id, token, attempt, at_ms, outcome, code, worker) SELECT g.job_id, g.token, g.attempt, "
        "%s, g.outcome, g.code, g.worker FROM unnest(%s::text[], %s::bigint[], %s::integer[], %s::text[], %s::text[], "
        "%s::text[]) AS g(job_id, token, attempt, outcome, code, worker) WHERE NOT EXISTS (SELECT 1 FROM failures AS f "
        "WHERE f.job_id = g.job_id AND f.token = g.token) RETURNING job_id, token",
        [AT, ["b"], [2], [3], ["retry"], ["c"], ["w"]],
        {("a", 1)},
    ),
    (
        lambda: evidence.last_codes(["b", "a"]),
        "SELECT f.job_id, f.code FROM unnest(%s::text[]) AS g(name) JOIN failures AS f ON f.job_id = g.name "
        "WHERE f.token = (SELECT max(l.token) FROM failures AS l WHERE l.job_id = g.name)",
        [["a", "b"]],
        {"a": 1},
    ),
    (
        lambda: evidence.add_redrive_outcomes([End("b", "dead", "permanent", "c", 5)], AT),
        "INSERT INTO redrive_outcomes (job_id, token, queue, batch, was_reason, was_code, outcome, reason, code, "
        "end_token, at_ms) SELECT r.job_id, r.token, r.queue, r.batch, r.reason, r.code, "
        "CASE WHEN g.state = 'done' THEN 'done' WHEN r.reason = g.reason AND r.code = g.code THEN 'dead_same' "
        "ELSE 'dead_other' END, g.reason, g.code, g.token, %s FROM unnest(%s::text[], %s::text[], %s::text[], "
        "%s::text[], %s::bigint[]) AS g(job_id, state, reason, code, token) JOIN redrives AS r "
        "ON r.job_id = g.job_id WHERE r.token = (SELECT max(l.token) FROM redrives AS l WHERE l.job_id = g.job_id) "
        "AND NOT EXISTS (SELECT 1 FROM redrive_outcomes AS o WHERE o.job_id = r.job_id AND o.token = r.token)",
        [AT, ["b"], ["dead"], ["permanent"], ["c"], [5]],
        None,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("add", "sql", "values", "gives"), ASKED, ids=["failures", "last_codes", "outcomes"])
def test_one_statement_serves_them_all(
    monkeypatch: pytest.MonkeyPatch, add: Callable[[], object], sql: str, values: list[object], gives: object
) -> None:
    asked = Asked([("a", 1)]).stand_in(monkeypatch, evidence, given)
    assert add() == gives
    assert asked.statements == [(sql, values)]
