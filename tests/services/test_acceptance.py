"""Whole answers to orders: every field that goes through, each refusal's class and sentence, the borders of a full queue."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from queue_app.models import Job, Queue
from queue_app.policy.errors import Conflict, InvalidOrder, QueueClosed, QueueFull
from queue_app.services import acceptance, queue
from queue_app.store import arrivals
from tests.conftest import Clock
from tests.engine.rows import DAY, T, declare, put, row
from tests.store.changed import changes

pytestmark = pytest.mark.django_db
Told = str | tuple[type, str]


def told(answer: object) -> Told:
    """An answer as a value that can be compared."""
    return answer if isinstance(answer, str) else (type(answer), str(answer))


def many(*orders: Any, now_ms: int | None = T) -> list[Told]:
    """What many orders at once are answered."""
    return [told(answer) for answer in queue.enqueue_many(orders, now_ms=now_ms)]


def one(order: Mapping[str, Any]) -> Told:
    """What the same order alone is answered."""
    try:
        return told(queue.enqueue(**order, now_ms=T))
    except (InvalidOrder, Conflict, QueueClosed, QueueFull) as refusal:
        return told(refusal)


WHOLE = {
    "id": "a", "quantity": 3, "queue": "drinks", "payload": {"b": 1}, "order_key": "k", "max_attempts": 9,
    "deadline_ms": T + 5,
}  # fmt: skip
NEW = {
    "state": "pending", "reason": "", "code": "", "attempts": 0, "token": 0, "owner": None, "lease_until": None,
    "redriven": 0, "batch": None, "waited_ms": 0,
}  # fmt: skip
STORED = {
    "id": "a", "queue": "drinks", "order_key": "k", "quantity": 3, "payload": '{"b":1}', "max_attempts": 9,
    "available_at": T, "deadline": T + 5, "created_at_ms": T, "changed_at_ms": T,
}  # fmt: skip


@pytest.mark.parametrize("accept", [one, many])
@pytest.mark.parametrize(
    ("order", "stored"),
    [
        (WHOLE, STORED),
        (
            {"id": "a", "quantity": 3, "queue": "drinks"},
            STORED | {"order_key": "", "payload": "{}", "max_attempts": 4, "deadline": T + 6_000},
        ),
        (
            {"id": "a", "quantity": 3},
            STORED | {"queue": "snacks", "order_key": "", "payload": "{}", "max_attempts": 3, "deadline": T + DAY},
        ),
        (WHOLE | {"max_attempts": 1, "deadline_ms": 0}, STORED | {"max_attempts": 1, "deadline": 0}),
    ],
)
def test_every_field_of_an_order_is_kept_and_the_rest_is_its_queues(
    accept: Any, order: dict[str, Any], stored: dict[str, object]
) -> None:
    declare("drinks", max_attempts=4, budget_ms=6_000)
    with changes(Job) as changed:
        assert accept(order) in ("accepted", ["accepted"])
    ((key, new),) = changed.items()
    del new["seq"]
    assert (key, new) == ("a", NEW | stored)
    with changes(Job) as changed:
        assert accept(order) in ("duplicate", ["duplicate"])
    assert changed == {}


def test_the_clock_stamps_many_orders_when_no_instant_is_given(clock: Clock) -> None:
    clock.advance(77)
    assert many({"id": "a", "quantity": 1}, now_ms=None) == ["accepted"]
    assert (row("a")["created_at_ms"], row("a")["deadline"]) == (T + 77, T + 77 + DAY)


MAPPING = "An order must be a mapping with id and quantity."
CONFLICT = "The id known is known with another queue, quantity, payload or order_key."
REFUSED = [
    ({"id": "known", "quantity": 8}, Conflict, CONFLICT),
    ({"id": "known", "quantity": 7, "queue": "shut"}, Conflict, CONFLICT),
    ({"id": "known", "quantity": 7, "payload": {"a": 1}}, Conflict, CONFLICT),
    ({"id": "known", "quantity": 7, "order_key": "k"}, Conflict, CONFLICT),
    ({"id": "x", "quantity": 1, "queue": "nowhere"}, InvalidOrder, "No queue 'nowhere' is declared."),
    ({"id": "x", "quantity": 1, "queue": "shut"}, QueueClosed, "The queue shut does not accept orders now."),
    ({"id": "x", "quantity": 1, "queue": "both"}, QueueClosed, "The queue both does not accept orders now."),
    ({"id": "x", "quantity": 1, "queue": "full"}, QueueFull, "The queue full holds 2 unfinished orders, its limit."),
]


def _four_queues() -> None:
    declare("shut", accepting=False)
    declare("both", accepting=False, max_unfinished=5)
    declare("full", max_unfinished=2)
    put("known")
    put("f1", "f2", queue="full")


@pytest.mark.parametrize(("order", "kind", "sentence"), REFUSED)
def test_a_refusal_is_the_same_alone_and_among_others(order: dict[str, Any], kind: type, sentence: str) -> None:
    _four_queues()
    with changes(Job) as changed:
        assert one(order) == (kind, sentence)
        assert many({"id": "y", "quantity": 0}, order, {"id": "known", "quantity": 7})[1:] == [
            (kind, sentence), "duplicate",
        ]  # fmt: skip
    assert changed == {}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (None, MAPPING),
        ([("id", "x"), ("quantity", 1)], MAPPING),
        ("id", MAPPING),
        ({"id": "x", "quantity": 1, "state": "done", "batch": 1}, "An order has no field 'batch'."),
        ({"id": "x", "quantity": 1, "b" * 40: 1}, f"An order has no field '{'b' * 40}'."),
        ({"id": "x", "quantity": 1, "b" * 41: 1}, f"An order has no field '{'b' * 40}'."),
        ({"id": "x", "quantity": 1, 5: 1}, "An order has no field '5'."),
        ({"id": "x", "quantity": 1, "café": 1}, "An order has no field 'caf\\xe9'."),
    ],
)
def test_what_is_no_order_is_told_in_a_sentence(entry: Any, sentence: str) -> None:
    assert many(entry, {"id": "a", "quantity": 1}, entry) == [
        (InvalidOrder, sentence), "accepted", (InvalidOrder, sentence),
    ]  # fmt: skip


def test_any_mapping_is_an_order() -> None:
    assert many(MappingProxyType({"id": "a", "quantity": 1})) == ["accepted"]


def test_each_of_two_lines_with_one_id_is_compared_with_the_first_that_was_good() -> None:
    declare("drinks")
    same = {"id": "a", "quantity": 1, "payload": {"n": 1}}
    other = {"id": "a", "quantity": 1, "payload": {"n": 2}}
    conflict = (Conflict, "The id a is known with another queue, quantity, payload or order_key.")
    assert many({"id": "b", "quantity": 1}, same, other, same, {"id": "c", "quantity": 1}) == [
        "accepted", "accepted", conflict, "duplicate", "accepted",
    ]  # fmt: skip
    assert list(Job.objects.order_by("seq").values_list("id", flat=True)) == ["b", "a", "c"]


# --- a full queue -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "accepted"), [(1, 0), (2, 0), (3, 1), (4, 2), (9, 4), (None, 4)])
def test_a_queue_takes_as_many_as_it_has_room_for(limit: int | None, accepted: int) -> None:
    put("in-1", "in-2", "ended")
    assert queue.finish_many([queue.Result(lease.id, 1, "ok") for lease in queue.claim("w", limit=9, now_ms=T)][2:])
    declare("other", max_unfinished=1)
    Queue.objects.filter(pk="snacks").update(max_unfinished=limit)
    full = (QueueFull, f"The queue snacks holds {limit} unfinished orders, its limit.")
    orders = [{"id": f"n{place}", "quantity": 1} for place in range(4)]
    answers = many({"id": "o", "quantity": 1, "queue": "other"}, *orders, {"id": "in-1", "quantity": 7})
    assert answers == ["accepted", *["accepted"] * accepted, *[full] * (4 - accepted), "duplicate"]
    assert Job.objects.filter(id__startswith="n").count() == accepted


# --- two hosts at once ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", ["", "b", "abc"])
def test_what_another_host_accepted_a_moment_ago_is_compared_with_its_row(
    monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    real = arrivals.insert

    def insert(some: list[arrivals.Arrival], now_ms: int) -> set[str]:
        monkeypatch.setattr(arrivals, "insert", real)
        put(*theirs, quantity=8)
        return real([mine for mine in some if mine.id not in theirs], now_ms)

    put("known")
    monkeypatch.setattr(arrivals, "insert", insert)
    conflicts = {
        name: (Conflict, f"The id {name} is known with another queue, quantity, payload or order_key.")
        for name in "abc"
    }
    orders = [{"id": name, "quantity": 7} for name in ("known", *"abc")]
    assert many(*orders, {"id": "b", "quantity": 8}) == [
        "duplicate",
        *(conflicts[name] if name in theirs else "accepted" for name in "abc"),
        "duplicate" if theirs else conflicts["b"],
    ]
    assert {name: row(name)["quantity"] for name in "abc"} == {name: 8 if name in theirs else 7 for name in "abc"}


def test_an_answer_too_few_is_a_mistake_that_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "_accept", lambda _orders, _now_ms: ["accepted"])
    with pytest.raises(ValueError, match="shorter"):
        many({"id": "a", "quantity": 1}, {"id": "b", "quantity": 1})
