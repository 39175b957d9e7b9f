"""Leases of long deliveries are renewed; a lost one is told to the delivery, and what comes late is refused."""

import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from queue_app import clock as product_clock
from queue_app.delivery.worker import Settings, Worker
from queue_app.models import Failure, Job, Queue
from queue_app.policy.errors import Permanent
from queue_app.policy.queues import QueuePolicy
from queue_app.receiver.ledger import Ledger
from queue_app.services import leases, queue, runs
from queue_app.services.runs import Held
from queue_app.store import queues
from tests.conftest import RealDatabase

LEASE_MS = 400
LOOKS = 400


def until_idle(**more: object) -> Settings:
    return Settings("w", until_idle=True, lease_ms=LEASE_MS, **more)  # type: ignore[arg-type]


def test_a_delivery_longer_than_its_lease_keeps_it_and_nobody_else_gets_the_order(real_database: RealDatabase) -> None:
    """F52, G07 (a): renewed in the background, under the same token, so there is one delivery."""
    queue.enqueue("long", 1)
    stolen: list[object] = []

    def deliver(lease: Held) -> bool:
        pause = threading.Event()
        for _look in range(LOOKS):
            stolen.extend(queue.claim("thief"))
            if (Job.objects.get().lease_until or 0) >= lease.lease_until + LEASE_MS:  # it has lasted two leases
                return True
            pause.wait(0.02)
        raise AssertionError("the lease was not renewed")

    tally = Worker(deliver, until_idle()).run()
    assert stolen == []
    assert (tally.ok, tally.refused) == (1, 0)
    assert Job.objects.values_list("state", "token", "attempts").get() == ("done", 1, 1)


def test_a_delivery_is_told_that_its_lease_is_lost_and_its_end_is_refused(real_database: RealDatabase) -> None:
    queue.enqueue("lost", 1)

    def deliver(lease: Held) -> bool:
        assert not lease.lost
        (other,) = queue.claim("thief", now_ms=product_clock.now_ms() + 3_600_000)
        assert other.token == lease.token + 1
        pause = threading.Event()
        for _look in range(LOOKS):
            if lease.lost:
                return True
            pause.wait(0.02)
        raise AssertionError("it was not told")

    with capture_logs() as said:
        tally = Worker(deliver, until_idle()).run()
    assert (tally.ok, tally.refused) == (0, 1)
    assert [entry["event"] for entry in said if entry.get("job") == "lost"] == ["lease_lost", "finish_refused"]
    assert Job.objects.values_list("state", "owner", "token").get() == ("leased", "thief", 2)


@pytest.mark.django_db
def test_a_lost_lease_stops_at_the_checkpoint_and_gives_nothing_back_that_is_not_its_own() -> None:
    queue.enqueue("lost", 1)

    def deliver(lease: Held) -> bool:
        lease.signal.lost = True
        lease.checkpoint()
        raise AssertionError("the effect would have happened")

    real = leases.release_many

    def release_many(proofs: list[tuple[str, int]]) -> list[bool]:
        queue.claim("thief", now_ms=product_clock.now_ms() + 3_600_000)
        worker.stop()
        return real(proofs)

    worker = Worker(deliver, until_idle())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "release_many", release_many)
        tally = worker.run()
    assert (tally.back, tally.ended) == (0, 0)
    assert Job.objects.values_list("state", "owner", "attempts").get() == ("leased", "thief", 2)


@pytest.mark.django_db
def test_leases_in_hand_are_renewed_together_when_a_third_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement for all of them, however many there are; one that is fresh is left alone."""
    queue.enqueue_many([{"id": f"r-{k}", "quantity": 1} for k in range(5)])
    asked: list[list[str]] = []

    def renew_many(proofs: list[tuple[str, int]], **_more: object) -> list[bool]:
        asked.append([job_id for job_id, _token in proofs])
        return [True] * len(proofs)

    monkeypatch.setattr(leases, "renew_many", renew_many)
    worker = Worker(lambda _lease: True, until_idle(prefetch=5))
    worker._holding.take(queue.claim("w", limit=5), 1_000 + LEASE_MS)
    for now_ms, n in ((1_000 + LEASE_MS // 3 - 1, 0), (1_000 + LEASE_MS // 3 + 1, 1), (1_000 + LEASE_MS // 3 + 2, 1)):
        worker._holding.renew(now_ms, LEASE_MS, None)
        assert len(asked) == n
    assert asked[0] == [f"r-{k}" for k in range(5)]


@pytest.mark.django_db
def test_without_renewing_two_deliveries_have_one_effect_and_the_late_end_is_refused(tmp_path: Path) -> None:
    """G07 (b): `run_once` does not renew."""
    ledger = Ledger(tmp_path / "r.sqlite3", now_ms=product_clock.now_ms)
    queue.enqueue("slow", 3)
    outcomes: list[str] = []

    def deliver(lease: leases.Lease) -> bool:
        outcomes.append(ledger.apply(lease.id, lease.quantity).outcome)
        (other,) = queue.claim("second", now_ms=lease.lease_until)
        outcomes.append(ledger.apply(other.id, other.quantity).outcome)
        assert queue.finish(other.id, other.token, "ok")
        return True

    assert runs.run_once(deliver, owner="first") == "lost"
    assert outcomes == ["applied", "duplicate"]
    assert ledger.page(None, 10).totals["writes"] == 1
    ledger.close()
    assert Job.objects.values_list("state", "token").get() == ("done", 2)
    assert list(Failure.objects.values_list("outcome", "token")) == [("lease_expired", 1)]


@pytest.mark.django_db
def test_a_stop_in_the_middle_of_a_claim_gives_back_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """F10, during claim."""
    queue.enqueue_many([{"id": f"c-{k}", "quantity": 1} for k in range(4)])
    real = leases.finish_and_claim

    def claim_and_stop(*arguments: object, **options: object) -> object:
        worker.stop()
        return real(*arguments, **options)

    monkeypatch.setattr(leases, "finish_and_claim", claim_and_stop)
    worker = Worker(lambda _lease: True, Settings("w", prefetch=4))
    tally = worker.run()
    assert (tally.back, tally.ended) == (4, 0)
    assert set(Job.objects.values_list("state", "attempts")) == {("pending", 0)}


@pytest.mark.timeout(30)  # a worker that does not see it would wait for ever
@pytest.mark.django_db
def test_the_end_of_a_cancelled_queue_comes_without_its_orders_and_loses_none() -> None:
    queues.declare(QueuePolicy("drinks"))
    queue.enqueue_many([{"id": f"x-{k}", "quantity": 1, "queue": "drinks"} for k in range(3)])
    Queue.objects.filter(pk="drinks").update(accepting=False, paused=True)
    tally = Worker(lambda _lease: True, Settings("w", "drinks", until_empty=True)).run()
    assert (tally.ended, tally.back) == (0, 0)
    assert set(Job.objects.values_list("state", "attempts")) == {("pending", 0)}


@pytest.mark.django_db
def test_what_waits_behind_an_order_in_quarantine_does_not_keep_the_worker_for_ever() -> None:
    queues.declare(QueuePolicy("bank", ordering="ordered"))
    for job_id, key in (("b-1", "k"), ("b-2", "k"), ("b-3", "k"), ("b-4", "other")):
        queue.enqueue(job_id, 1, queue="bank", order_key=key)

    def deliver(lease: Held) -> bool:
        if lease.id == "b-1":
            raise Permanent("http_422")
        return True

    tally = Worker(deliver, Settings("w", "bank", until_empty=True), wait=lambda _seconds: None).run()
    assert (tally.ok, tally.permanent, tally.stuck) == (1, 1, 2)
    assert list(Job.objects.order_by("seq").values_list("state", flat=True)) == ["dead", "pending", "pending", "done"]
