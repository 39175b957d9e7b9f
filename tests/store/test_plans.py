"""Guarded writes of plans: the whole row after each move, each guard from both sides, the order of what waits."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from queue_app.models import Approval, Plan, PlanGroup, RedriveOutcome, Result
from queue_app.policy.plans import CLOSED, MOVES, STATES
from queue_app.store import plans
from tests.store.rows import AT, HASH, outcome

pytestmark = pytest.mark.django_db
LATER = AT + 5_000


def a_plan(state: str = "proposed", queue: str = "snacks", **columns: Any) -> Plan:
    fitting = {"selection": "{}", "note": "n", "as_of_ms": AT, "created_at_ms": AT, "changed_at_ms": AT}
    fitting |= {"expires_at_ms": AT + 1, "asked_rate_mj": 9, "rate_mj": 8}
    return Plan.objects.create(**fitting | {"state": state, "queue": queue} | columns)


def seen(plan: Plan) -> dict[str, Any]:
    """All columns as the object at hand has them."""
    return {name: value for name, value in vars(plan).items() if not name.startswith("_")}


def stored(plan: Plan) -> dict[str, Any]:
    return Plan.objects.values().get(pk=plan.pk)


# --- reading and making -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"lock": True}, {"lock": True, "pass_over": True}, {"pass_over": True}], ids=str)
def test_a_plan_is_read_whole_whether_it_is_held_or_not(how: dict[str, bool]) -> None:
    with transaction.atomic():
        _, one, _ = a_plan(), a_plan(note="this", cap=5), a_plan()
        found = plans.read(one.pk, **how)
        assert found is not None
        assert seen(found) == stored(one)
        assert plans.read(one.pk + 2, **how) is None


@pytest.mark.parametrize(
    ("postgresql", "how", "held"),
    [
        (True, {}, ""),
        (True, {"pass_over": True}, ""),
        (True, {"lock": True}, " FOR UPDATE"),
        (True, {"lock": True, "pass_over": True}, " FOR UPDATE SKIP LOCKED"),
        (False, {"lock": True, "pass_over": True}, ""),
    ],
)
def test_only_postgresql_is_told_to_hold_the_row(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, how: dict[str, bool], held: str
) -> None:
    asked: list[tuple[str, list[int]]] = []
    monkeypatch.setattr(plans, "is_postgresql", lambda: postgresql)

    def raw(sql: str, given: list[int]) -> list[str]:
        asked.append((sql, given))
        return ["it"]

    monkeypatch.setattr(Plan.objects, "raw", raw)
    assert plans.read(7, **how) == "it"
    assert asked == [(f"SELECT * FROM plans WHERE id = %s{held}", [7])]


def test_a_new_plan_is_in_the_making_and_found_by_its_form() -> None:
    given = {
        "queue": "q", "selection": "{}", "note": "n", "as_of_ms": AT, "created_at_ms": AT, "changed_at_ms": AT,
        "expires_at_ms": AT, "asked_rate_mj": 2, "rate_mj": 1, "form_key": "k" * 16,
    }  # fmt: skip
    a_plan(form_key="other")
    made = plans.add(**given)
    default = {column.attname: column.get_default() for column in Plan._meta.concrete_fields}
    assert stored(made) == {**default, **given, "id": made.pk, "state": "freezing"}
    assert plans.by_form_key("k" * 16) == made
    assert plans.by_form_key("k" * 17) is None
    with pytest.raises(IntegrityError), transaction.atomic():
        plans.add(**given)


# --- moving -------------------------------------------------------------------------------------------------------------


def test_every_move_leads_where_the_table_says_and_no_other_is_made() -> None:
    for state in STATES:
        for name in sorted({name for _, name in MOVES}):
            if (state, name) not in MOVES:
                with pytest.raises(KeyError):
                    plans.move(Plan(state=state), name, LATER)
                continue
            one, other = a_plan(state, f"{state}-{name}"), a_plan(state, f"{state}-{name}-2")
            to = MOVES[state, name].to
            became = {"state": to, "changed_at_ms": LATER, "why": "because", "round": 3}
            wanted = stored(one) | became | ({"ended_at_ms": LATER} if to in CLOSED else {})
            untouched = stored(other)
            assert plans.move(one, name, LATER, why="because", round=3) is True
            assert (seen(one), stored(one), stored(other)) == (wanted, wanted, untouched), (state, name)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("state", "rejected"),
        ("round", 1),
        ("redriven", 1),
        ("skipped", 1),
        ("frozen_after_ms", 0),
        ("frozen_after_seq", 0),
        ("sealed_pos", 1),
    ],
)
def test_a_plan_that_went_on_since_it_was_read_is_left_alone(column: str, value: object) -> None:
    one = a_plan(planned=5)
    Plan.objects.filter(pk=one.pk).update(**{column: value})
    read, stands = seen(one), stored(one)
    assert plans.change(one, why="late") is False
    assert plans.move(one, "approve", LATER) is False
    assert (seen(one), stored(one)) == (read, stands)
    one.refresh_from_db()
    assert plans.change(one, why="now", next_pos=4) is True
    assert seen(one) == stored(one) == stands | {"why": "now", "next_pos": 4}


# --- turns --------------------------------------------------------------------------------------------------------------


def test_a_batch_runs_for_its_own_queue_alone() -> None:
    a_plan("approved", "drinks")
    a_plan("paused", "snacks")
    a_plan("running", "cakes")
    assert [plans.another_runs(queue) for queue in ("drinks", "snacks", "cakes", "none")] == [False, False, True, False]


def test_who_was_approved_first_is_next() -> None:
    a_plan("proposed", changed_at_ms=AT - 9)
    a_plan("approved", "drinks", changed_at_ms=AT - 8)
    late = a_plan("approved", changed_at_ms=AT + 1)
    first, second = a_plan("approved"), a_plan("approved")
    order = []
    while (plan_id := plans.next_in_turn("snacks")) is not None:
        order.append(plan_id)
        Plan.objects.filter(pk=plan_id).update(state="paused")
    assert order == [first.pk, second.pk, late.pk]
    assert plans.next_in_turn("cakes") is None


def test_what_time_or_progress_may_move_is_read_oldest_first_with_what_decides() -> None:
    made = [a_plan(state, f"q{n}", expires_at_ms=AT + n) for n, state in enumerate(reversed(STATES))]
    made.append(a_plan("freezing", "last", expires_at_ms=5))
    at_work = [plan for plan in made if plan.state in ("freezing", "proposed", "approved", "running")]
    assert [seen(plan) for plan in plans.at_work()] == [
        {"id": plan.pk, "queue": plan.queue, "state": plan.state, "expires_at_ms": plan.expires_at_ms}
        for plan in at_work
    ]
    assert len(at_work) == 5


# --- causes, decisions, outcomes ----------------------------------------------------------------------------------------


def test_the_causes_of_a_plan_are_its_own_and_in_order() -> None:
    one, other = a_plan(), a_plan()
    rows = {}
    for plan, reason, code in ((one, "permanent", "b"), (other, "permanent", "a"), (one, "exhausted", "z"),
                               (one, "permanent", "a"), (one, "deadline", "")):  # fmt: skip
        rows[plan.pk, reason, code] = PlanGroup.objects.create(
            plan=plan, reason=reason, code=code, oldest_ms=AT, newest_ms=AT
        )
    order = [("deadline", ""), ("exhausted", "z"), ("permanent", "a"), ("permanent", "b")]
    assert list(plans.groups(one.pk).items()) == [(group, rows[one.pk, *group]) for group in order]
    assert plans.groups(other.pk) == {("permanent", "a"): rows[other.pk, "permanent", "a"]}
    assert plans.groups(other.pk + 1) == {}


def test_a_round_has_one_decision(team_lead: User) -> None:
    one, other = a_plan(), a_plan()
    given = {
        "decision": "approve", "by_id": team_lead.pk, "by_name": "tom", "at_ms": AT, "note": "n", "comment": "c",
        "digest": HASH, "rate_mj": 1, "canary": 2, "left_out": '[["a", "b"]]', "proof": "password", "solo": True,
    }  # fmt: skip
    made = [plans.add_decision(plan_id=plan.pk, round=n, **given) for plan, n in ((one, 1), (one, 2), (other, 2))]
    assert Approval.objects.values().get(pk=made[1].pk) == {"id": made[1].pk, "plan_id": one.pk, "round": 2, **given}
    asked = [(one, 1), (one, 2), (other, 2), (other, 1), (one, 3)]
    assert [plans.decision_of(plan.pk, n) for plan, n in asked] == [*made, None, None]
    with pytest.raises(IntegrityError), transaction.atomic():
        plans.add_decision(plan_id=one.pk, round=2, **given)


def test_the_newest_outcome_is_the_batchs_own() -> None:
    for link, batch in ((1, 5), (2, 5), (3, 6), (4, None)):
        outcome(link, "done", batch=batch)
    ids = list(RedriveOutcome.objects.order_by("job_id").values_list("id", flat=True))
    assert [plans.last_outcome(batch) for batch in (5, 6, 7)] == [ids[1], ids[2], 0]


def waiting(plan: Plan, *slots: int, outcome: str = "waiting") -> Plan:
    """How many of its redriven orders have no end yet, as the counter's slots say."""
    for slot, n in enumerate(slots):
        Result.objects.create(batch=plan.pk, queue="q", reason="r", code="c", outcome=outcome, slot=slot, n=n)
    return plan


def test_what_closed_with_all_its_outcomes_is_sealed_oldest_first() -> None:
    for n, state in enumerate(STATES):
        if state not in ("ended", "stopped"):
            a_plan(state, f"q{n}")
    a_plan("ended", sealed_at_ms=AT)
    waiting(a_plan("ended"), 1)
    waiting(a_plan("stopped"), 3, -2)
    due = [
        a_plan("stopped"),
        waiting(a_plan("ended"), 0),
        waiting(a_plan("stopped"), 2, -2),
        waiting(a_plan("ended"), 4, outcome="done"),
    ]
    assert plans.to_seal() == [plan.pk for plan in due]
    assert plans.to_seal(2) == [plan.pk for plan in due[:2]]


def test_fifty_are_sealed_at_a_time() -> None:
    values = stored(a_plan("ended")) | {"id": None}
    Plan.objects.bulk_create(Plan(**values) for _ in range(50))
    assert plans.to_seal() == list(Plan.objects.order_by("id").values_list("id", flat=True))[:50]
