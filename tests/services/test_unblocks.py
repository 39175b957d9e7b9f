"""A lead lets later orders of a key pass one in quarantine: who may, for how long it counts, what the record tells."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connections

from queue_app.models import AuditEvent, Unblock
from queue_app.policy.errors import InvalidNote, InvalidOrder, NotAllowed, NotDead, UnknownJob
from queue_app.reads.behind import CAP, behind
from queue_app.services import queue, unblocks
from queue_app.services.unblocks import NotOrdered
from tests.conftest import Clock
from tests.engine.rows import T, declare

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _one_dead_with_two_behind(clock: Clock) -> None:
    declare("tables", ordering="ordered")
    for job_id in ("a1", "a2", "a3"):
        queue.enqueue(job_id, 1, queue="tables", order_key="t4")
    queue.enqueue("b1", 1, queue="tables", order_key="t5")
    die("a1")


def due() -> list[str]:
    """What is handed out now."""
    return [lease.id for lease in queue.claim("w1", queue="tables", limit=9)]


def die(job_id: str) -> int:
    """Hand it out and let the receiver refuse it; its token."""
    (lease,) = [one for one in queue.claim("w1", queue="tables", limit=1) if one.id == job_id]
    assert queue.finish(job_id, lease.token, "permanent", code="http_422")
    return lease.token


def events(action: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(action=action))


def test_what_waits_behind_is_counted_and_named() -> None:
    assert behind("a1") == behind("a1").__class__(2, True, ("a2", "a3"))
    assert [behind(job_id).n for job_id in ("a2", "a3", "b1", "nobody")] == [1, 0, 0, 0]


def test_the_count_ends_at_its_cap() -> None:
    queue.enqueue_many({"id": f"z{n}", "quantity": 1, "queue": "tables", "order_key": "t4"} for n in range(CAP - 2))
    assert (behind("a1").n, behind("a1").exact) == (CAP, True)
    queue.enqueue("z-more", 1, queue="tables", order_key="t4")
    assert (behind("a1").n, behind("a1").exact, behind("a1").first[:2]) == (CAP, False, ("a2", "a3"))


def test_a_lead_lets_them_pass_and_the_record_tells_how_many_waited(team_lead: User) -> None:
    assert due() == ["b1"]
    receipt = unblocks.unblock(team_lead, "a1", token=1, note="INC-7")
    assert (receipt.first, receipt.by, receipt.waiting) == (True, "tom", 2)
    assert due() == ["a2"]
    (event,) = events("unblock")
    assert (event.target, event.note, event.actor_id) == ("job:a1", "INC-7", team_lead.pk)
    assert json.loads(event.detail) == {"token": 1, "queue": "tables", "waiting": 2}


def test_the_second_click_gives_the_firsts_receipt(team_lead: User) -> None:
    unblocks.unblock(team_lead, "a1", token=1, note="INC-7")
    again = unblocks.unblock(team_lead, "a1", token=1, note="INC-8")
    assert (again.first, again.by, again.at_ms) == (False, "tom", T)
    assert Unblock.objects.count() == len(events("unblock")) == 1


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_others_are_refused_and_that_is_recorded(role: str, request: pytest.FixtureRequest) -> None:
    user = request.getfixturevalue(role)
    with pytest.raises(NotAllowed, match="Only team leads"):
        unblocks.unblock(user, "a1", token=1, note="INC-7")
    assert not Unblock.objects.exists()
    (event,) = events("refused")
    assert (event.target, json.loads(event.detail)["tried"]) == ("job:a1", "unblock")


def test_a_lead_without_the_role_any_more_is_refused(team_lead: User) -> None:
    team_lead.groups.clear()
    with pytest.raises(NotAllowed):
        unblocks.unblock(team_lead, "a1", token=1, note="INC-7")


@pytest.mark.parametrize("token", [0, 2, -1, True])
def test_what_the_person_saw_must_be_what_is_there(team_lead: User, token: int) -> None:
    with pytest.raises(NotDead):
        unblocks.unblock(team_lead, "a1", token=token, note="INC-7")
    assert not Unblock.objects.exists()


def test_only_an_order_in_quarantine_can_be_passed(team_lead: User) -> None:
    with pytest.raises(NotDead):
        unblocks.unblock(team_lead, "a2", token=0, note="INC-7")


@pytest.mark.parametrize(
    ("job_id", "note", "error"),
    [
        ("a1", "", InvalidNote),
        ("a1", "two words", InvalidNote),
        ("a b", "INC-7", InvalidOrder),
        ("zz", "INC-7", UnknownJob),
    ],
)
def test_bad_words_are_refused(team_lead: User, job_id: str, note: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        unblocks.unblock(team_lead, job_id, token=1, note=note)


def test_an_order_that_keeps_nobody_back_is_refused(team_lead: User) -> None:
    queue.enqueue("s1", 1)
    queue.enqueue("k0", 1, queue="tables")
    for job_id in ("s1", "k0"):
        with pytest.raises(NotOrdered):
            unblocks.unblock(team_lead, job_id, token=0, note="INC-7")


def test_it_counts_for_this_stay_only(team_lead: User, operator: User) -> None:
    unblocks.unblock(team_lead, "a1", token=1, note="INC-7")
    assert due() == ["a2", "b1"]
    queue.finish("a2", 1, "ok")
    queue.redrive("a1", "INC-8", approved_by=team_lead, requested_by=operator)
    assert due() == ["a1"], "a redriven order is unfinished again and goes first"
    assert queue.finish("a1", 2, "permanent", code="http_422")
    assert due() == [], "it died anew, and what was recorded was for the time before"


@pytest.mark.django_db(transaction=True)
def test_two_leads_at_once_one_row_one_event(team_lead: User, operator: User) -> None:
    operator.groups.set(team_lead.groups.all())
    barrier = threading.Barrier(2, timeout=30)

    def act(user: User) -> bool:
        barrier.wait()
        try:
            return unblocks.unblock(user, "a1", token=1, note="INC-7").first
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(act, (team_lead, operator))) == [False, True]
    assert Unblock.objects.count() == len(events("unblock")) == 1
