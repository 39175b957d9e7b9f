"""The guarded ends of attempts by themselves: which rows move, every column that changes, what each database is asked."""

from collections.abc import Callable

import pytest

from queue_app.models import Gate, Job
from queue_app.policy.decisions import Spent
from queue_app.store import ends, given, jobs
from queue_app.store.ends import HeldRow
from tests.store.changed import Asked, changes
from tests.store.rows import AT, job

NOW = AT + 5
END = {"owner": None, "lease_until": None, "changed_at_ms": NOW}
HELD = HeldRow("a", "snacks", "leased", 5, 2, 4, 8, AT + 3, "w9", 6, False)
TROUBLED = (
    "EXISTS (SELECT 1 FROM gates WHERE gates.queue = jobs.queue "
    "AND (gates.breaker <> 'closed' OR gates.failed_in_row > 0))"
)


def test_the_budget_spent_is_read_off_the_row() -> None:
    assert HELD.spent == Spent(2, 4, 8, AT + 3)


@pytest.mark.parametrize(
    ("state", "token", "owned"),
    [("leased", 5, True), ("leased", 4, False), ("leased", 6, False), ("done", 5, False), ("pending", 4, False)],
)
def test_a_job_in_a_workers_hand_belongs_to_its_token(state: str, token: int, owned: bool) -> None:
    assert HELD._replace(state=state).owned_by(token) is owned


@pytest.mark.django_db
def test_the_jobs_that_ends_name_are_read_whole() -> None:
    whole = {"attempts": 2, "max_attempts": 4, "waited_ms": 8, "deadline": AT + 3, "owner": "w9", "redriven": 6}
    job("a", 1, state="leased", token=5, **whole)
    job("b", 2, state="dead", queue="drinks")
    job("c", 3)
    Gate.objects.create(queue="drinks", failed_in_row=1)
    assert ends.held(iter(["b", "none", "a"])) == {
        "a": HELD,
        "b": HeldRow("b", "drinks", "dead", 1, 1, 3, 0, AT + 86_400_000, None, 0, True),
    }
    assert ends.held_of([]) == {}


@pytest.mark.parametrize(
    ("postgresql", "table", "lock", "values"),
    [
        (False, "(SELECT json_extract(value, '$[0]') AS name FROM json_each(%s)) AS g", "", ['[["a"], ["b"]]']),
        (True, "unnest(%s::text[]) AS g(name)", " ORDER BY jobs.id FOR UPDATE OF jobs", [["a", "b"]]),
    ],
)
def test_what_is_asked_of_the_jobs_that_ends_name(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, table: str, lock: str, values: list[object]
) -> None:
    asked = Asked([HELD]).stand_in(monkeypatch, ends, given, postgresql=postgresql)
    columns = "id, queue, state, token, attempts, max_attempts, waited_ms, deadline, owner, redriven"
    sql = "SELECT " + ", ".join(f"jobs.{column}" for column in columns.split(", "))
    sql += f", {TROUBLED} FROM {table} JOIN jobs ON jobs.id = g.name{lock}"
    assert ends.held_statement(["b", "a"]) == (sql, values)
    assert ends.held(["b", "a"]) == {"a": HELD}
    assert asked.statements == [(sql, values)]


# what each end does with `one` and `two`, both in a worker's hand with the tokens 4 and 5
MOVES: list[tuple[Callable[[list[tuple[str, int]]], set[str]], dict[str, object], dict[str, object]]] = [
    (lambda proofs: ends.complete(proofs, NOW), {"state": "done", **END}, {"state": "done", **END}),
    (
        lambda proofs: ends.retry([(name, token, AT + token, token * 10) for name, token in proofs], NOW),
        {"state": "pending", "available_at": AT + 4, "waited_ms": 40, **END},
        {"state": "pending", "available_at": AT + 5, "waited_ms": 57, **END},
    ),
    (
        lambda proofs: ends.quarantine([(name, token, "exhausted", f"http_50{token}") for name, token in proofs], NOW),
        {"state": "dead", "reason": "exhausted", "code": "http_504", **END},
        {"state": "dead", "reason": "exhausted", "code": "http_505", **END},
    ),
    (
        lambda proofs: ends.give_back(proofs, NOW),
        {"state": "pending", "available_at": NOW, "attempts": 0, **END},
        {"state": "pending", "available_at": NOW, "attempts": 1, **END},
    ),
    (
        lambda proofs: ends.extend([(name, token, AT + 30_000 + token) for name, token in proofs]),
        {"lease_until": AT + 30_004},
        {"lease_until": AT + 30_005},
    ),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("move", "one", "two"), MOVES, ids=["complete", "retry", "quarantine", "give_back", "extend"])
def test_only_what_is_leased_with_this_token_ends(
    move: Callable[[list[tuple[str, int]]], set[str]], one: dict[str, object], two: dict[str, object]
) -> None:
    job("one", 1, state="leased", token=4)
    job("two", 2, state="leased", token=5, attempts=2, waited_ms=7)
    job("three", 3, state="leased", token=6)
    job("back", 4, token=4)
    job("other", 5, state="leased", token=4)
    proofs = [("one", 4), ("two", 5), ("three", 5), ("three", 7), ("back", 4), ("none", 4)]
    with changes(Job) as changed:
        assert move(proofs) == {"one", "two"}
    assert changed == {"one": one, "two": two}
    with changes(Job) as changed:
        assert move([]) == set()
    assert changed == {}


@pytest.mark.django_db
@pytest.mark.parametrize(("until", "then"), [(-1, {}), (0, {}), (1, {"lease_until": AT + 30_001})])
def test_no_lease_becomes_shorter(until: int, then: dict[str, object]) -> None:
    job("one", 1, state="leased")
    with changes(Job) as changed:
        assert ends.extend([("one", 1, AT + 30_000 + until)]) == {"one"}
    assert changed == ({"one": then} if then else {})


@pytest.mark.django_db
def test_an_attempt_that_was_none_is_not_given_back() -> None:
    job("one", 1, state="leased", attempts=0)
    assert ends.give_back([("one", 1)], NOW) == {"one"}
    assert Job.objects.get().attempts == 0


GIVEN = "unnest(%s::text[], %s::bigint[]"
OWNED = "WHERE jobs.id = g.id AND jobs.state = 'leased' AND jobs.token = g.token RETURNING jobs.id"
LEAVES = "owner = NULL, lease_until = NULL, changed_at_ms = %s FROM"
ASKED = [
    f"UPDATE jobs SET state = 'done', {LEAVES} {GIVEN}) AS g(id, token) {OWNED}",
    f"UPDATE jobs SET state = 'pending', available_at = g.at_ms, waited_ms = jobs.waited_ms + g.wait_ms, {LEAVES} "
    f"{GIVEN}, %s::bigint[], %s::bigint[]) AS g(id, token, at_ms, wait_ms) {OWNED}",
    f"UPDATE jobs SET state = 'dead', reason = g.reason, code = g.code, {LEAVES} "
    f"{GIVEN}, %s::text[], %s::text[]) AS g(id, token, reason, code) {OWNED}",
    "UPDATE jobs SET state = 'pending', available_at = %s, attempts = CASE WHEN jobs.attempts > 0 THEN jobs.attempts - 1 "
    f"ELSE 0 END, {LEAVES} {GIVEN}) AS g(id, token) {OWNED}",
    "UPDATE jobs SET lease_until = CASE WHEN jobs.lease_until > g.until THEN jobs.lease_until ELSE g.until END FROM "
    f"{GIVEN}, %s::bigint[]) AS g(id, token, until) {OWNED}",
]


def test_each_end_is_one_statement_and_nothing_to_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([("a",)], [("a",)], [("b",)], [], [("a",), ("b",)]).stand_in(monkeypatch, ends, jobs, given)
    assert [move([]) for move, _, _ in MOVES] == [set()] * 5
    assert asked.statements == []
    assert [move([("b", 4), ("a", 5)]) for move, _, _ in MOVES] == [{"a"}, {"a"}, {"b"}, set(), {"a", "b"}]
    proofs = [["b", "a"], [4, 5]]
    assert asked.statements == list(
        zip(
            ASKED,
            (
                [NOW, *proofs],
                [NOW, *proofs, [AT + 4, AT + 5], [40, 50]],
                [NOW, *proofs, ["exhausted", "exhausted"], ["http_504", "http_505"]],
                [NOW, NOW, *proofs],
                [*proofs, [AT + 30_004, AT + 30_005]],
            ),
            strict=True,
        )
    )
