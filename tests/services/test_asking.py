"""What every move of a person on a redrive shares: the record of a refusal, the plan itself, and time running out."""

import hashlib
from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.models import AuditEvent, Plan
from queue_app.policy.errors import NotAllowed, NotDead
from queue_app.policy.plans import STATES, InvalidPlan, PlanMoved, UnknownPlan
from queue_app.services import asking
from queue_app.services.receipts import Receipt
from queue_app.store import database
from tests.conftest import START_MS, Clock
from tests.services.told import World, told

pytestmark = pytest.mark.django_db
DUE = START_MS + 1_000
LARGEST = 2**63 - 1


def a_plan(state: str = "proposed", **columns: Any) -> Plan:
    fitting = {"queue": "snacks", "selection": "{}", "note": "n", "as_of_ms": 1, "created_at_ms": 1, "changed_at_ms": 1}
    fitting |= {"state": state, "expires_at_ms": DUE, "asked_rate_mj": 9, "rate_mj": 9, "round": 2}
    return Plan.objects.create(**fitting | columns)


def stored(plan: Plan) -> dict[str, Any]:
    return Plan.objects.values().get(pk=plan.pk)


# --- refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [NotAllowed("Not so."), PlanMoved("It is %(state)s.", state="ended"), NotAllowed("N" * 300 + ".")], ids=str
)
def test_what_is_refused_goes_on_and_is_recorded(world: World, error: Exception) -> None:
    with pytest.raises(type(error)) as caught, asking.recorded(world.tom, "stop", "plan:7", channel="c", proof="p"):
        raise error
    assert caught.value is error
    world.channel, world.proof = "c", "p"
    assert told(0) == world.refused(world.tom, "stop", "plan:7", str(error)[:200])


def test_the_record_names_also_who_is_deactivated_or_gone(world: World) -> None:
    tom = world.gone()
    stranger = User(pk=999_999, username="nobody")
    world.channel, world.proof = "c", "p"
    with pytest.raises(PlanMoved), asking.recorded(tom, "stop", "plan:7", channel="c", proof="p"):
        raise PlanMoved("Not now.")
    assert told(0) == world.refused(tom, "stop", "plan:7", "Not now.")
    unknown = asking._whoever(stranger, "c", "p")
    assert (unknown.id, unknown.name, unknown.roles, unknown.channel, unknown.proof) == (
        999_999,
        "nobody",
        (),
        "c",
        "p",
    )


def test_what_an_open_page_asks_again_by_itself_is_recorded_once_in_a_while(world: World) -> None:
    def refuse(who: User, action: str, target: str, once_in_ms: int) -> int:
        """How many events it leaves."""
        seq = AuditEvent.objects.count()
        more = {"once_in_ms": once_in_ms} if once_in_ms else {}
        with (
            pytest.raises(NotAllowed),
            asking.recorded(who, action, target, channel="console", proof="session", **more),
        ):
            raise NotAllowed("Not so.")
        assert told(seq) in ([], world.refused(who, action, target, "Not so."))
        return AuditEvent.objects.count() - seq

    first = (world.tom, "stop", "plan:7")
    assert [refuse(*first, 1_000), refuse(*first, 1_000)] == [1, 0]
    others = [(world.oda, "stop", "plan:7"), (world.tom, "slow", "plan:7"), (world.tom, "stop", "plan:8")]
    assert [refuse(*other, 1_000) for other in others] == [1, 1, 1]
    world.clock.advance(999)
    assert [refuse(*first, 1_000), refuse(*first, 0), refuse(*first, 0), refuse(*first, 1_000)] == [0, 1, 1, 0]
    world.clock.advance(1_000)
    assert [refuse(*first, 1_000), refuse(*first, 1_000)] == [1, 0]


@pytest.mark.parametrize("error", [InvalidPlan("No."), NotDead("No."), UnknownPlan("No."), ValueError("No.")], ids=repr)
def test_what_is_no_refusal_goes_on_without_a_word(world: World, error: Exception) -> None:
    with pytest.raises(type(error)), asking.recorded(world.tom, "stop", "plan:7", channel="c", proof="p"):
        raise error
    with asking.recorded(world.tom, "stop", "plan:7", channel="c", proof="p"):
        pass
    assert not AuditEvent.objects.exists()


# --- the plan -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, LARGEST])
def test_a_plan_of_any_number_is_found(clock: Clock, number: int) -> None:
    one = a_plan(id=number)
    with database.write():
        assert asking.locked(number) == one
    clock.now = DUE
    asking.let_run_out(number)
    assert stored(one)["state"] == "expired"


@pytest.mark.parametrize("number", [0, -1, 2**63, True, 1.0, "1", None])
def test_what_is_no_number_of_a_plan_asks_nobody(clock: Clock, django_assert_num_queries: Any, number: object) -> None:
    a_plan(id=1)
    clock.now = DUE
    with django_assert_num_queries(0):
        with pytest.raises(UnknownPlan) as caught:
            asking.locked(number)
        asking.let_run_out(number)
    assert (str(caught.value), caught.value.values) == ("There is no such redrive.", {})


def test_a_plan_that_is_none_is_unknown(clock: Clock) -> None:
    with database.write(), pytest.raises(UnknownPlan, match=r"^There is no such redrive\.$"):
        asking.locked(5)
    asking.let_run_out(5)


def test_a_plan_is_held_where_it_is_written(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's writer holds everything anyway, so that only the words of the call can tell here."""
    asked: list[dict[str, bool]] = []
    one, read = a_plan(), asking.plans.read

    def told_apart(plan_id: int, **how: bool) -> Plan | None:
        asked.append(how)
        return read(plan_id, **how)

    monkeypatch.setattr(asking.plans, "read", told_apart)
    with database.write():
        asking.locked(one.pk)
    asking.let_run_out(one.pk)
    clock.now = DUE
    asking.let_run_out(one.pk)
    assert asked == [{"lock": True}, {}, {}, {"lock": True}]


# --- time ---------------------------------------------------------------------------------------------------------------
RUNS_OUT = {"freezing": "expired", "proposed": "expired", "approved": "expired"}


@pytest.mark.parametrize("began", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_what_was_not_decided_or_begun_in_time_runs_out(clock: Clock, state: str, began: bool) -> None:
    one = a_plan(state, started_at_ms=5 if began else None)
    before = stored(one)
    assert asking.run_out(one, DUE - 1) is False
    assert (stored(one), told(0)) == (before, [])
    due = state in RUNS_OUT
    assert asking.run_out(one, DUE) is due
    lapses = began and state == "approved"
    became = {"state": "halted", "why": "approval_ran_out"} if lapses else {"state": "expired", "ended_at_ms": DUE}
    assert stored(one) == before | (became | {"changed_at_ms": DUE} if due else {})
    world = World(User(), User(), User(), clock, plan=one)
    clock.now = DUE
    assert told(0) == ([world.program("plan.lapse" if lapses else "plan.expire", round=2)] if due else [])


def test_what_went_on_meanwhile_does_not_run_out(clock: Clock) -> None:
    one = a_plan()
    Plan.objects.filter(pk=one.pk).update(state="rejected")
    assert asking.run_out(one, DUE + 1) is False
    assert (stored(one)["state"], told(0)) == ("rejected", [])


def test_before_a_persons_move_time_is_looked_at_with_one_query_and_written_when_it_is_over(
    clock: Clock, django_assert_num_queries: Any
) -> None:
    one, running = a_plan(), a_plan("running", expires_at_ms=0)
    clock.now = DUE - 1
    clock_asked = database.is_postgresql()
    for plan, queries in ((one, 1 + clock_asked), (running, 1)):
        with django_assert_num_queries(queries):
            asking.let_run_out(plan.pk)
    clock.now = DUE
    asking.let_run_out(one.pk)
    asking.let_run_out(one.pk)
    world = World(User(), User(), User(), clock, plan=one)
    assert (stored(one)["state"], stored(one)["changed_at_ms"], stored(running)["state"]) == ("expired", DUE, "running")
    assert told(0) == [world.program("plan.expire", round=2)]


def test_the_record_keeps_a_digest_of_a_comment_or_nothing() -> None:
    assert (asking.digest_of(""), asking.digest_of("直")) == ("", hashlib.sha256("直".encode()).hexdigest())


def test_a_receipt_says_what_was_given() -> None:
    plan = Plan(pk=7, state="paused")
    assert asking.receipt(plan, "pause", first=False, by="oda", at_ms=5) == Receipt(
        7, "paused", "pause", False, "oda", 5
    )
    full = asking.receipt(plan, "pause", first=True, by="oda", at_ms=5, note="n", round_=3)
    assert full == Receipt(7, "paused", "pause", True, "oda", 5, "n", 3)
