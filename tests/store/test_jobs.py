"""The guarded moves of jobs by themselves: which rows move, every column that changes, what each database is asked."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from queue_app.models import Job
from queue_app.policy.decisions import Spent
from queue_app.store import given, jobs
from queue_app.store.jobs import JobRow
from tests.store.changed import Asked, changes, locks
from tests.store.rows import AT, job

COLUMNS = (
    "id, queue, quantity, payload, order_key, state, reason, code, attempts, max_attempts, token, owner, lease_until, "
    "available_at, deadline, changed_at_ms, redriven, batch, waited_ms"
)
J_COLUMNS = ", ".join(f"j.{column}" for column in COLUMNS.split(", "))
WHERE = "WHERE j.queue = %s AND j.state IN ('pending', 'leased') AND j.available_at <= "
DEADLINE = AT + 86_400_000


def row(job_id: str, **columns: object) -> JobRow:
    """An order as `tests.store.rows.job` makes it."""
    known: dict[str, object] = {
        "queue": "snacks", "quantity": 7, "payload": '{"item":"chips"}', "order_key": "", "state": "pending",
        "reason": "", "code": "", "attempts": 0, "max_attempts": 3, "token": 0, "owner": None, "lease_until": None,
        "available_at": AT, "deadline": DEADLINE, "changed_at_ms": AT, "redriven": 0, "batch": None, "waited_ms": 0,
    }  # fmt: skip
    return JobRow(id=job_id, **known | columns)  # type: ignore[arg-type]


def leased(job_id: str, **columns: object) -> JobRow:
    """An order in a worker's hand."""
    known = {"state": "leased", "attempts": 1, "token": 1, "owner": "w", "lease_until": AT + 30_000}
    return row(job_id, **known | columns)


WHOLE: dict[str, object] = {
    "queue": "drinks", "order_key": "k", "attempts": 2, "max_attempts": 4, "token": 5, "owner": "w9", "waited_ms": 8,
    "lease_until": AT + 1, "available_at": AT + 2, "deadline": AT + 3, "changed_at_ms": AT + 4, "redriven": 6, "batch": 7,
}  # fmt: skip


def test_the_budget_spent_is_read_off_the_row() -> None:
    assert leased("a", **WHOLE).spent == Spent(2, 4, 8, AT + 3)


@pytest.mark.django_db
@pytest.mark.parametrize("lock", [False, True])
def test_a_job_is_read_whole(lock: bool) -> None:
    job("a", 1, state="leased", **WHOLE)
    job("b", 2, state="dead", reason="deadline", code="http_503")
    assert jobs.read("a", lock=lock) == leased("a", **WHOLE)
    assert jobs.read("b") == row("b", state="dead", reason="deadline", code="http_503", attempts=1, token=1)
    assert jobs.read("none", lock=lock) is None


# --- due ------------------------------------------------------------------------------------------------------------


def _due_and_others() -> None:
    """In the order of handing out: first, b, a, taken; two without budget; the rest is not due at AT."""
    job("a", 5, order_key="k")
    job("b", 4, order_key="k")
    job("first", 9, available_at=AT - 1, order_key="l")
    job("taken", 6, state="leased", lease_until=AT)
    job("spent", 7, state="leased", lease_until=AT - 1, attempts=3)
    job("late", 8, deadline=AT)
    job("in-hand", 1, state="leased", lease_until=AT + 1)
    job("not-yet", 2, available_at=AT + 1)
    job("elsewhere", 3, queue="drinks")
    job("done", 10, state="done")
    job("dead", 11, state="dead", order_key="")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ask", "found"),
    [
        (lambda: jobs.due("snacks", AT, 9, ordered=False), ["first", "b", "a", "taken", "spent", "late"]),
        (lambda: jobs.due("snacks", AT, 2, ordered=False), ["first", "b"]),
        (lambda: jobs.due("snacks", AT, 9, ordered=True), ["first", "b", "taken", "spent", "late"]),
        (lambda: jobs.due("snacks", AT, 9, ordered=False, with_budget=True), ["first", "b", "a", "taken"]),
        (lambda: jobs.due("snacks", AT, 9, ordered=True, with_budget=True), ["first", "b", "taken"]),
        (lambda: jobs.due("drinks", AT, 9, ordered=True), ["elsewhere"]),
        (lambda: jobs.due("drinks", AT - 1, 9, ordered=True), []),
    ],
)
def test_due_jobs_come_in_their_order(ask: Callable[[], list[JobRow]], found: list[str]) -> None:
    _due_and_others()
    assert [one.id for one in ask()] == found


@pytest.mark.django_db
def test_a_due_job_is_read_whole() -> None:
    job("a", 1, state="leased", **WHOLE | {"available_at": AT - 9, "lease_until": AT})
    assert jobs.due("drinks", AT, 1, ordered=True) == [
        leased("a", **WHOLE | {"available_at": AT - 9, "lease_until": AT})
    ]


@pytest.mark.parametrize(
    ("postgresql", "now_ms", "sql", "values"),
    [
        (
            False,
            AT,
            f"SELECT {J_COLUMNS} FROM jobs AS j {WHERE}%s AND (j.state = 'pending' OR j.lease_until <= %s)"
            " ORDER BY j.available_at, j.seq LIMIT %s",
            ["snacks", AT, AT, 5],
        ),
        (
            True,
            AT,
            f"SELECT {J_COLUMNS} FROM jobs AS j {WHERE}%s AND (j.state = 'pending' OR j.lease_until <= %s)"
            " ORDER BY j.available_at, j.seq LIMIT %s FOR UPDATE OF j SKIP LOCKED",
            ["snacks", AT, AT, 5],
        ),
        (
            True,
            None,
            "WITH clock AS MATERIALIZED (SELECT snackops_now_ms() AS at) "
            f"SELECT {J_COLUMNS}, (SELECT at FROM clock) FROM jobs AS j {WHERE}(SELECT at FROM clock) "
            "AND (j.state = 'pending' OR j.lease_until <= (SELECT at FROM clock))"
            " ORDER BY j.available_at, j.seq LIMIT %s FOR UPDATE OF j SKIP LOCKED",
            ["snacks", 5],
        ),
    ],
)
def test_what_is_asked_for_due_jobs(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, now_ms: int | None, sql: str, values: list[object]
) -> None:
    asked = Asked([tuple(row("a"))]).stand_in(monkeypatch, jobs, postgresql=postgresql)
    assert jobs.due_statement("snacks", now_ms, 5) == (sql, values)
    if now_ms is not None:
        assert jobs.due("snacks", now_ms, 5, ordered=False) == [row("a")]
        assert asked.statements == [(sql, values)]


@locks
def test_a_row_is_locked_where_that_means_something(
    monkeypatch: pytest.MonkeyPatch, lock: bool | None, postgresql: bool, suffix: str
) -> None:
    asked = Asked([tuple(row("a"))]).stand_in(monkeypatch, jobs, postgresql=postgresql)
    assert jobs.read("a", **({} if lock is None else {"lock": lock})) == row("a")
    assert asked.statements == [(f"SELECT {COLUMNS} FROM jobs WHERE id = %s{suffix}", ["a"])]


# --- moves ----------------------------------------------------------------------------------------------------------


def _some() -> dict[str, JobRow]:
    """Stored rows, and how they were read before somebody moved `moved` (its token) and `ended` (its state)."""
    job("new", 1, attempts=1, waited_ms=3)
    job("left", 2, state="leased", attempts=2, token=5)
    job("moved", 3, token=1)
    job("ended", 4, state="done", token=1)
    job("other", 5)
    return {
        "new": row("new", attempts=1, waited_ms=3),
        "left": leased("left", attempts=2, token=5),
        "moved": row("moved"),
        "ended": leased("ended"),
        "none": row("none"),
    }


HANDED = {"state": "leased", "owner": "w2", "lease_until": AT + 9, "changed_at_ms": AT + 5}


@pytest.mark.django_db
def test_only_those_that_stand_as_they_were_read_are_handed_out() -> None:
    seen = _some()
    with changes(Job) as changed:
        assert jobs.lease_all(list(seen.values()), "w2", AT + 5, AT + 9) == {"new", "left"}
    assert changed == {
        "new": {**HANDED, "attempts": 2, "token": 1},
        "left": {key: value for key, value in HANDED.items() if key != "state"} | {"attempts": 3, "token": 6},
    }


@pytest.mark.django_db
def test_ended_and_taken_on_in_one_statement() -> None:
    seen = _some()
    job("held", 6, state="leased", token=4, attempts=1)
    job("lost", 7, state="leased", token=5, attempts=1)
    job("back", 8)
    done = [("held", 4), ("lost", 4), ("back", 0), ("none", 1)]
    with changes(Job) as changed, transaction.atomic():  # or its last statement would commit the test's own
        assert jobs.pass_on(done, list(seen.values()), "w2", AT + 5, AT + 9) == {"held", "new", "left"}
    assert changed == {
        "held": {"state": "done", "owner": None, "lease_until": None, "changed_at_ms": AT + 5},
        "new": {**HANDED, "attempts": 2, "token": 1},
        "left": {key: value for key, value in HANDED.items() if key != "state"} | {"attempts": 3, "token": 6},
    }
    with changes(Job) as changed, transaction.atomic():
        assert jobs.pass_on([], [row("back")], "w3", AT, AT + 1) == {"back"}
        assert jobs.pass_on([("lost", 5)], [], "w3", AT + 6, AT + 1) == {"lost"}
    assert (set(changed), changed["back"]["owner"], changed["lost"]["state"]) == ({"back", "lost"}, "w3", "done")


@pytest.mark.django_db
def test_only_those_that_stand_as_they_were_read_are_buried() -> None:
    seen = _some()
    reasons = {"new": ("deadline", ""), "left": ("exhausted", "lease_expired")}
    burials = [(one, *reasons.get(name, ("deadline", "x"))) for name, one in seen.items()]
    with changes(Job) as changed:
        assert jobs.bury_all(burials, AT + 5) == {"new", "left"}
    assert changed == {
        "new": {"state": "dead", "reason": "deadline", "token": 1, "changed_at_ms": AT + 5},
        "left": {
            "state": "dead", "reason": "exhausted", "code": "lease_expired", "token": 6, "owner": None,
            "lease_until": None, "changed_at_ms": AT + 5,
        },
    }  # fmt: skip


def test_nothing_to_move_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked().stand_in(monkeypatch, jobs)
    empty: list[set[str]] = [
        jobs.lease_all([], "w", AT, AT), jobs.pass_on([], [], "w", AT, AT), jobs.bury_all([], AT),
    ]  # fmt: skip
    assert empty == [set(), set(), set()]
    assert asked.statements == []


STAND = "WHERE jobs.id = g.id AND jobs.state = g.state AND jobs.token = g.token RETURNING jobs.id"
ASKED = [
    (
        lambda: jobs.lease_all([leased("b", token=4), row("a")], "w", AT, AT + 1),
        "UPDATE jobs SET state = 'leased', owner = %s, lease_until = %s, attempts = jobs.attempts + 1, token = jobs.token "
        "+ 1, changed_at_ms = %s FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS g(id, state, token) " + STAND,
        ["w", AT + 1, AT, ["b", "a"], ["leased", "pending"], [4, 0]],
        [],
    ),
    (
        lambda: jobs.pass_on([("a", 1)], [leased("b", token=4)], "w", AT, AT + 1),
        "UPDATE jobs SET state = CASE g.taken WHEN 1 THEN 'leased' ELSE 'done' END, "
        "owner = CASE g.taken WHEN 1 THEN %s END, lease_until = CASE g.taken WHEN 1 THEN CAST(%s AS bigint) END, "
        "attempts = jobs.attempts + g.taken, token = jobs.token + g.taken, changed_at_ms = %s "
        "FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::integer[]) AS g(id, state, token, taken) " + STAND,
        ["w", AT + 1, AT, ["a", "b"], ["leased", "leased"], [1, 4], [0, 1]],
        [True],
    ),
    (
        lambda: jobs.bury_all([(leased("b", token=4), "exhausted", "x"), (row("a"), "deadline", "")], AT),
        "UPDATE jobs SET state = 'dead', reason = g.reason, code = g.code, token = jobs.token + 1, owner = NULL, "
        "lease_until = NULL, changed_at_ms = %s FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[]) "
        "AS g(id, state, token, reason, code) " + STAND,
        [AT, ["b", "a"], ["leased", "pending"], [4, 0], ["exhausted", "deadline"], ["x", ""]],
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("move", "sql", "values", "last"), ASKED, ids=["lease_all", "pass_on", "bury_all"])
def test_one_statement_moves_them_all(
    monkeypatch: pytest.MonkeyPatch, move: Callable[[], set[str]], sql: str, values: list[object], last: list[bool]
) -> None:
    """Ends and the next jobs together are the last statement of their transaction, so that its commit travels with it."""
    asked = Asked([("b",)]).stand_in(monkeypatch, jobs, given)
    assert move() == {"b"}
    assert (asked.statements, asked.last) == ([(sql, values)], last)


# --- out of quarantine ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("job_id", "token", "batch", "moves"),
    [("a", 2, None, True), ("a", 2, 9, True), ("a", 1, None, False), ("a", 3, None, False), ("b", 2, None, False)],
)
def test_one_starts_again_only_if_dead_with_this_token(job_id: str, token: int, batch: int | None, moves: bool) -> None:
    job("a", 1, state="dead", token=2, attempts=3, redriven=1, waited_ms=5)
    job("b", 2, state="leased", token=2)
    with changes(Job) as changed:
        answer = jobs.restart(job_id, token, max_attempts=4, deadline=AT + 7, batch=batch, now_ms=AT + 6)
    assert answer is moves
    wanted: dict[str, object] = {
        "state": "pending", "reason": "", "code": "", "attempts": 0, "max_attempts": 4, "deadline": AT + 7,
        "available_at": AT + 6, "waited_ms": 0, "redriven": 2, "changed_at_ms": AT + 6,
    }  # fmt: skip
    assert changed == ({"a": wanted | ({"batch": batch} if batch else {})} if moves else {})


@pytest.mark.django_db
def test_the_rows_of_a_look_are_those_of_the_clock_of_the_database(clock: object) -> None:
    """Differs because only PostgreSQL's clock is asked inside the statement."""
    if connection.vendor == "postgresql":
        job("a", 1, available_at=AT)
        job("b", 2, available_at=AT + 1)
        rows = jobs.fetch(*jobs.due_statement("snacks", None, 9))
        assert [(found[0], found[-1]) for found in rows] == [("a", AT)]
    else:
        assert jobs.due_of([tuple(row("a"))]) == [row("a")]
