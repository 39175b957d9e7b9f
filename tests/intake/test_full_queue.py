"""A full queue pushes back: who brings orders is refused at once, or waits a bounded time for room."""

from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from queue_app import clock as product_clock
from queue_app.management.commands import enqueue
from queue_app.models import Job, Queue
from queue_app.policy.errors import QueueFull
from queue_app.services import queue
from queue_app.services.intake import patiently

pytestmark = pytest.mark.django_db


class Waits:
    """Waits that take no time but move the monotonic clock, and let the queue's work go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, ends: int) -> None:
        self.now_ms, self.waited_s = 0, []
        self._ends = ends
        monkeypatch.setattr(product_clock, "monotonic_ms", lambda: self.now_ms)

    def __call__(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        self.now_ms += round(seconds * 1000)
        for lease in queue.claim("w", limit=self._ends) if self._ends else []:
            queue.finish(lease.id, lease.token, "ok")


def orders(n: int, prefix: str = "f") -> list[Mapping[str, object]]:
    return [{"id": f"{prefix}-{k}", "quantity": 1} for k in range(n)]


def told(answers: Sequence[object]) -> list[str]:
    return [answer if isinstance(answer, str) else type(answer).__name__ for answer in answers]


def test_without_patience_a_full_queue_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Queue.objects.update(max_unfinished=2)
    waits = Waits(monkeypatch, ends=1)
    assert told(patiently(queue.enqueue_many, 0, pause=waits)(orders(3))) == ["accepted", "accepted", "QueueFull"]
    assert waits.waited_s == []


def test_with_patience_orders_come_in_as_others_end_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    Queue.objects.update(max_unfinished=2)
    waits = Waits(monkeypatch, ends=1)
    assert told(patiently(queue.enqueue_many, 5, pause=waits)(orders(9))) == ["accepted"] * 9
    assert list(Job.objects.order_by("seq").values_list("pk", flat=True)) == [f"f-{k}" for k in range(9)]
    assert Job.objects.exclude(state="done").count() == 2, "there was never room for more"
    assert len(waits.waited_s) == 7, "it does not spin"


def test_patience_has_an_end_and_what_comes_then_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    Queue.objects.update(max_unfinished=1)
    waits = Waits(monkeypatch, ends=0)
    take = patiently(queue.enqueue_many, 5, pause=waits)
    assert told(take(orders(3))) == ["accepted", "QueueFull", "QueueFull"]
    assert sum(waits.waited_s) == pytest.approx(5)
    waits.waited_s.clear()
    assert told(take(orders(2, "g"))) == ["QueueFull"] * 2
    assert waits.waited_s == [], "otherwise a long file would wait that long for each of its batches"
    with pytest.raises(QueueFull):
        queue.enqueue("h", 1)


FULL = QueueFull("The queue is full.")
# what the queue answers to each look, the waits between, and what the orders are told in the end
PATIENCE = [
    (0.0, [["accepted", FULL]], [], ["accepted", FULL]),
    (1.0, [["accepted", "duplicate"]], [], ["accepted", "duplicate"]),
    (0.2, [[FULL], [FULL], [FULL], [FULL]], [0.05, 0.1, 0.05], [FULL]),
    (0.05, [[FULL], [FULL]], [0.05], [FULL]),
    (4.0, [[FULL]] * 9, [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 0.45], [FULL]),
    (0.2, [[FULL, FULL], [FULL, "duplicate"], [FULL], ["accepted"]], [0.05, 0.1, 0.05], ["accepted", "duplicate"]),
    (
        1.0, [["duplicate", FULL, "accepted", FULL], [FULL, "accepted"], *[[FULL]] * 5],
        [0.05, 0.05, 0.1, 0.2, 0.4, 0.25], ["duplicate", FULL, "accepted", "accepted"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wait_s", "looks", "waits", "answers"), PATIENCE)
def test_the_steps_of_patience(
    monkeypatch: pytest.MonkeyPatch, wait_s: float, looks: list[list[object]], waits: list[float], answers: list[object]
) -> None:
    """Each step is twice as long, up to a second and to the end; when one gets in, it all begins anew."""
    paused, asked = Waits(monkeypatch, ends=0), list[int]()
    coming = iter(looks)

    def take(some: list[Mapping[str, object]]) -> Sequence[object]:
        asked.append(len(some))
        return next(coming)

    assert patiently(take, wait_s, pause=paused)(orders(len(looks[0]))) == answers
    assert paused.waited_s == pytest.approx(waits)
    assert asked == [len(look) for look in looks]
    assert next(coming, None) is None


def test_after_waiting_in_vain_the_next_that_gets_in_brings_the_patience_back(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Waits(monkeypatch, ends=0)
    looks = iter([[FULL], [FULL], [FULL], ["duplicate", FULL], ["accepted", FULL], ["accepted"], [FULL], ["accepted"]])
    take = patiently(lambda _orders: next(looks), 0.05, pause=paused)
    assert [take(orders(n)) for n in (1, 1, 2, 2, 1)] == [
        [FULL], [FULL], ["duplicate", FULL], ["accepted", "accepted"], ["accepted"],
    ]  # fmt: skip
    assert paused.waited_s == [0.05] * 3, "the first, and those after one had got in"


def test_only_those_that_found_no_room_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    looks = iter([["accepted", FULL, "duplicate", FULL], ["accepted", FULL], ["accepted"]])

    def take(some: list[Mapping[str, object]]) -> Sequence[object]:
        asked.append([order["id"] for order in some])
        return next(looks)

    patiently(take, 1, pause=Waits(monkeypatch, ends=0))(orders(4))
    assert asked == [["f-0", "f-1", "f-2", "f-3"], ["f-1", "f-3"], ["f-3"]]


def test_one_answer_too_few_is_a_mistake_that_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([[FULL, FULL], ["accepted"]])
    with pytest.raises(ValueError, match="shorter"):
        patiently(lambda _orders: next(looks), 1, pause=Waits(monkeypatch, ends=0))(orders(2))


def test_the_command_waits_if_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Queue.objects.update(max_unfinished=1)
    file = tmp_path / "orders.tsv"
    file.write_text("id\tquantity\na\t1\nb\t2\n")
    waits = Waits(monkeypatch, ends=1)
    monkeypatch.setattr(enqueue, "patiently", partial(patiently, pause=waits))
    said = StringIO()
    call_command("enqueue", str(file), "--wait-s", "2", stdout=said)
    assert "2 accepted" in said.getvalue()
    assert len(waits.waited_s) == 1
