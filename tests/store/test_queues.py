"""The rows of queues: every field read and written, each move by itself, what each database is asked."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from queue_app.models import Gate, Queue
from queue_app.policy.queues import QueuePolicy
from queue_app.store import queues
from queue_app.store.queues import Standing
from tests.conftest import Clock
from tests.store.changed import Asked, changes, locks
from tests.store.rows import AT

FIELDS = (
    "name, ordering, max_attempts, budget_ms, wait_base_ms, wait_cap_ms, wait_budget_ms, lease_ms, redrive_horizon_ms, "
    "rate_mj, max_unfinished, accepting, paused, delivery_rate_mj, breaker_after, breaker_wait_ms, done_kept_ms, "
    "receiver_keeps_ms"
)
DRINKS = QueuePolicy("drinks", "ordered", 2, 3, 4, 5, 6, 7, 8, 9, 10, False, True, 11, 12, 13, 14, 15)
SNACKS = QueuePolicy("snacks")
ROW = tuple(asdict(DRINKS).values())


@pytest.mark.django_db
def test_a_queue_is_written_and_read_whole_and_changed_by_declaring_it_again() -> None:
    with changes(Queue) as changed:
        queues.declare(DRINKS)
    assert changed == {"drinks": asdict(DRINKS)}
    assert queues.policies() == {"drinks": DRINKS, "snacks": SNACKS}
    assert list(queues.policies()) == ["drinks", "snacks"]
    assert [queues.policy_of(name, lock=lock) for name in ("drinks", "none") for lock in (False, True)] == [
        DRINKS, DRINKS, None, None,
    ]  # fmt: skip
    with changes(Queue) as changed:
        queues.declare(QueuePolicy("drinks"))
    assert changed["drinks"] == {key: value for key, value in asdict(QueuePolicy("drinks")).items() if key != "name"}


@pytest.mark.django_db
def test_a_flag_is_a_flag_and_a_number_a_number_on_both_databases() -> None:
    queues.declare(QueuePolicy("drinks", max_attempts=1, breaker_after=0, wait_base_ms=0))
    standing = queues.standing("drinks")
    assert standing is not None
    for read in (queues.policy_of("drinks"), queues.policies()["drinks"], standing.policy):
        assert read is not None
        assert [type(value) for value in (read.accepting, read.paused)] == [bool] * 2
        assert [type(value) for value in (read.max_attempts, read.breaker_after, read.wait_base_ms)] == [int] * 3


@pytest.mark.django_db
def test_how_a_queue_stands_and_by_which_clock(clock: Clock) -> None:
    queues.declare(DRINKS)
    Gate.objects.create(queue="drinks", breaker="open")
    clock.advance(9)
    assert queues.standing("drinks") == Standing(DRINKS, True, AT + 9)
    assert queues.standing("snacks") == Standing(SNACKS, False, AT + 9)
    assert queues.standing("none") is None
    standing = queues.standing("snacks")
    assert standing is not None
    assert standing.troubled is False


MOVES: list[tuple[Callable[[str], bool], dict[str, object]]] = [
    (lambda name: queues.set_paused(name, paused=True), {"paused": True}),
    (lambda name: queues.set_paused(name, paused=False), {"paused": False}),
    (lambda name: queues.set_accepting(name, accepting=False), {"accepting": False}),
    (lambda name: queues.set_accepting(name, accepting=True), {"accepting": True}),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("move", "then"), MOVES)
def test_a_move_counts_once_and_for_its_queue_only(move: Callable[[str], bool], then: dict[str, Any]) -> None:
    ((field, value),) = then.items()
    Queue.objects.update(**{field: not value})
    Queue.objects.create(name="other", **{field: not value})
    with changes(Queue) as changed:
        assert [move(name) for name in ("snacks", "snacks", "none")] == [True, False, False]
    assert changed == {"snacks": then}


@pytest.mark.django_db
def test_limits_are_written_for_one_queue() -> None:
    queues.declare(DRINKS)
    limits = {"max_unfinished": 5, "breaker_after": 0, "done_kept_ms": None}
    with changes(Queue) as changed:
        assert queues.set_limits("drinks", limits) is True
        assert queues.set_limits("none", limits) is False
    assert changed == {"drinks": limits}


# --- what is asked ----------------------------------------------------------------------------------------------------


@locks
def test_a_row_is_locked_where_that_means_something(
    monkeypatch: pytest.MonkeyPatch, lock: bool | None, postgresql: bool, suffix: str
) -> None:
    asked = Asked([ROW]).stand_in(monkeypatch, queues, postgresql=postgresql)
    assert queues.policy_of("drinks", **({} if lock is None else {"lock": lock})) == DRINKS
    assert asked.statements == [(f"SELECT {FIELDS} FROM queues WHERE name = %s{suffix}", ["drinks"])]


def test_all_are_asked_for_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([ROW]).stand_in(monkeypatch, queues)
    assert queues.policies() == {"drinks": DRINKS}
    assert asked.statements == [(f"SELECT {FIELDS} FROM queues ORDER BY name", [])]


@pytest.mark.parametrize(("postgresql", "clock", "now"), [(False, "0", AT + 3), (True, "snackops_now_ms()", AT + 7)])
def test_the_instant_is_of_the_same_look_on_postgresql(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, clock: str, now: int
) -> None:
    asked = Asked([(*ROW, 1, AT + 7)]).stand_in(monkeypatch, queues, postgresql=postgresql)
    monkeypatch.setattr(queues, "now_ms", lambda: AT + 3)
    assert queues.standing("drinks") == Standing(DRINKS, True, now)
    troubled = (
        "EXISTS (SELECT 1 FROM gates WHERE gates.queue = queues.name "
        "AND (gates.breaker <> 'closed' OR gates.failed_in_row > 0))"
    )
    assert asked.statements == [(f"SELECT {FIELDS}, {troubled}, {clock} FROM queues WHERE name = %s", ["drinks"])]
