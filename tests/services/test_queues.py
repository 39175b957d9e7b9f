"""Closing, pausing and limiting a queue: who may, what it does at once, what the record tells."""

import json
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from queue_app.models import AuditEvent, Job, Queue
from queue_app.policy.errors import InvalidNote, InvalidOrder, NotAllowed, QueueClosed, SnackOpsError
from queue_app.policy.queues import InvalidLimit, UnknownQueue
from queue_app.services import queue, queues
from tests.services.told import DEACTIVATED, LEADS, WAYS, Case, Refused, World, by_way, check

pytestmark = pytest.mark.django_db

MOVES = [queues.close, queues.reopen, queues.pause, queues.resume, queues.cancel]


def row() -> tuple[bool, bool]:
    """Whether the queue accepts, and whether it is paused."""
    return Queue.objects.values_list("accepting", "paused").get(pk="snacks")


def events() -> list[tuple[str, str, str]]:
    return list(AuditEvent.objects.order_by("seq").values_list("action", "target", "note"))


def test_each_move_stands_at_once_and_leaves_one_event(team_lead: User) -> None:
    for move, after in (
        (queues.close, (False, False)),
        (queues.pause, (False, True)),
        (queues.reopen, (True, True)),
        (queues.resume, (True, False)),
        (queues.cancel, (False, True)),
    ):
        assert move(team_lead, "snacks", note="INC-1").first
        assert row() == after
        again = move(team_lead, "snacks")
        assert not again.first, "it stood so already"
    assert events() == [
        (action, "queue:snacks", "INC-1")
        for action in ("close_queue", "pause_queue", "reopen_queue", "resume_queue", "cancel_queue")
    ]


@pytest.mark.parametrize("move", MOVES)
def test_only_a_team_lead_may_and_the_refusal_is_recorded(
    move: Callable[..., object], operator: User, auditor: User
) -> None:
    before = row()
    for user in (operator, auditor):
        with pytest.raises(NotAllowed):
            move(user, "snacks")
        with pytest.raises(NotAllowed):
            queues.set_limits(user, "snacks", max_unfinished=1)
    assert row() == before
    assert [action for action, _, _ in events()] == ["refused"] * 4


def test_a_closed_queue_refuses_orders_and_goes_on_with_what_is_in(team_lead: User) -> None:
    queue.enqueue("a", 1)
    queues.close(team_lead, "snacks")
    with pytest.raises(QueueClosed):
        queue.enqueue("b", 1)
    assert queue.enqueue("a", 1) == "duplicate"
    assert [lease.id for lease in queue.claim("w")] == ["a"]


def test_a_cancelled_queue_hands_nothing_out_and_forgets_nothing(team_lead: User) -> None:
    queue.enqueue("a", 1)
    queues.cancel(team_lead, "snacks")
    assert queue.claim("w") == []
    queues.reopen(team_lead, "snacks")
    queues.resume(team_lead, "snacks")
    assert [lease.attempt for lease in queue.claim("w")] == [1]
    assert Job.objects.count() == 1


def test_limits_change_one_by_one_and_the_event_tells_old_and_new(team_lead: User) -> None:
    assert queues.set_limits(team_lead, "snacks", max_unfinished=10, breaker_after=5, note="INC-2").first
    assert not queues.set_limits(team_lead, "snacks", max_unfinished=10).first
    assert queues.set_limits(team_lead, "snacks", max_unfinished=None, delivery_rate_mj=2_500).first
    changed = Queue.objects.get(pk="snacks")
    assert (changed.max_unfinished, changed.breaker_after, changed.delivery_rate_mj) == (None, 5, 2_500)
    told = [json.loads(detail) for detail in AuditEvent.objects.order_by("seq").values_list("detail", flat=True)]
    assert told == [
        {"max_unfinished": 10, "max_unfinished_before": None, "breaker_after": 5, "breaker_after_before": 20},
        {
            "max_unfinished": None,
            "max_unfinished_before": 10,
            "delivery_rate_mj": 2_500,
            "delivery_rate_mj_before": None,
        },
    ]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_unfinished": 0},
        {"max_unfinished": True},
        {"max_unfinished": "5"},
        {"delivery_rate_mj": 1.5},
        {"breaker_after": None},
        {"breaker_after": -1},
        {"breaker_wait_ms": 0},
        {"receiver_keeps_ms": 31 * 86_400_000},
        {"max_unfinished": 2**70},
        {"lease_ms": 1},
    ],
)
def test_a_limit_that_cannot_work_is_refused_in_a_sentence_and_nothing_changes(
    team_lead: User, limits: dict[str, object]
) -> None:
    before = Queue.objects.values().get(pk="snacks")
    with pytest.raises(InvalidLimit) as refused:
        queues.set_limits(team_lead, "snacks", **limits)  # type: ignore[arg-type]
    assert str(refused.value).endswith(".")
    assert Queue.objects.values().get(pk="snacks") == before
    assert events() == []


@pytest.mark.parametrize(
    ("name", "note", "refusal"),
    [
        ("nope", "", UnknownQueue),
        ("No Queue", "", InvalidOrder),
        (None, "", InvalidOrder),
        ("snacks", "a b", InvalidNote),
    ],
)
def test_a_queue_or_note_that_is_none_changes_nothing(
    team_lead: User, name: str, note: str, refusal: type[SnackOpsError]
) -> None:
    for move in (*MOVES, queues.set_limits):
        with pytest.raises(refusal):
            move(team_lead, name, note=note)
    assert events() == []


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_who_may_change_limits_is_asked_before_the_input_is_looked_at(world: World, way: dict[str, str]) -> None:
    for case in (
        Case(lambda w: queues.may_limit(w.tom, "snacks", **w.how), lambda _w: None),
        Case(
            lambda w: queues.may_limit(w.oda, "any", **w.how),
            lambda _w: Refused(NotAllowed, LEADS),
            lambda w: w.refused(w.oda, "limit_queue", "queue:any", LEADS),
        ),
        Case(
            lambda w: queues.may_limit(w.gone(), "snacks", **w.how),
            lambda _w: Refused(NotAllowed, DEACTIVATED),
            lambda w: w.refused(w.tom, "limit_queue", "queue:snacks", DEACTIVATED),
        ),
    ):
        check(case, by_way(world, way))
