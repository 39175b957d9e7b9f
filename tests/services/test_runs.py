"""What a worker's turn hands on: every argument, every field, every flag and the log; the database is not asked."""

from contextlib import nullcontext
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from structlog.testing import capture_logs

from queue_app.policy.attempts import Lease, Result
from queue_app.policy.errors import BadAck, Cancelled, Permanent, Retryable
from queue_app.services import runs
from queue_app.services.runs import Held, Signal
from tests.engine.rows import T

LEASE = Lease("a-1", "snacks", 7, '{"x":1}', 2, 5, T + 30_000, T + 99_000)
Calls = list[tuple[Any, ...]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the engine is asked; every answer is a good one."""
    asked: Calls = []
    answers = {"claim": [LEASE], "finish_state": "done", "record_unknown": True, "release": True}
    for name, answer in answers.items():

        def call(*given: Any, name: str = name, answer: object = answer, **more: Any) -> object:
            asked.append((name, given, more))
            return answer

        monkeypatch.setattr(runs, name, call)
    return asked


def test_a_lease_in_a_hand_is_the_lease_with_a_signal_of_its_own() -> None:
    one, other = runs.held(LEASE, 77), runs.held(LEASE, 77)
    assert [getattr(one, field.name) for field in fields(LEASE)] == [getattr(LEASE, f.name) for f in fields(LEASE)]
    assert (one.signal.cancelled, one.signal.lost, one.signal.good_until_ms) == (False, False, 77)
    assert one == other, "who holds it is no part of what it is"
    assert one.signal is not other.signal
    assert "signal" not in repr(one)
    assert isinstance(one, Lease)
    with pytest.raises(FrozenInstanceError):
        one.token = 6


@pytest.mark.parametrize(("cancelled", "lost"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_checkpoint_lets_pass_who_was_told_nothing(cancelled: bool, lost: bool) -> None:
    one = runs.held(LEASE, 77)
    one.checkpoint()
    one.signal.cancelled, one.signal.lost = cancelled, lost
    assert one.lost is lost
    with pytest.raises(Cancelled) if cancelled or lost else nullcontext():
        one.checkpoint()


def test_a_signal_has_no_other_flags() -> None:
    with pytest.raises(AttributeError):
        Signal(1).paused = True
    assert issubclass(Held, Lease)


ASKS = [
    ({}, {"queue": "snacks", "lease_ms": None, "now_ms": None}),
    ({"queue": "drinks", "lease_ms": 5, "now_ms": T}, {"queue": "drinks", "lease_ms": 5, "now_ms": T}),
]


@pytest.mark.parametrize(("given", "claims"), ASKS)
def test_a_turn_claims_one_as_it_was_asked_and_ends_it_at_the_same_instant(
    calls: Calls, given: dict[str, Any], claims: dict[str, Any]
) -> None:
    at = {"now_ms": claims["now_ms"]}
    seen: list[Lease] = []

    def deliver(lease: Lease) -> bool:
        seen.append(lease)
        return True

    assert runs.run_once(deliver, owner="w1", **given) == "done"
    assert seen == [LEASE]
    assert calls == [("claim", ("w1",), claims), ("finish_state", (Result("a-1", 5, "ok"),), at)]


def test_a_turn_without_a_lease_asks_nobody(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "claim", lambda *_owner, **_more: [])
    assert runs.run_once(lambda _lease: pytest.fail("asked"), owner="w1") is None
    assert calls == []


def raising(answer: object) -> Any:
    def deliver(_lease: Lease) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return deliver


ENDS = [
    (True, Result("a-1", 5, "ok", "", None)),
    (Retryable("http_503"), Result("a-1", 5, "retry", "http_503", None)),
    (Retryable("http_429", 90), Result("a-1", 5, "retry", "http_429", 90)),
    (Permanent("http_422"), Result("a-1", 5, "permanent", "http_422", None)),
]


@pytest.mark.parametrize(("answer", "result"), ENDS)
def test_an_answer_is_a_result_of_this_very_lease(calls: Calls, answer: object, result: Result) -> None:
    assert runs.answer_of(raising(answer), LEASE) == runs.outcome_of(raising(answer), LEASE) == result
    assert calls == []
    assert runs.run_lease(raising(answer), LEASE, now_ms=T) == "done"
    assert calls == [("finish_state", (result,), {"now_ms": T})]


def test_what_was_not_begun_is_given_back_at_that_instant(calls: Calls) -> None:
    assert runs.outcome_of(raising(Cancelled()), LEASE, now_ms=T) is None
    assert calls == []
    assert runs.run_lease(raising(Cancelled()), LEASE, now_ms=T) == "pending"
    assert calls == [("release", ("a-1", 5), {"now_ms": T})]


@pytest.mark.parametrize("answer", [True, Cancelled()], ids=["ended", "given back"])
def test_who_lost_the_lease_hears_it(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    monkeypatch.setattr(runs, "finish_state", lambda *_given, **_more: None)
    monkeypatch.setattr(runs, "release", lambda *_given, **_more: False)
    assert runs.run_lease(raising(answer), LEASE) == "lost"


UNKNOWN = [
    (BadAck("wrong_id"), "wrong_id"), (BadAck("Body: <b>"), "bad_ack"), (BadAck(), "bad_ack"), (False, "bad_ack"),
    (ValueError("secret"), "exception"), (KeyboardInterrupt(), "exception"), (Retryable("Not A Code"), "exception"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "code"), UNKNOWN)
def test_what_proves_nothing_is_kept_at_once_and_goes_on_to_the_caller(calls: Calls, answer: object, code: str) -> None:
    kind: type[BaseException] = BadAck
    if isinstance(answer, BaseException):
        kind = ValueError if isinstance(answer, Retryable) else type(answer)
    for call in (runs.outcome_of, runs.run_lease):
        with pytest.raises(kind):
            call(raising(answer), LEASE, now_ms=T)
    assert calls == [("record_unknown", ("a-1", 5, code), {"now_ms": T})] * 2
    with pytest.raises(kind):
        runs.answer_of(raising(answer), LEASE)
    assert len(calls) == 2, "only the owner of the database keeps it"


def test_evidence_that_cannot_be_written_is_logged_with_its_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_more: object) -> None:
        raise OSError("secret path")

    monkeypatch.setattr(runs, "record_unknown", refuse)
    with capture_logs() as said:
        runs.keep_unknown(LEASE, KeyError("secret"))
    entry = {"event": "unknown_outcome_not_recorded", "job": "a-1", "token": 5, "code": "OSError"}
    assert said == [{**entry, "log_level": "error"}]


def test_what_ends_the_process_is_not_hidden_by_its_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_given: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "record_unknown", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runs.keep_unknown(LEASE, KeyError("x"))


CODES = [
    (BadAck("http_404"), "http_404"), (BadAck(), "bad_ack"), (BadAck("x" * 48), "x" * 48), (BadAck("x" * 49), "bad_ack"),
    (KeyError("http_404"), "exception"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "code"), CODES)
def test_the_code_of_what_proves_nothing(error: BaseException, code: str) -> None:
    assert runs.code_of(error) == code
