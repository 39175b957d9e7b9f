"""One turn of a worker: what each answer of `deliver` leads to (DESIGN section 4, "run_once")."""

import pytest
from django.db import DatabaseError

from queue_app.policy.errors import BadAck, Cancelled, InvalidOrder, Permanent, Retryable
from queue_app.services import queue, runs
from tests.engine.invariants import check_all
from tests.engine.rows import LEASE, T, failures, put, row, snapshot, stand, take

pytestmark = pytest.mark.django_db


def turn(answer, at=T, **more):
    """One turn in which the delivery returns or raises `answer`."""

    def deliver(lease):
        if isinstance(answer, BaseException):
            raise answer
        return answer(lease) if callable(answer) else answer

    return queue.run_once(deliver, owner="w1", now_ms=at, **more)


def test_nothing_due_is_none_and_nobody_is_asked():
    assert turn(AssertionError("called")) is None
    put("a", at=T + 1)
    assert turn(AssertionError("called")) is None


def test_the_delivery_sees_the_lease_while_no_transaction_is_open(django_db_blocker):
    seen = []
    put("a", payload={"item": "chips"})
    turn(lambda lease: seen.append(lease) or True)
    (lease,) = seen
    assert (lease.id, lease.quantity, lease.payload, lease.token) == ("a", 7, {"item": "chips"}, 1)


ANSWERS = [
    (True, "done", ("done", "", "", 1, 1), []),
    (Retryable("http_503"), "pending", ("pending", "", "", 1, 1), [(1, 1, "retry", "http_503", "w1")]),
    (Permanent("http_422"), "dead", ("dead", "permanent", "http_422", 1, 1), [(1, 1, "permanent", "http_422", "w1")]),
    (Cancelled(), "pending", ("pending", "", "", 0, 1), []),
]


@pytest.mark.parametrize(("answer", "says", "stands", "rows"), ANSWERS, ids=lambda value: type(value).__name__)
def test_an_answer_moves_the_job_and_names_its_new_state(answer, says, stands, rows):
    put("a")
    assert turn(answer) == says
    assert (stand("a"), failures("a")) == (stands, rows)
    check_all(["a"])


def test_the_last_retry_is_dead():
    put("a", max_attempts=1)
    assert turn(Retryable("http_503")) == "dead"


def test_the_receivers_wish_reaches_the_wait():
    put("a")
    turn(Retryable("http_429", 90_000))
    assert row("a")["available_at"] == T + 90_000


class Yes:
    """Truthy and equal to True, and still no acknowledgement."""

    def __eq__(self, other):
        return True

    def __bool__(self):
        return True

    __hash__ = None


NOT_TRUE = [1, 1.0, "ok", "True", "true", [True], {"ok": True}, (True,), Yes(), object(), False, None, 0, "", [], b"ok"]


@pytest.mark.parametrize("answer", NOT_TRUE, ids=lambda answer: ascii(answer)[:12])
def test_only_true_itself_is_success(answer):
    put("a")
    with pytest.raises(BadAck):
        turn(answer)
    assert stand("a") == ("leased", "", "", 1, 1)
    assert failures("a") == [(1, 1, "unknown", "bad_ack", "w1")]
    check_all(["a"])


UNEXPECTED = [
    ValueError("secret body"), KeyError("x"), RuntimeError(), MemoryError(), RecursionError(), KeyboardInterrupt(),
    SystemExit(73), GeneratorExit(), DatabaseError("locked"), BaseException("odd"), TimeoutError(), AssertionError(),
]  # fmt: skip


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda error: type(error).__name__)
def test_an_unexpected_exception_reaches_the_caller_and_the_job_stays_leased(error):
    put("a", "b")
    with pytest.raises(type(error)) as caught:
        turn(error)
    assert caught.value is error
    assert stand("a") == ("leased", "", "", 1, 1)
    assert failures("a") == [(1, 1, "unknown", "exception", "w1")]
    assert turn(True) == "done"  # the next job goes on
    assert stand("b")[0] == "done"
    assert take("w2", at=T + LEASE).token == 2
    check_all(["a", "b"])


@pytest.mark.parametrize(("given", "kept"), [("wrong_id", "wrong_id"), ("Body: <b>", "bad_ack"), (None, "bad_ack")])
def test_a_bad_ack_keeps_its_code_if_it_is_one(given, kept):
    put("a")
    with pytest.raises(BadAck):
        turn(BadAck(given))
    assert failures("a") == [(1, 1, "unknown", kept, "w1")]


@pytest.mark.parametrize("error", [Retryable("Not A Code"), Permanent(None), Retryable("ok", 1.5), Permanent("x" * 49)])
def test_an_adapter_that_speaks_nonsense_proves_nothing(error):
    put("a")
    with pytest.raises(ValueError, match=r"\.$"):
        turn(error)
    assert stand("a") == ("leased", "", "", 1, 1)
    assert failures("a") == [(1, 1, "unknown", "exception", "w1")]


@pytest.mark.parametrize("answer", [True, Retryable("x"), Permanent("x"), Cancelled()], ids=lambda a: type(a).__name__)
def test_a_job_that_was_taken_over_meanwhile_is_lost(answer):
    put("a")

    def deliver(lease):
        take("w2", at=T + LEASE)
        if answer is not True:
            raise answer
        return True

    assert queue.run_once(deliver, owner="w1", now_ms=T) == "lost"
    assert stand("a") == ("leased", "", "", 2, 2)
    assert row("a")["owner"] == "w2"


def test_evidence_that_cannot_be_written_hides_nothing(monkeypatch):
    def refuse(*_args, **_more):
        raise DatabaseError("disk full")

    put("a")
    monkeypatch.setattr(runs, "record_unknown", refuse)
    with pytest.raises(ZeroDivisionError):
        turn(lambda _lease: 1 / 0)
    assert stand("a") == ("leased", "", "", 1, 1)


def test_a_turn_takes_one_job_with_the_lease_that_was_asked_for():
    put("a", "b")
    seen = []
    turn(lambda lease: seen.append(lease.lease_until) or True, lease_ms=77)
    assert seen == [T + 77]
    assert stand("b")[0] == "pending"


@pytest.mark.parametrize("more", [{"queue": "none"}, {"lease_ms": 0}])
def test_a_turn_that_cannot_be_meant_asks_nobody(more):
    put("a")
    before = snapshot()
    with pytest.raises((InvalidOrder, ValueError)):
        turn(AssertionError("called"), **more)
    assert snapshot() == before
