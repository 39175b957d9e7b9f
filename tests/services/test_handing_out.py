"""Who is handed out and who is buried on the way: whole rows, and how often the queue and its gate are asked."""

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from queue_app.models import Failure, Gate, Job, RedriveOutcome
from queue_app.policy.attempts import Lease
from queue_app.policy.queues import QueuePolicy
from queue_app.services import gates, handing_out, queue
from queue_app.services.gates import Grant
from queue_app.services.leases import record_unknown
from queue_app.store import evidence, jobs
from queue_app.store.evidence import End
from queue_app.store.queues import Standing
from tests.engine.rows import DAY, LEASE, T, declare, kill, put, row, stand, take

pytestmark = pytest.mark.django_db
POLICY = QueuePolicy("snacks")
FIELDS = ("job_id", "token", "attempt", "at_ms", "outcome", "code", "worker")


def hand_out(limit: int, *, at: int = T, **policy: Any) -> list[Lease]:
    return handing_out.hand_out("w2", Standing(replace(POLICY, **policy), False, at), limit, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Each look for due jobs (what it wanted, how many it found), each question and report to the gate."""
    calls: list[tuple[Any, ...]] = []
    due, took, granted = jobs.due, gates.took, gates.granted

    def look(name: str, now: int, room: int, **more: bool) -> list[jobs.JobRow]:
        found = due(name, now, room, **more)
        calls.append(("due", room, more["ordered"], more["with_budget"], len(found)))
        return found

    def told(grant: Grant, policy: QueuePolicy, leases: list[Lease], now: int) -> None:
        calls.append(("took", grant.n, policy.name, [lease.id for lease in leases], now))
        took(grant, policy, leases, now)

    def ask(policy: QueuePolicy, now: int, limit: int) -> Grant:
        calls.append(("granted", policy.name, now, limit))
        return granted(policy, now, limit)

    monkeypatch.setattr(jobs, "due", look)
    monkeypatch.setattr(gates, "took", told)
    monkeypatch.setattr(gates, "granted", ask)
    return calls


# how many stand there (good, late), how many are wanted; the looks: room, with budget only, found
LOOKS = [
    (0, 0, 2, [(2, False, 0)]),
    (1, 0, 2, [(2, False, 1)]),
    (2, 0, 2, [(2, False, 2)]),
    (3, 0, 2, [(2, False, 2)]),
    (0, 1, 2, [(2, False, 1)]),
    (1, 1, 2, [(2, False, 2), (1, False, 0)]),
    (2, 1, 2, [(2, False, 2), (1, False, 1)]),
    (1, 3, 2, [(2, False, 2), (2, False, 2), (1, False, 0)]),
    (1, 100, 100, [(100, False, 100), (100, True, 1)]),
    (1, 101, 102, [(102, False, 102), (101, True, 0)]),
    (2, 101, 101, [(101, False, 101), (101, True, 2)]),
    (1, 99, 99, [(99, False, 99), (99, False, 1)]),
    (2, 102, 60, [(60, False, 60), (60, False, 44)]),
]


@pytest.mark.parametrize(("good", "late", "wanted", "looks"), LOOKS)
def test_a_claim_looks_no_more_often_than_it_must(
    asked: list[tuple[Any, ...]], good: int, late: int, wanted: int, looks: list[tuple[int, bool, int]]
) -> None:
    put(*(f"late-{n:03}" for n in range(late)), deadline_ms=T, max_attempts=1)
    put(*(f"good-{n}" for n in range(good)))
    taken = hand_out(wanted)
    assert [lease.id for lease in taken] == [f"good-{n}" for n in range(min(good, wanted))]
    assert [(room, budget, found) for what, room, _, budget, found in asked if what == "due"] == looks
    assert Job.objects.filter(state="dead").count() == min(late, 100)


def test_a_job_that_moved_and_one_that_stays_end_the_call(
    asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a", "b")
    monkeypatch.setattr(jobs, "lease_all", lambda *_given: set())
    assert hand_out(2) == []
    assert asked == [("due", 2, False, False, 2)]


@pytest.mark.parametrize(("lease_ms", "until"), [(None, T + 9_000), (1, T + 1)])
def test_what_the_worker_holds_is_what_was_stored(lease_ms: int | None, until: int) -> None:
    put("a", quantity=3, payload={"x": 1}, deadline_ms=T + 99)
    standing = Standing(replace(POLICY, lease_ms=9_000), False, T)
    assert handing_out.hand_out("w2", standing, 5, lease_ms) == [
        Lease("a", "snacks", 3, '{"x":1}', 1, 1, until, T + 99)
    ]
    stored = row("a")
    assert (stored["owner"], stored["lease_until"], stored["changed_at_ms"]) == ("w2", until, T)
    assert stand("a") == ("leased", "", "", 1, 1)


def test_the_gate_is_asked_only_where_there_is_something_to_ask(asked: list[tuple[Any, ...]]) -> None:
    put("a", "b", "c")
    assert [len(hand_out(1)), len(hand_out(0))] == [1, 0]
    assert asked == [("due", 1, False, False, 1), ("took", 1, "snacks", ["a"], T)]
    del asked[:]
    assert hand_out(2, paused=True) == []
    assert asked == []
    assert len(hand_out(1, delivery_rate_mj=4_000)) == 1
    assert len(handing_out.hand_out("w2", Standing(POLICY, True, T), 1, None)) == 1
    assert [call for call in asked if call[0] == "granted"] == [("granted", "snacks", T, 1)] * 2


def test_a_look_that_finds_nobody_is_not_told_to_the_gate(asked: list[tuple[Any, ...]]) -> None:
    assert hand_out(3, ordering="ordered") == []
    assert asked == [("due", 3, True, False, 0)]


def test_every_way_to_be_buried_leaves_whole_rows(team_lead: User, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(max_attempts=2, budget_ms=2 * DAY)
    kill("again")
    queue.redrive("again", "INC-1", approved_by=team_lead, batch=7, deadline_ms=T + 10, now_ms=T)
    put("silent", "spoke", max_attempts=1)
    put("tried", deadline_ms=T + 5_000)
    queue.claim("w1", limit=4, now_ms=T)
    put("never", deadline_ms=T + 10)
    assert record_unknown("spoke", 1, "wrong_id", now_ms=T + 1)
    assert queue.finish("tried", 1, "retry", code="http_503", now_ms=T + 2)
    before = set(Failure.objects.values_list(*FIELDS))
    ends: list[tuple[list[End], int]] = []
    real = evidence.add_redrive_outcomes

    def add(rows: list[End], at_ms: int) -> None:
        ends.append((rows, at_ms))
        real(rows, at_ms)

    monkeypatch.setattr(evidence, "add_redrive_outcomes", add)
    assert hand_out(9, at=T + LEASE) == []
    assert ends == [([End("again", "dead", "deadline", "lease_expired", 3)], T + LEASE)]
    assert {job_id: stand(job_id) for job_id in ("again", "silent", "spoke", "tried", "never")} == {
        "again": ("dead", "deadline", "lease_expired", 1, 3),
        "silent": ("dead", "exhausted", "lease_expired", 1, 2),
        "spoke": ("dead", "exhausted", "wrong_id", 1, 2),
        "tried": ("dead", "deadline", "http_503", 1, 2),
        "never": ("dead", "deadline", "", 0, 1),
    }
    assert set(Failure.objects.values_list(*FIELDS)) - before == {
        ("again", 2, 1, T + LEASE, "lease_expired", "lease_expired", "w1"),
        ("silent", 1, 1, T + LEASE, "lease_expired", "lease_expired", "w1"),
        ("tried", 2, 1, T + LEASE, "deadline_passed", "", ""),
        ("never", 1, 0, T + LEASE, "deadline_passed", "", ""),
    }
    told = RedriveOutcome.objects.values().get()
    del told["id"]
    assert told == {
        "job_id": "again", "token": 1, "queue": "snacks", "batch": 7, "was_reason": "permanent", "was_code": "http_422",
        "outcome": "dead_other", "reason": "deadline", "code": "lease_expired", "end_token": 3, "at_ms": T + LEASE,
    }  # fmt: skip


def test_taking_over_tells_of_the_lost_token_and_keeps_its_own_story() -> None:
    put("silent", "spoke", "new")
    queue.claim("w1", limit=2, now_ms=T)
    record_unknown("spoke", 1, "bad_ack", now_ms=T + 1)
    taken = hand_out(3, at=T + LEASE)
    assert [(lease.id, lease.attempt, lease.token) for lease in taken] == [
        ("silent", 2, 2), ("spoke", 2, 2), ("new", 1, 1),
    ]  # fmt: skip
    assert set(Failure.objects.values_list(*FIELDS)) == {
        ("spoke", 1, 1, T + 1, "unknown", "bad_ack", "w1"),
        ("silent", 1, 1, T + LEASE, "lease_expired", "lease_expired", "w1"),
    }


def test_a_probe_is_the_only_one_handed_out_and_the_gate_knows_it() -> None:
    Gate.objects.create(queue="snacks", breaker="open", probe_at_ms=T, failed_in_row=3, silent_since_ms=T - 1)
    put("a", "b")
    lease = take(limit=9)
    assert Gate.objects.values_list("breaker", "probe_job", "probe_token").get() == ("probing", "a", lease.token)
