"""Cancelling: what has not had its effect is given back unspent, what has is not undone. Barriers, no sleeps."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from queue_app import clock
from queue_app.delivery import worker as worker_module
from queue_app.delivery.worker import Settings, Worker
from queue_app.models import Failure, Job, Queue
from queue_app.policy.errors import Cancelled, Retryable
from queue_app.receiver.ledger import Ledger
from queue_app.services import queue
from queue_app.services.runs import Held, Signal
from tests.delivery.rawserver import READ, TAKE, RawServer, answer

pytestmark = pytest.mark.django_db

LIMIT_S = 20


def accept(n: int) -> None:
    queue.enqueue_many([{"id": f"k-{k}", "quantity": k} for k in range(1, n + 1)])


def jobs() -> list[tuple[str, int]]:
    """State and attempts in the order of acceptance."""
    return list(Job.objects.order_by("seq").values_list("state", "attempts"))


class Effects:
    """A delivery with a barrier right before its effect: `at(k)` is called when the k-th one stands there."""

    def __init__(self, at: Callable[[int], object]) -> None:
        self.written: list[str] = []
        self._at = at
        self._count = 0
        self._lock = threading.Lock()

    def __call__(self, lease: Held) -> bool:
        with self._lock:
            self._count += 1
            mine = self._count
        self._at(mine)
        lease.checkpoint()
        with self._lock:
            self.written.append(lease.id)
        return True


def test_cancelled_right_before_the_effect_running_and_waiting_orders_go_back_and_nothing_is_written() -> None:
    accept(6)
    all_there = threading.Barrier(3, timeout=LIMIT_S)
    seen = threading.Event()

    def at(_k: int) -> None:
        if all_there.wait() == 0:
            worker.stop()
        assert seen.wait(LIMIT_S)

    effects = Effects(at)
    worker = Worker(effects, Settings("w", prefetch=6, concurrency=3))
    real = worker._holding.cancel  # type: ignore[attr-defined]

    def cancel() -> None:
        real()
        seen.set()

    worker._holding.cancel = cancel  # type: ignore[method-assign]
    tally = worker.run()
    assert effects.written == []
    assert jobs() == [("pending", 0)] * 6
    assert (tally.back, tally.ended, tally.left) == (6, 0, 0)
    assert not Failure.objects.exists()


def test_after_the_fourth_effect_a_cancel_leaves_four_and_says_that_it_came_too_late() -> None:
    accept(9)
    effects = Effects(lambda _k: None)

    def deliver(lease: Held) -> bool:
        taken = effects(lease)
        if len(effects.written) == 4:
            lease.signal.cancelled = True  # as if told by the worker's own thread in this very moment
            worker.stop()
        return taken

    worker = Worker(deliver, Settings("w", prefetch=9))
    with capture_logs() as said:
        tally = worker.run()
    assert effects.written == ["k-1", "k-2", "k-3", "k-4"]
    assert jobs() == [("done", 1)] * 4 + [("pending", 0)] * 5
    assert tally.ok == 4
    assert [entry["job"] for entry in said if entry["event"] == "cancel_too_late"] == ["k-4"]


@pytest.mark.timeout(45)  # a worker that does not see it would go on for ever
def test_a_queue_that_is_paused_gives_back_what_has_not_begun_and_goes_on_when_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accept(5)
    monkeypatch.setattr(worker_module, "LOOK_MS", 1)
    before_effect, told = threading.Event(), threading.Event()

    def at(k: int) -> None:
        if k == 2:
            before_effect.set()
            assert told.wait(LIMIT_S)

    effects = Effects(at)
    worker = Worker(effects, Settings("w", prefetch=5, until_idle=True))
    given_back: list[list[tuple[str, int]]] = []
    real_look, real_cancel = worker._look, worker._holding.cancel

    def look(now: int) -> None:  # the worker's own thread is the one that may ask the test's database
        if before_effect.is_set() and not told.is_set():
            Queue.objects.update(paused=True)
        elif told.is_set() and jobs().count(("pending", 0)) == 4 and not given_back:
            given_back.append(jobs())
            Queue.objects.update(paused=False)
        real_look(now)

    def cancel() -> None:
        real_cancel()
        told.set()

    worker._look, worker._holding.cancel = look, cancel  # type: ignore[method-assign]
    monkeypatch.setattr(worker, "_over", lambda: jobs() == [("done", 1)] * 5)
    worker.run()
    assert given_back == [[("done", 1)] + [("pending", 0)] * 4]
    assert sorted(effects.written) == [f"k-{k}" for k in range(1, 6)], "each has one effect"


def held(signal: Signal) -> Held:
    return Held("o1", "snacks", 7, "{}", 1, 1, 0, 0, signal)


def test_the_adapter_asks_after_connecting_and_before_the_first_byte(adapter) -> None:
    signal = Signal(0)
    signal.cancelled = True
    with RawServer([TAKE]) as server:
        with pytest.raises(Cancelled):
            adapter(server.url)(held(signal))
        assert server.client_gone.wait(LIMIT_S)
        assert server.connections == 1, "it stood right before the effect"
    assert server.sent == 0
    assert server.requests == [], "not one byte came"


class CancelledLater(Signal):
    """Cancelled as soon as it has been asked once."""

    __slots__ = ("asked",)

    @property
    def cancelled(self) -> bool:
        self.asked = getattr(self, "asked", 0) + 1
        return self.asked > 1

    @cancelled.setter
    def cancelled(self, _value: bool) -> None: ...


def test_what_may_have_had_its_effect_is_sent_again_and_never_called_not_begun(adapter) -> None:
    with RawServer([READ, answer(), READ], [READ, answer()]) as server:
        delivery = adapter(server.url)
        assert delivery(held(Signal(0))) is True
        assert delivery(held(CancelledLater(0))) is True, "the peer had read the first request before it closed"
    assert len(server.requests) == 3


class BadReceiver:
    """Looks whether the id is there, and writes in a second step: the mistake that no queue can make good."""

    def __init__(self, between: Callable[[], None]) -> None:
        self.writes: list[str] = []
        self._between = between

    def apply(self, order_id: str, _quantity: int) -> None:
        """Take an order."""
        there = order_id in self.writes
        self._between()
        if not there:
            self.writes.append(order_id)


@pytest.mark.parametrize("ours", [False, True])
def test_two_deliveries_that_read_not_there_together_write_twice_only_at_a_bad_receiver(
    tmp_path: Path, ours: bool
) -> None:
    both = threading.Barrier(2, timeout=0.5 if ours else LIMIT_S)

    def between() -> None:
        with contextlib.suppress(threading.BrokenBarrierError):  # in ours, nobody can come while one is between
            both.wait()

    ledger = Ledger(tmp_path / "r.sqlite3", now_ms=clock.now_ms, between=between)
    bad = BadReceiver(between)
    receiver = ledger if ours else bad
    threads = [threading.Thread(target=receiver.apply, args=("one", 1)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    writes = ledger.page(None, 10).totals["writes"] if ours else len(bad.writes)
    ledger.close()
    assert writes == (1 if ours else 2)


def test_a_wait_budget_for_one_delay_quarantines_after_the_second_try_and_later_orders_drain() -> None:
    Queue.objects.update(max_attempts=3, wait_base_ms=1_000, wait_budget_ms=1_000)
    accept(3)
    tries: list[str] = []

    def deliver(lease: Held) -> bool:
        tries.append(lease.id)
        if lease.id == "k-1":
            raise Retryable("http_503")
        return True

    def wait(_seconds: float) -> None:
        Job.objects.filter(state="pending").update(available_at=0)

    worker = Worker(deliver, Settings("w", until_empty=True), wait=wait)
    tally = worker.run()
    assert tries == ["k-1", "k-2", "k-3", "k-1"]
    dead = Job.objects.get(pk="k-1")
    assert (dead.state, dead.reason, dead.code, dead.attempts) == ("dead", "exhausted", "wait_budget", 2)
    assert (tally.ok, tally.retry) == (2, 2)


def test_another_exception_is_not_turned_into_a_wish_to_try_again() -> None:
    accept(2)

    def deliver(lease: Held) -> bool:
        if lease.id == "k-1":
            raise OSError("disk")
        return True

    worker = Worker(deliver, Settings("w", until_idle=True), wait=lambda _seconds: None)
    tally = worker.run()
    assert jobs() == [("leased", 1), ("done", 1)]
    assert (tally.unknown, tally.retry) == (1, 0)
