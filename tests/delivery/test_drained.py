"""A worker that somebody lets finish and end does what SIGTERM makes it do, and says so."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection

from queue_app.delivery.worker import Settings, Worker
from queue_app.management.commands import worker as command
from queue_app.models import Failure, Job, Process
from queue_app.services import life_signs, queue, workers
from queue_app.services.runs import Held
from tests.conftest import RealDatabase
from tests.waiting import until


def accept(n: int) -> None:
    queue.enqueue_many([{"id": f"d-{k}", "quantity": 1} for k in range(n)])


@pytest.mark.timeout(60)  # one that hears nothing would go on for ever
def test_it_finishes_what_runs_gives_back_the_rest_and_ends(real_database: RealDatabase, team_lead: User) -> None:
    accept(10)
    worker = Worker(lambda lease: deliver(lease), Settings("w", prefetch=6, concurrency=2))

    def deliver(_lease: Held) -> bool:
        """The first word comes while two are being delivered; they end when the worker has heard it."""
        workers.drain(team_lead, "w")
        connection.close()
        until(lambda: worker._drain_end_ms is not None, "the word")
        return True

    tally = worker.run()
    assert (tally.ok, tally.back, tally.left) == (2, 4, 0)
    assert sorted(Job.objects.values_list("state", "attempts")) == [("done", 1)] * 2 + [("pending", 0)] * 8
    assert not Failure.objects.exists()
    row = Process.objects.get(pk="w")
    assert (row.draining, row.stopped_at_ms is not None) == (True, True)


@pytest.mark.django_db
@pytest.mark.timeout(60)
def test_one_that_waits_for_orders_ends_too_and_takes_nothing_that_comes(team_lead: User) -> None:
    def told(_seconds: float) -> bool:
        if workers.drain(team_lead, "w").first:
            accept(1)
        worker._look_at_ms = 0  # as if the time until its next look were over
        return False

    worker = Worker(lambda _lease: True, Settings("w"), wait=told)
    assert worker.run().ended == 0
    assert Job.objects.get().token == 0


@pytest.mark.django_db
@pytest.mark.timeout(60)
def test_the_process_ends_with_status_0_and_under_the_same_name_begins_anew(
    team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command.signal, "signal", lambda *_what: None)
    arrive = life_signs.arrive

    def arrive_and_hear(name: str, *more: object) -> None:
        arrive(name, *more)  # type: ignore[arg-type]
        workers.drain(team_lead, name)

    said = StringIO()
    with monkeypatch.context() as heard:
        heard.setattr(life_signs, "arrive", arrive_and_hear)
        call_command("worker", "--owner", "w", stdout=said)  # a SystemExit would be another status
    assert said.getvalue().startswith("0 tries ended: 0 delivered")
    accept(1)
    worker = Worker(lambda _lease: True, Settings("w", until_idle=True))
    assert worker.run().ok == 1


@pytest.mark.timeout(60)
def test_what_the_one_before_was_told_means_nothing_when_the_database_refuses_the_arrival(
    real_database: RealDatabase, team_lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    life_signs.arrive("w", "worker", "snacks")
    workers.drain(team_lead, "w")  # and it was killed before it could say that it ended
    accept(1)
    arrive, refusals = life_signs.arrive, [OperationalError("database is locked")]

    def refused_once(*given: object) -> None:
        if refusals:
            raise refusals.pop()
        arrive(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(life_signs, "arrive", refused_once)
    worker = Worker(lambda _lease: True, Settings("w", until_idle=True), wait=bool)
    assert worker.run().ok == 1
    assert Process.objects.get(pk="w").draining is False
