"""Which open plan holds a job: who is named, who is given it, and every row that changes."""

from typing import Any

import pytest

from queue_app.models import Hold, Plan
from queue_app.policy.plans import CLOSED, OPEN, STATES
from queue_app.store import given, holds
from tests.store.changed import Asked, changes
from tests.store.rows import AT


def plan(state: str = "proposed", **columns: Any) -> int:
    return Plan.objects.create(
        queue="snacks", state=state, selection="{}", as_of_ms=AT, note="n", created_at_ms=AT, changed_at_ms=AT,
        expires_at_ms=AT, asked_rate_mj=1, rate_mj=1, **columns,
    ).pk  # fmt: skip


def hold(plan_id: int, *job_ids: str) -> None:
    Hold.objects.bulk_create([Hold(job_id=job_id, plan_id=plan_id) for job_id in job_ids])


@pytest.mark.django_db
def test_nothing_is_asked_about_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert holds.holders([]) == {}
        assert holds.take(1, []) == set()


@pytest.mark.django_db
def test_the_open_plans_of_jobs() -> None:
    by_state = {state: plan(state) for state in STATES}
    for state, plan_id in by_state.items():
        hold(plan_id, f"o-{state}", f"p-{state}")
    named = [f"o-{state}" for state in STATES]
    open_ones = {f"o-{state}": by_state[state] for state in OPEN}
    assert holds.holders([*named, "free"]) == open_ones
    assert holds.holders(named, except_plan=by_state["paused"]) == {
        job_id: plan_id for job_id, plan_id in open_ones.items() if job_id != "o-paused"
    }


@pytest.mark.django_db
def test_a_plan_gets_what_no_open_plan_holds() -> None:
    mine = plan("freezing")
    free = {f"closed-{state}" for state in CLOSED} | {"new"}
    for state in STATES:
        hold(plan(state), f"{'open' if state in OPEN else 'closed'}-{state}")
    hold(mine, "mine")
    wanted = sorted({*free, "mine", *(f"open-{state}" for state in OPEN)}, reverse=True)
    with changes(Hold) as rows:
        assert holds.take(mine, wanted) == free
    assert rows == {
        job_id: {"job_id": job_id, "plan_id": mine} if job_id == "new" else {"plan_id": mine} for job_id in free
    }


STATES_OPEN = ", ".join(["%s"] * len(OPEN))


@pytest.mark.parametrize(
    ("postgresql", "table", "ids"),
    [
        (True, "unnest(%s::text[]) AS g(id)", ["a", "b", "c"]),
        (False, "(SELECT json_extract(value, '$[0]') AS id FROM json_each(%s)) AS g", '[["a"], ["b"], ["c"]]'),
    ],
)
def test_jobs_are_taken_in_the_order_of_their_ids(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, table: str, ids: object
) -> None:
    asked = Asked([("b",)]).stand_in(monkeypatch, holds, given, postgresql=postgresql)
    assert holds.take(7, ["c", "a", "b"]) == {"b"}
    sql = (
        f"INSERT INTO holds AS h (job_id, plan_id) SELECT g.id, %s FROM {table} WHERE 1 = 1 "
        "ON CONFLICT (job_id) DO UPDATE SET plan_id = excluded.plan_id WHERE NOT EXISTS "
        f"(SELECT 1 FROM plans AS p WHERE p.id = h.plan_id AND p.state IN ({STATES_OPEN})) RETURNING job_id"
    )
    assert asked.statements == [(sql, [7, ids, *OPEN])]


def test_what_is_asked_about_holders(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([("a", 7), ("b", 8)]).stand_in(monkeypatch, holds)
    assert holds.holders(["b", "a"], except_plan=8) == {"a": 7}
    sql = (
        "SELECT h.job_id, h.plan_id FROM holds AS h JOIN plans AS p ON p.id = h.plan_id "
        f"WHERE h.job_id IN (%s, %s) AND p.state IN ({STATES_OPEN})"
    )
    assert asked.statements == [(sql, ["b", "a", *OPEN])]
