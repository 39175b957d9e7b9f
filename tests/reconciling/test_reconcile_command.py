"""`manage.py reconcile` against a receiver behind HTTP: sentences, exit statuses, and a receiver that was planted bad."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.delivery import ledger as http_ledger
from queue_app.models import AuditEvent, Reconciliation
from queue_app.receiver import ledger as receiver_ledger
from queue_app.receiver.ledger import Applied, Ledger
from queue_app.services import queue
from tests.commands import Run, runner
from tests.conftest import Clock
from tests.delivery.conftest import adapter
from tests.receiver.conftest import Opened, open_receiver
from tests.receiver.http_client import post_order

__all__ = ["adapter", "open_receiver"]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that is not there stays away; nothing is won by waiting for it."""
    monkeypatch.setattr(http_ledger, "WAITS_S", (0, 0, 0))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit status, output and error output of a command."""
    return runner(capsys)


def deliver_all(adapter: Any, url: str, ids: str) -> None:
    """Through the real door: accepted here, posted there, finished here."""
    post = adapter(url)
    for job_id in ids:
        queue.enqueue(job_id, 3)
        assert queue.run_once(post, owner="w") == "done"


def test_a_receiver_that_agrees(clock: Clock, run: Run, adapter: Any, open_receiver: Any) -> None:
    receiver = open_receiver()
    deliver_all(adapter, receiver.url, "abc")
    status, said, _ = run("reconcile", "--receiver", receiver.url)
    assert status == 0
    assert said.splitlines()[0] == "The same: 3 orders, no difference."
    assert "3 delivered (9 pieces) by 3 writes, 3 requests" in said
    assert Reconciliation.objects.get().differing == 0


class OneDoubleOneMissing(Ledger):
    """The mistake: `b` is acknowledged and nothing is written; what belongs to it is written for `a`."""

    def apply(self, order_id: str, quantity: int) -> Applied:
        if order_id != "b":
            return super().apply(order_id, quantity)
        with self._database.transaction() as link:
            number = receiver_ledger._count_request(link, order_id, quantity)
            receiver_ledger._record(link, "a", quantity, self._now_ms())
        return Applied("applied", number)


def test_one_missing_and_one_double_with_right_totals_at_a_planted_bad_receiver(
    clock: Clock, run: Run, adapter: Any, open_receiver: Any
) -> None:
    receiver = open_receiver(kind=OneDoubleOneMissing)
    deliver_all(adapter, receiver.url, "abc")
    assert queue.enqueue("a", 3) == "duplicate"
    totals = receiver.ledger.page(None, 10).totals
    assert (totals["stock"], totals["writes"]) == (9, 3)  # what was acknowledged: totals alone show nothing
    status, said, _ = run("reconcile", "--receiver", receiver.url)
    assert status == 1
    assert said.splitlines()[0] == "DIFFERENT: 2 of 3 orders."
    assert "1  Delivered here, no effect there." in said
    assert "1  Done more than once there." in said
    found = json.loads(run("reconcile", "--receiver", receiver.url, "--json")[1])
    assert found["kinds"] == {"no_effect": 1, "double_writes": 1}
    assert found["examples"] == [["no_effect", "b"]]


def test_a_receiver_that_lost_its_database_applies_anew_and_the_comparison_shows_it(
    clock: Clock, run: Run, adapter: Any, open_receiver: Any
) -> None:
    # F54
    deliver_all(adapter, open_receiver().url, "abc")
    empty: Opened = open_receiver(name="empty.sqlite3")
    assert post_order(empty.url, "b", 3).document["duplicate"] is False  # documented: the same id again, as new
    status, said, _ = run("reconcile", "--receiver", empty.url)
    assert status == 1
    assert "2  Delivered here, no effect there." in said
    assert "a c" in said


def test_effects_of_orders_that_never_went_out_are_reported_with_their_tokens(
    clock: Clock, run: Run, open_receiver: Any
) -> None:
    # F33: as after a failover to a replica that lacked the last commits
    receiver = open_receiver()
    for job_id in "ab":
        queue.enqueue(job_id, 3)
    for job_id in ("a", "stranger"):
        post_order(receiver.url, job_id, 3)
    found = json.loads(run("reconcile", "--receiver", receiver.url, "--json")[1])
    assert found["kinds"] == {"pending_with_effect": 1, "more_requests": 1, "unknown_here": 1}


def test_a_row_and_its_index_changed_in_the_file_are_seen_by_the_comparison_only(
    clock: Clock, run: Run, adapter: Any, open_receiver: Any, tmp_path: Any
) -> None:
    receiver = open_receiver()
    deliver_all(adapter, receiver.url, "abc")
    with closing(sqlite3.connect(tmp_path / "receiver.sqlite3")) as link:  # as a flipped bit would
        link.execute("UPDATE orders SET quantity = 2 WHERE id = 'b'")
        link.commit()
        assert link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    status, said, _ = run("audit", "verify", "--receiver", receiver.url)
    assert status == 1
    assert "Whole: " in said
    assert "1  Another quantity there." in said
    assert "1  Totals that the receiver's list does not explain." in said


def test_the_proof_of_the_record_compares_with_the_receiver_too(
    clock: Clock, run: Run, adapter: Any, open_receiver: Any
) -> None:
    receiver = open_receiver()
    deliver_all(adapter, receiver.url, "a")
    status, said, _ = run("audit", "verify", "--receiver", receiver.url)
    assert (status, said.splitlines()[0][:6]) == (0, "Whole:")
    assert "The same: 1 orders" in said
    found = json.loads(run("audit", "verify", "--json", "--receiver", receiver.url)[1])
    assert (found["whole"], found["receiver"]["differing"]) == (True, 0)
    assert "receiver" not in json.loads(run("audit", "verify", "--json")[1])
    status, _, error = run("audit", "verify", "--receiver", "http://127.0.0.1:1")
    assert (status, "connect_refused" in error) == (2, True)


def test_nobody_listening_is_no_comparison_and_keeps_none(clock: Clock, run: Run) -> None:
    status, said, error = run("reconcile", "--receiver", "http://127.0.0.1:1")
    assert (status, said) == (2, "")
    assert error.strip() == "The receiver's list cannot be read (connect_refused), so the comparison was not made."
    assert not Reconciliation.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--receiver", "http://user:secret@host"),
        ("--receiver", "file:///etc/passwd"),
        ("--as", "nobody-of-this-name"),
        ("--limit-examples", "101"),
        ("--limit-examples", "-1"),
        ("--limit-examples", "１"),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2(clock: Clock, run: Run, arguments: tuple[str, str]) -> None:
    status, said, error = run("reconcile", *arguments)
    assert (status, said) == (2, "") if arguments[0] != "--limit-examples" else status != 0
    assert "secret" not in error
    assert "Traceback" not in error


def test_a_person_gives_the_name_and_somebody_without_a_role_cannot(
    clock: Clock, run: Run, auditor: User, open_receiver: Any
) -> None:
    receiver = open_receiver()
    assert run("reconcile", "--receiver", receiver.url, "--as", "ada")[0] == 0
    assert AuditEvent.objects.get(action="reconcile").actor_id == auditor.pk
    User.objects.create_user("nobody")
    asked = receiver.ledger.page(None, 1)
    status, _, error = run("reconcile", "--receiver", receiver.url, "--as", "nobody")
    assert (status, "may do this" in error) == (2, True)
    assert Reconciliation.objects.count() == 1
    assert asked.totals["requests"] == 0
