"""A full queue pushes back: who brings orders is refused at once, or waits a bounded time for room."""

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from queue_app import clock as product_clock
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


def test_the_command_waits_if_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Queue.objects.update(max_unfinished=1)
    file = tmp_path / "orders.tsv"
    file.write_text("id\tquantity\na\t1\nb\t2\n")
    waits = Waits(monkeypatch, ends=1)
    monkeypatch.setattr(patiently, "__kwdefaults__", {"pause": waits})
    said = StringIO()
    call_command("enqueue", str(file), "--wait-s", "2", stdout=said)
    assert "2 accepted" in said.getvalue()
    assert len(waits.waited_s) == 1
