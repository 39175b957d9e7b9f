"""The worker's loop: what it finishes, gives back, leaves leased, and how it waits while the database refuses."""

from collections.abc import Callable

import pytest
from django.db import OperationalError
from structlog.testing import capture_logs

from queue_app import clock as product_clock
from queue_app.delivery.troubles import trouble_of
from queue_app.delivery.worker import Settings, Worker
from queue_app.models import Failure, Job, Process
from queue_app.policy.attempts import Lease
from queue_app.policy.errors import BadAck, Cancelled, Permanent, Retryable
from queue_app.services import leases, queue

pytestmark = pytest.mark.django_db


def accept(n: int) -> None:
    """Orders w-1, w-2, ..."""
    queue.enqueue_many([{"id": f"w-{k}", "quantity": k} for k in range(1, n + 1)])


def run(deliver: Callable[[Lease], object], *, prefetch: int = 1) -> Worker:
    """A worker that ends when nothing is due; it never really waits."""
    worker = Worker(deliver, Settings("w", prefetch=prefetch, until_idle=True), wait=lambda _seconds: False)
    worker.run()
    return worker


def states() -> dict[str, str]:
    """State by id."""
    return dict(Job.objects.order_by("seq").values_list("id", "state"))


@pytest.mark.parametrize("prefetch", [1, 3, 10])
def test_every_due_order_is_delivered_once_and_finished(prefetch: int) -> None:
    accept(7)
    seen: list[str] = []

    def deliver(lease: Lease) -> bool:
        seen.append(lease.id)
        return True

    run(deliver, prefetch=prefetch)
    assert seen == [f"w-{k}" for k in range(1, 8)]
    assert set(states().values()) == {"done"}


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        (Retryable("http_503"), "pending", "http_503"),
        (Permanent("http_422"), "dead", "http_422"),
        (BadAck("wrong_id"), "leased", "wrong_id"),
        (RuntimeError("secret detail"), "leased", "exception"),
        (MemoryError(), "leased", "exception"),
        (RecursionError(), "leased", "exception"),
    ],
)
def test_an_answer_other_than_success_is_kept_and_the_worker_goes_on(
    answer: Exception, state: str, code: str, clock: object
) -> None:
    accept(2)

    def deliver(lease: Lease) -> bool:
        if lease.id == "w-1":
            raise answer
        return True

    with capture_logs() as said:
        run(deliver)
    assert states() == {"w-1": state, "w-2": "done"}
    assert Failure.objects.get().code == code
    about = [entry for entry in said if entry.get("job") == "w-1"]
    assert about[0]["code"] == code
    assert "secret detail" not in str(said)


@pytest.mark.parametrize("answer", [1, "ok", None, {"ok": True}, [True]])
def test_only_true_itself_is_success(answer: object) -> None:
    accept(1)
    run(lambda _lease: answer)
    assert states() == {"w-1": "leased"}
    assert Failure.objects.get().outcome == "unknown"


def test_a_cancelled_delivery_gives_the_order_back_with_its_attempt() -> None:
    accept(1)
    calls: list[str] = []

    def deliver(lease: Lease) -> bool:
        calls.append(lease.id)
        if len(calls) == 1:
            raise Cancelled
        return True

    run(deliver)
    assert calls == ["w-1", "w-1"]
    assert Job.objects.get().attempts == 1


def test_told_to_stop_it_ends_the_running_delivery_and_gives_the_rest_back() -> None:
    accept(10)
    worker = Worker(lambda lease: stop_at_first(lease), Settings("w", prefetch=10), wait=lambda _seconds: False)

    def stop_at_first(_lease: Lease) -> bool:
        worker.stop()
        return True

    worker.run()
    assert list(states().values()) == ["done"] + ["pending"] * 9
    assert set(Job.objects.filter(state="pending").values_list("attempts", "token")) == {(0, 1)}
    assert not Failure.objects.exists()
    assert Process.objects.get(name="w").stopped_at_ms is not None


@pytest.mark.timeout(30)  # a worker that hides it would go on for ever
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_what_is_meant_to_end_the_process_reaches_the_caller_and_the_rest_is_given_back(
    end: type[BaseException],
) -> None:
    accept(3)

    def deliver(_lease: Lease) -> bool:
        raise end

    worker = Worker(deliver, Settings("w", prefetch=3), wait=lambda _seconds: False)
    with pytest.raises(end):
        worker.run()
    assert list(states().values()) == ["leased", "pending", "pending"]
    assert Failure.objects.get().outcome == "unknown"


def test_a_lease_that_may_be_over_in_hand_is_given_back_and_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    accept(2)
    seen: list[str] = []
    late = [0]
    real = product_clock.monotonic_ms
    monkeypatch.setattr(product_clock, "monotonic_ms", lambda: real() + late[0])

    def deliver(lease: Lease) -> bool:
        seen.append(lease.id)
        late[0] += 30_000  # the machine slept for the length of a lease
        return True

    worker = Worker(deliver, Settings("w", prefetch=2, until_idle=True), wait=lambda _seconds: False)
    worker.run()
    assert seen == ["w-1", "w-2"]
    assert worker.tally.back == 1, "the second one was given back first and claimed anew"
    assert Job.objects.get(pk="w-2").attempts == 1


def test_what_was_delivered_is_written_down_as_soon_as_the_database_answers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accept(1)
    waited: list[float] = []
    real, refusals = leases.finish_and_claim, iter(["database or disk is full"] * 3)

    def flaky(results: list, *arguments: object, **options: object) -> object:
        if results and (sentence := next(refusals, None)):
            raise OperationalError(sentence)
        return real(results, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "finish_and_claim", flaky)
    monkeypatch.setattr("queue_app.delivery.worker.connection.close", lambda: None)
    delivered: list[str] = []

    def deliver(lease: Lease) -> bool:
        delivered.append(lease.id)
        return True

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return False

    worker = Worker(deliver, Settings("w", until_idle=True), wait=wait)
    with capture_logs() as said:
        worker.run()
    assert delivered == ["w-1"], "it is not delivered again"
    assert states() == {"w-1": "done"}
    assert [entry["code"] for entry in said if entry["event"] == "database_refuses"] == ["disk_full"] * 3
    assert len(waited) == 3
    assert all(seconds >= 0.2 for seconds in waited), "it waits and does not spin"


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("database or disk is full", "disk_full"),
        ("database is locked", "locked"),
        ("attempt to write a readonly database", "read_only"),
        ("database disk image is malformed", "damaged"),
        ("file is not a database", "damaged"),
        ("unable to open database file", "unreachable"),
        ("the connection is closed", "unreachable"),
        ("consuming input failed: server closed the connection unexpectedly", "unreachable"),
        ("connection failed: connection to server at 127.0.0.1, port 1 failed: Connection refused", "unreachable"),
        ("terminating connection due to administrator command", "unreachable"),
        ("could not translate host name: Name or service not known", "unreachable"),
        ("SSL SYSCALL error: EOF detected", "unreachable"),
        ("FATAL: the database system is shutting down", "unreachable"),
        ("deadlock detected", "database_error"),
    ],
)
def test_trouble_has_a_short_word(sentence: str, word: str) -> None:
    assert trouble_of(OperationalError(sentence)) == word
