"""Moves of workers: whole refusals, what is asked of the parts, and what one turn does when something has moved the gate."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from queue_app.models import Failure, Gate
from queue_app.policy.attempts import Lease, Result
from queue_app.policy.breakers import SILENT_MS
from queue_app.policy.errors import InvalidOrder
from queue_app.services import gates, leases, passing
from queue_app.store import database, jobs
from queue_app.store import queues as store
from tests.engine.rows import LEASE, T, declare, failures, put, row, snapshot, stand, take
from tests.services.gates_of_queues import WAIT, fail_lately, gate

pytestmark = pytest.mark.django_db

SPANS = ("lease_ms", "86,400,000")
LIMIT = ("limit", "1,000")
CLAIMS: list[tuple[dict[str, Any], tuple[str, str]]] = [
    ({"limit": 0}, LIMIT), ({"limit": 1_001}, LIMIT), ({"limit": True}, LIMIT), ({"limit": 1.0}, LIMIT),
    ({"lease_ms": 0}, SPANS), ({"lease_ms": 86_400_001}, SPANS), ({"lease_ms": "9"}, SPANS),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "words"), CLAIMS)
def test_what_is_out_of_bounds_is_named_with_its_bounds(bad: dict[str, Any], words: tuple[str, str]) -> None:
    put("a")
    before = snapshot()
    asked = {"now_ms": T, **bad}
    calls: list[Callable[[], object]] = [
        lambda: leases.claim("w1", **asked),
        lambda: leases.finish_and_claim([], "w1", **asked),
    ]
    if "lease_ms" in bad:
        calls += [lambda: leases.renew("a", 1, **asked), lambda: leases.renew_many([], **asked)]
    for call in calls:
        with pytest.raises(ValueError) as refused:
            call()
        assert str(refused.value) == f"{words[0]} must be a whole number from 1 to {words[1]}."
    assert snapshot() == before


def test_the_bounds_themselves_are_good() -> None:
    put("a")
    (lease,) = leases.claim("w1", limit=1_000, lease_ms=86_400_000, now_ms=T)
    assert lease.lease_until == T + 86_400_000
    assert leases.renew("a", 1, lease_ms=86_400_000, now_ms=T)
    assert leases.renew("a", 1, lease_ms=1, now_ms=T)


def test_a_queue_that_is_not_declared_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Callable[[], object]] = [
        lambda: leases.claim("w1", queue="none", now_ms=T),
        lambda: leases.finish_and_claim([Result("a", 1, "ok")], "w1", queue="none", now_ms=T),
        lambda: leases._policy("none"),
    ]
    for call in calls:
        with pytest.raises(InvalidOrder) as refused:
            call()
        assert str(refused.value) == "No queue 'none' is declared."


def test_a_queues_rule_is_read_once_and_only_when_asked(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    declare("drinks", lease_ms=77)
    with django_assert_num_queries(2):
        policies = leases._Policies()
        read = [policies(name).lease_ms for name in ("snacks", "drinks", "snacks", "drinks")]
    assert read == [LEASE, 77, LEASE, 77]


@pytest.mark.parametrize("look_ahead", [False, True])
def test_every_move_goes_by_the_clock_when_no_instant_is_given(
    clock: Any, monkeypatch: pytest.MonkeyPatch, look_ahead: bool
) -> None:
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit if look_ahead else 0)
    put("a", "b", "c", "d", at=T)
    clock.now = T + 7
    held = leases.claim("w1", limit=4)
    assert [lease.lease_until for lease in held] == [T + 7 + LEASE] * 4
    clock.now = T + 9
    assert leases.renew_many([("a", 1)]) == [True]
    assert leases.release("b", 1)
    assert leases.record_unknown("c", 1, "bad_ack")
    assert leases.finish("d", 1, "retry")
    assert (row("a")["lease_until"], row("b")["available_at"]) == (T + 9 + LEASE, T + 9)
    assert (row("d")["available_at"], row("d")["changed_at_ms"]) == (T + 1_009, T + 9)
    assert set(Failure.objects.values_list("job_id", "at_ms")) == {("c", T + 9), ("d", T + 9)}
    assert leases.finish_and_claim([Result("a", 1, "ok")], "w2", lease_ms=5)[0] == [True]
    assert (row("a")["changed_at_ms"], row("b")["lease_until"]) == (T + 9, T + 14)


def test_the_instant_of_a_move_is_after_its_wait_for_the_lock(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = database.write

    def write(**more: Any) -> AbstractContextManager[None]:
        clock.advance(100)
        return real(**more)

    put("a", "b")
    monkeypatch.setattr(database, "write", write)
    assert leases.claim("w1")[0].lease_until == T + 100 + LEASE
    assert leases.finish("a", 1, "ok")
    assert leases.finish_and_claim([], "w1")[1][0].lease_until == T + 300 + LEASE
    assert leases.finish_many([Result("b", 1, "ok")]) == [True]
    assert [row(job_id)["changed_at_ms"] for job_id in ("a", "b")] == [T + 200, T + 400]


def test_nothing_to_end_costs_nothing_and_nothing_renewed_neither(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(0):
        assert leases.finish_many(iter([]), now_ms=T) == []
        assert leases.renew_many(iter([]), now_ms=T) == []
        assert leases.release_many(iter([]), now_ms=T) == []


def test_the_state_that_an_end_leads_to_or_none() -> None:
    put("a", "b", max_attempts=1)
    take()
    assert leases.finish_state(Result("a", 1, "retry", "x"), now_ms=T) == "dead"
    assert leases.finish_state(Result("a", 1, "retry", "x"), now_ms=T) is None
    take()
    assert leases.finish_state(Result("b", 1, "ok"), now_ms=T) == "done"


# --- proofs -----------------------------------------------------------------------------------------------------------


def test_each_proof_has_its_own_answer_also_two_of_one_job_and_two_lengths() -> None:
    declare(lease_ms=5_000)
    declare("drinks", lease_ms=9_000)
    put("a")
    put("d", queue="drinks")
    take()
    take(queue="drinks")
    assert leases.renew_many([("a", 0), ("d", 1), ("a", 1), ("a", 2), ("x", 1)], now_ms=T + 1) == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert (row("a")["lease_until"], row("d")["lease_until"]) == (T + 5_001, T + 9_001)
    assert leases.release_many([("a", 2), ("a", 1), ("a", 1), ("d", 0), ("x", 1)], now_ms=T + 2) == [
        False, True, False, False, False,
    ]  # fmt: skip
    assert (stand("a"), stand("d")) == (("pending", "", "", 0, 1), ("leased", "", "", 1, 1))
    assert row("a")["available_at"] == T + 2


def test_a_bad_proof_among_good_ones_moves_none() -> None:
    put("a")
    take()
    before = snapshot()
    for call in (leases.renew_many, leases.release_many):
        with pytest.raises(ValueError, match="token must be"):
            call([("a", 1), ("a", True)], now_ms=T + 1)
    assert snapshot() == before


def test_an_answer_that_proves_nothing_counts_for_the_breaker_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[Any, ...]] = []
    monkeypatch.setattr(gates, "ended", lambda *given: heard.append(given))
    declare("drinks")
    put("a", queue="drinks")
    take(queue="drinks")
    assert [leases.record_unknown("a", 1, code, now_ms=T + 5) for code in ("bad_ack", "exception")] == [True, False]
    assert not leases.record_unknown("x", 1, "bad_ack", now_ms=T + 5)
    assert not leases.record_unknown("a", 0, "bad_ack", now_ms=T + 5)
    assert heard == [("drinks", [Result("a", 1, "unknown", "bad_ack")], T + 5)]
    assert failures("a") == [(1, 1, "unknown", "bad_ack", "w1")]
    assert Failure.objects.get().at_ms == T + 5


# --- one turn -----------------------------------------------------------------------------------------------------------


def turn(outcome: str, code: str, *, at: int, limit: int = 9) -> tuple[list[bool], list[Lease]]:
    return leases.finish_and_claim([Result("p", 1, outcome, code)], "w2", limit=limit, now_ms=at)


def test_an_end_that_opens_the_breaker_keeps_the_same_turn_from_taking_on() -> None:
    declare(breaker_after=2, breaker_wait_ms=WAIT)
    fail_lately()
    put("p", "a", at=T)
    take()
    assert turn("retry", "http_503", at=T) == ([True], [])
    assert gate().breaker == "open"


def test_an_end_that_closes_the_breaker_lets_the_same_turn_take_on() -> None:
    declare(breaker_after=2, breaker_wait_ms=WAIT, budget_ms=10**9)
    fail_lately()
    put("p", "a", "b", at=T)
    take()
    put("q", at=T - 1)
    take(at=T)
    assert leases.finish("q", 1, "retry", code="http_503", now_ms=T)
    assert gate().breaker == "open"
    answers, taken = turn("ok", "", at=T + 5)
    assert (answers, [(lease.id, lease.lease_until) for lease in taken]) == (
        [True],
        [("a", T + 5 + LEASE), ("b", T + 5 + LEASE)],
    )
    assert gate().breaker == "closed"


def test_a_failure_in_good_days_is_no_reason_to_stop() -> None:
    declare(breaker_after=20)
    put("p", "a", at=T)
    take()
    answers, taken = turn("retry", "http_503", at=T)
    assert (answers, [lease.id for lease in taken]) == ([True], ["a"])
    assert (gate().failed_in_row, gate().silent_since_ms) == (1, T)


def test_only_an_end_that_may_have_moved_the_gate_makes_a_turn_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    real = store.standing

    def standing(name: str) -> store.Standing | None:
        looks.append(name)
        return real(name)

    monkeypatch.setattr(store, "standing", standing)
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, _limit: 0)
    put("p", "q", at=T)
    leases.claim("w1", now_ms=T)
    turn("ok", "", at=T)
    assert looks == []
    leases.finish_and_claim([Result("q", 1, "permanent", "http_422")], "w1", now_ms=T)
    assert looks == ["snacks"]
    Gate.objects.create(queue="snacks", failed_in_row=1, silent_since_ms=T - SILENT_MS)
    leases.claim("w1", now_ms=T)
    assert looks == ["snacks"] * 2


def moves(asked: CaptureQueriesContext) -> int:
    return len([query for query in asked if query["sql"].startswith("UPDATE jobs")])


def test_a_plain_turn_that_lost_a_job_goes_on_for_as_many_as_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = jobs.pass_on
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit)
    monkeypatch.setattr(jobs, "pass_on", lambda done, due, *more: real(done, due[1:], *more))
    put("p", "a", "b", "c", "d", at=T)
    with monkeypatch.context() as before:
        before.setattr(jobs, "pass_on", real)
        take()
    answers, taken = leases.finish_and_claim([Result("p", 1, "ok")], "w2", limit=3, lease_ms=5, now_ms=T)
    assert (answers, [(lease.id, lease.lease_until) for lease in taken]) == (
        [True],
        [("b", T + 5), ("c", T + 5), ("a", T + 5)],
    )
    assert [row(job_id)["owner"] for job_id in "abcd"] == ["w2", "w2", "w2", None]


def test_a_queue_that_hands_out_freely_is_looked_ahead_for_from_the_second_turn_on() -> None:
    passing._free.clear()
    put("a", "b", "c", "d", at=T)
    counted = []
    for ended in ("", "a", "b"):
        with CaptureQueriesContext(connection) as asked:
            assert len(leases.finish_and_claim([Result(one, 1, "ok") for one in ended], "w1", now_ms=T)[1]) == 1
        counted.append(moves(asked))
    assert counted == [1, 1, 1], "nothing ended in the first"
    assert [row(job_id)["state"] for job_id in "abcd"] == ["done", "done", "leased", "pending"]


@pytest.mark.parametrize("look_ahead", [False, True])
def test_a_turn_takes_as_many_as_asked_and_ends_what_it_was_told(
    monkeypatch: pytest.MonkeyPatch, look_ahead: bool
) -> None:
    monkeypatch.setattr(passing, "looks_ahead", lambda _queue, limit: limit if look_ahead else 0)
    put("p", "a", "b", "c", at=T)
    take()
    with CaptureQueriesContext(connection) as asked:
        answers, taken = leases.finish_and_claim(
            [Result("p", 1, "ok")], "w2", queue="snacks", limit=2, lease_ms=5, now_ms=T
        )
    assert (answers, taken) == (
        [True],
        [Lease(job_id, "snacks", 7, "{}", 1, 1, T + 5, row(job_id)["deadline"]) for job_id in ("a", "b")],
    )
    assert (stand("p"), row("p")["changed_at_ms"]) == (("done", "", "", 1, 1), T)
    assert [row(job_id)["owner"] for job_id in ("a", "b", "c")] == ["w2", "w2", None]
    assert moves(asked) == (1 if look_ahead else 2)
