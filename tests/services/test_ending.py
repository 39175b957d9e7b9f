"""What is written when attempts end: whole rows of evidence and of results of redrives, and what the gate hears."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_app.models import Failure, Gate, Job, LateFinish, RedriveOutcome
from queue_app.policy.attempts import Result
from queue_app.services import ending, gates, leases, queue
from queue_app.store import ends, evidence
from queue_app.store.evidence import End
from tests.engine.rows import T, declare, kill, put, take

pytestmark = pytest.mark.django_db
LATER = T + 60_000


def redriven(*ids: str, by: User, name: str = "snacks", max_attempts: int = 2) -> None:
    """Orders that died, were started again at LATER, and are in w1's hands now: token 2."""
    for job_id in ids:
        kill(job_id, name=name)
        queue.redrive(job_id, "INC-1", approved_by=by, batch=7, max_attempts=max_attempts, now_ms=LATER)
    assert len(queue.claim("w1", queue=name, limit=len(ids), now_ms=LATER)) == len(ids)


def outcomes() -> list[dict[str, Any]]:
    """Every column of every result of a redrive."""
    rows = list(RedriveOutcome.objects.order_by("job_id", "token").values())
    for row in rows:
        del row["id"]
    return rows


def outcome(job_id: str, told: str, reason: str = "", code: str = "", *, at: int = LATER + 5) -> dict[str, Any]:
    return {
        "job_id": job_id, "token": 1, "queue": "snacks", "batch": 7, "was_reason": "permanent", "was_code": "http_422",
        "outcome": told, "reason": reason, "code": code, "end_token": 2, "at_ms": at,
    }  # fmt: skip


@pytest.fixture
def results_told(monkeypatch: pytest.MonkeyPatch) -> list[End]:
    """What the evidence is told of ends of redriven orders."""
    told: list[End] = []
    real = evidence.add_redrive_outcomes

    def add(rows: list[End], at_ms: int) -> None:
        told.extend(rows)
        real(rows, at_ms)

    monkeypatch.setattr(evidence, "add_redrive_outcomes", add)
    return told


def test_each_first_end_after_a_redrive_is_a_result_and_another_try_is_none(
    team_lead: User, results_told: list[End]
) -> None:
    redriven("a", "b", "c", "d", by=team_lead)
    put("e", at=LATER)
    take(at=LATER)
    results = [
        Result("a", 2, "ok", "http_200"), Result("b", 2, "permanent", "http_422"),
        Result("c", 2, "permanent", "http_409"), Result("d", 2, "retry", "http_503"),
        Result("e", 1, "permanent", "http_422"),
    ]  # fmt: skip
    assert queue.finish_many(results, now_ms=LATER + 5) == [True] * 5
    assert outcomes() == [
        outcome("a", "done"),
        outcome("b", "dead_same", "permanent", "http_422"),
        outcome("c", "dead_other", "permanent", "http_409"),
    ]
    assert results_told == [
        End("a", "done", "", "", 2),
        End("b", "dead", "permanent", "http_422", 2),
        End("c", "dead", "permanent", "http_409", 2),
    ]


def test_an_order_that_gave_up_after_its_redrive_died_for_another_reason(team_lead: User) -> None:
    redriven("a", by=team_lead, max_attempts=1)
    assert queue.finish("a", 2, "retry", code="http_422", now_ms=LATER + 9)
    assert outcomes() == [outcome("a", "dead_other", "exhausted", "http_422", at=LATER + 9)]


def test_every_end_but_success_leaves_a_row_of_the_attempt_that_ended() -> None:
    put("a", "b", "c", "d")
    queue.claim("w7", limit=4, now_ms=T)
    results = [
        Result("a", 1, "ok", "http_200"), Result("b", 1, "retry", "http_503"), Result("c", 1, "permanent", "http_422"),
        Result("b", 1, "permanent", "http_409"), Result("d", 0, "retry", "http_500"), Result("x", 1, "ok"),
    ]  # fmt: skip
    assert ending.end_all(results, ends.held(["a", "b", "c", "d", "x"]), T + 5, leases._Policies()) == [
        "done", "pending", "dead", None, None, None,
    ]  # fmt: skip
    columns = ("job_id", "token", "attempt", "at_ms", "outcome", "code", "worker")
    assert list(Failure.objects.order_by("job_id").values_list(*columns)) == [
        ("b", 1, 1, T + 5, "retry", "http_503", "w7"),
        ("c", 1, 1, T + 5, "permanent", "http_422", "w7"),
    ]
    assert list(LateFinish.objects.values_list("job_id", "token", "at_ms", "outcome")) == [("d", 0, T + 5, "retry")]
    assert ending.end_all([], {}, T, leases._Policies()) == []


def test_a_claim_that_ended_between_two_looks_is_no_late_finish() -> None:
    """Only an older token comes late; the own one, when nothing is leased any more, and one that never was, do not."""
    put("a")
    take()
    queue.release("a", 1, now_ms=T)
    held = ends.held(["a"])
    for token in (1, 2):
        assert ending.end_all([Result("a", token, "ok")], held, T, leases._Policies()) == [None]
    assert not LateFinish.objects.exists()
    assert ending.end_all([Result("a", 0, "ok")], held, T, leases._Policies()) == [None]
    assert LateFinish.objects.count() == 1


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the gates are told."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(gates, "ended", lambda *given: calls.append(given))
    return calls


def in_hand() -> None:
    """Two orders of each of three queues, all of them with a worker."""
    for name in ("drinks", "apples"):
        declare(name)
    for name in ("snacks", "drinks", "apples"):
        put(f"{name}-1", f"{name}-2", queue=name)
        queue.claim("w1", queue=name, limit=2, now_ms=T)


def test_the_gate_hears_all_of_a_queue_in_which_something_failed(heard: list[tuple[Any, ...]]) -> None:
    in_hand()
    snacks = [Result("snacks-1", 1, "ok"), Result("snacks-2", 1, "retry", "http_503")]
    apples = [Result("apples-2", 1, "permanent", "http_422")]
    rest = [Result("drinks-1", 1, "ok"), Result("drinks-2", 1, "ok"), Result("apples-1", 0, "retry", "http_503")]
    queue.finish_many([snacks[0], *rest, *apples, snacks[1]], now_ms=T + 5)
    assert heard == [("apples", apples, T + 5), ("snacks", snacks, T + 5)]


@pytest.mark.parametrize(
    ("stands", "told"),
    [({"failed_in_row": 1}, True), ({"breaker": "open"}, True), ({"breaker": "probing"}, True), ({}, False)],
)
def test_the_gate_hears_a_success_when_it_is_in_trouble(
    heard: list[tuple[Any, ...]], stands: dict[str, Any], told: bool
) -> None:
    in_hand()
    Gate.objects.create(queue="snacks", **stands)
    ok = [Result("snacks-1", 1, "ok"), Result("drinks-1", 1, "ok")]
    queue.finish_many(ok, now_ms=T + 5)
    assert heard == ([("snacks", ok[:1], T + 5)] if told else [])


def test_success_and_refusal_ask_nothing_of_the_queue() -> None:
    put("a", "b", "c")
    queue.claim("w1", limit=3, now_ms=T)

    def asks(result: Result) -> bool:
        with CaptureQueriesContext(connection) as asked:
            held = ends.held([result.id])
            ending.end_all([result], held, T, leases._Policies())
        return any("wait_base_ms" in query["sql"] for query in asked)

    Gate.objects.all().delete()
    assert asks(Result("a", 1, "ok")) is False
    assert asks(Result("c", 1, "retry", "http_503")) is True
    assert Job.objects.get(pk="c").available_at == T + 1_000


def test_a_refusal_needs_no_rule_of_its_queue() -> None:
    put("a")
    take()

    def never(_queue: str) -> Any:
        raise AssertionError("asked")

    assert ending.end_all([Result("a", 1, "permanent")], ends.held(["a"]), T, never) == ["dead"]
