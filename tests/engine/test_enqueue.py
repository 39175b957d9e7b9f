"""Accepting orders: durable, once, and the same twice is one order (DESIGN section 4, "enqueue")."""

import pytest
from django.db import IntegrityError, connection

from queue_app.models import Job, Queue, Tombstone
from queue_app.policy.bodies import body_digest
from queue_app.policy.canonical import canonical_json
from queue_app.policy.errors import Conflict, InvalidOrder, QueueClosed, QueueFull
from queue_app.services import queue
from queue_app.store import arrivals
from tests.engine.invariants import check_all
from tests.engine.rows import DAY, T, declare, put, row, snapshot, stand, take

pytestmark = pytest.mark.django_db


def test_an_accepted_order_has_its_queues_budget_and_waits_for_nobody():
    declare("drinks", max_attempts=5, budget_ms=9_000)
    put("a", queue="drinks", order_key="table-4", payload={"b": 1, "a": "ü"}, quantity=3)
    assert {**row("a"), "seq": None} == {
        "id": "a", "seq": None, "queue": "drinks", "order_key": "table-4", "quantity": 3, "payload": '{"a":"ü","b":1}',
        "state": "pending", "reason": "", "code": "", "attempts": 0, "max_attempts": 5, "token": 0, "owner": None,
        "lease_until": None, "available_at": T, "deadline": T + 9_000, "created_at_ms": T, "changed_at_ms": T,
        "redriven": 0, "batch": None, "waited_ms": 0,
    }  # fmt: skip
    check_all(["a"])


def test_an_order_may_bring_its_own_budget():
    put("a", max_attempts=1, deadline_ms=T + 5)
    assert (row("a")["max_attempts"], row("a")["deadline"]) == (1, T + 5)


def test_the_clock_stamps_an_order_when_no_instant_is_given(clock):
    queue.enqueue("a", 1)
    assert (row("a")["created_at_ms"], row("a")["deadline"]) == (clock.now, clock.now + DAY)


def test_the_same_order_again_is_a_duplicate_and_nothing_changes():
    put("a", payload={"x": 1, "y": [1, {"q": None}]})
    before = snapshot()
    again = {"y": [1, {"q": None}], "x": 1}
    assert queue.enqueue("a", 7, payload=again, now_ms=T + 1) == "duplicate"
    assert queue.enqueue("a", 7, payload=again, max_attempts=9, deadline_ms=T + 9, now_ms=T + 1) == "duplicate"
    assert snapshot() == before


def test_it_is_a_duplicate_in_whatever_state_the_first_one_stands():
    put("done")
    assert queue.finish("done", take().token, "ok", now_ms=T)
    put("dead")
    assert queue.finish("dead", take().token, "permanent", now_ms=T)
    put("leased")
    take()
    before = snapshot()
    assert [queue.enqueue(job_id, 7, now_ms=T) for job_id in ("done", "dead", "leased")] == ["duplicate"] * 3
    assert snapshot() == before


OTHER_BODIES = [
    {"quantity": 8},
    {"queue": "drinks"},
    {"order_key": "k"},
    {"payload": {"n": 1.0}},
    {"payload": {"n": True}},
    {"payload": {"n": "1"}},
    {"payload": {"n": 1, "m": None}},
    {"payload": {}},
    {"payload": None},
]


@pytest.mark.parametrize("other", OTHER_BODIES, ids=str)
def test_the_same_id_with_another_body_is_a_conflict_and_nothing_changes(other):
    declare("drinks")
    put("a", payload={"n": 1})
    before = snapshot()
    body = {"quantity": 7, "payload": {"n": 1}, **other}
    with pytest.raises(Conflict, match=r"^The id a is known with another queue, quantity, payload or order_key\.$"):
        queue.enqueue("a", now_ms=T, **body)
    assert snapshot() == before


def test_ids_that_differ_in_case_are_two_orders():
    put("a", "A")
    assert Job.objects.count() == 2


def test_the_id_of_a_removed_order_is_known_for_ever():
    digest = body_digest("snacks", 7, "{}", "")
    Tombstone.objects.create(job_id="old", body_digest=digest, quantity=7, done_at_ms=T, removed_at_ms=T)
    assert queue.enqueue("old", 7, now_ms=T) == "duplicate"
    with pytest.raises(Conflict):
        queue.enqueue("old", 8, now_ms=T)
    assert not Job.objects.exists()


def test_a_deadline_already_past_is_accepted_and_buried_at_the_first_claim():
    put("late", deadline_ms=0)
    assert stand("late") == ("pending", "", "", 0, 0)
    assert queue.claim("w1", now_ms=T) == []
    assert stand("late") == ("dead", "deadline", "", 0, 1)


@pytest.mark.parametrize("name", ["unknown", "Snacks", "snacks ", "", "a\0b", "\ud800", "s" * 33, 5, None, b"snacks"])
def test_an_undeclared_or_impossible_queue_is_refused(name):
    with pytest.raises(InvalidOrder):
        queue.enqueue("a", 1, queue=name, now_ms=T)
    assert not Job.objects.exists()


def test_a_closed_queue_takes_nothing_new_but_knows_what_it_has():
    put("a")
    Queue.objects.update(accepting=False)
    with pytest.raises(QueueClosed, match=r"^The queue snacks does not accept orders now\.$"):
        queue.enqueue("b", 1, now_ms=T)
    assert queue.enqueue("a", 7, now_ms=T) == "duplicate"
    with pytest.raises(Conflict):
        queue.enqueue("a", 8, now_ms=T)
    assert Job.objects.count() == 1


def test_a_paused_queue_still_accepts():
    Queue.objects.update(paused=True)
    put("a")


def test_a_full_queue_takes_the_next_order_only_when_one_has_ended():
    declare(max_unfinished=2)
    put("a", "b")
    with pytest.raises(QueueFull, match=r"^The queue snacks holds 2 unfinished orders, its limit\.$"):
        queue.enqueue("c", 1, now_ms=T)
    assert queue.enqueue("b", 7, now_ms=T) == "duplicate"
    queue.finish("a", take().token, "permanent", now_ms=T)  # quarantine is no place in the queue
    put("c")
    with pytest.raises(QueueFull):
        queue.enqueue("d", 1, now_ms=T)


# --- many -----------------------------------------------------------------------------------------------------------


def test_many_orders_get_an_answer_each_in_order_and_a_refusal_stops_nobody():
    declare("one", max_unfinished=1)
    declare("shut", accepting=False)
    put("known")
    answers = queue.enqueue_many(
        [
            {"id": "a", "quantity": 1},
            {"id": "a", "quantity": 1},
            {"id": "a", "quantity": 2},
            {"id": "b", "quantity": 0},
            {"id": "known", "quantity": 7},
            {"id": "known", "quantity": 7, "payload": {"x": 1}},
            {"id": "c", "quantity": 1, "queue": "one"},
            {"id": "d", "quantity": 1, "queue": "one"},
            {"id": "e", "quantity": 1, "queue": "shut"},
            {"id": "f", "quantity": 1, "queue": "none"},
            {"id": "g", "quantity": 1, "state": "done"},
            {"quantity": 1},
            {},
            None,
            5,
            [("id", "x")],
            {1: 2, "id": "h", "quantity": 1},
            {"id": "z", "quantity": 1, "payload": {}},
        ],
        now_ms=T,
    )
    kinds = [answer if isinstance(answer, str) else type(answer).__name__ for answer in answers]
    bad = "InvalidOrder"
    assert kinds == [
        "accepted", "duplicate", "Conflict", bad, "duplicate", "Conflict", "accepted", "QueueFull", "QueueClosed",
        bad, bad, bad, bad, bad, bad, bad, bad, "accepted",
    ]  # fmt: skip
    assert set(Job.objects.values_list("id", flat=True)) == {"known", "a", "c", "z"}
    assert all(str(answer).endswith(".") for answer in answers if not isinstance(answer, str))


def test_a_refused_first_line_leaves_the_place_to_a_good_second_one():
    answers = queue.enqueue_many([{"id": "a", "quantity": 1, "queue": "none"}, {"id": "a", "quantity": 1}], now_ms=T)
    assert isinstance(answers[0], InvalidOrder)
    assert answers[1] == "accepted"
    assert row("a")["queue"] == "snacks"


def test_nothing_asked_is_nothing_answered():
    assert queue.enqueue_many([]) == []


def test_orders_keep_the_order_of_their_acceptance():
    queue.enqueue_many([{"id": job_id, "quantity": 1} for job_id in ("m", "a", "z", "b")], now_ms=T)
    put("c")
    assert list(Job.objects.order_by("seq").values_list("id", flat=True)) == ["m", "a", "z", "b", "c"]
    assert [lease.id for lease in queue.claim("w1", limit=9, now_ms=T)] == ["m", "a", "z", "b", "c"]


def test_a_batch_may_be_larger_than_what_one_statement_can_name():
    with connection.cursor():  # SQLite's own limit is 250,000 names here; the lowered one is that of other builds
        limit = connection.connection.setlimit(9, 999) if connection.vendor == "sqlite" else None
    try:
        orders = [{"id": f"n{number}", "quantity": 1} for number in range(2_500)]
        assert queue.enqueue_many(orders, now_ms=T) == ["accepted"] * 2_500
        assert queue.enqueue_many(orders, now_ms=T) == ["duplicate"] * 2_500
        results = [queue.Result(f"n{number}", 1, "ok") for number in range(2_500)]
        assert queue.finish_many(results, now_ms=T) == [False] * 2_500
    finally:
        if limit is not None:
            connection.connection.setlimit(9, limit)


PAYLOADS = [
    {}, {"a": "\\"}, {"a": "\\N", "b": "\\."}, {"a": "\t\n\r\b\f\u2028\x7f"}, {"a": 'x"y\'z,{}'},
    {"a": "\U0001f35f "}, {"\\t": [1, 1.5, None, True, "%s %% ?"]},
]  # fmt: skip


@pytest.mark.parametrize("by_copy", [False, True])
def test_whatever_an_order_contains_is_kept_as_its_canonical_text(monkeypatch, by_copy):
    monkeypatch.setattr(arrivals, "ROWS_BY_COPY", 1 if by_copy else 1_000)
    orders = [{"id": f"n{place}", "quantity": 1, "payload": payload} for place, payload in enumerate(PAYLOADS)]
    assert queue.enqueue_many(orders, now_ms=T) == ["accepted"] * len(PAYLOADS)
    stored = Job.objects.order_by("seq").values_list("payload", flat=True)
    assert list(stored) == [canonical_json(payload) for payload in PAYLOADS]
    assert queue.enqueue_many(orders, now_ms=T) == ["duplicate"] * len(PAYLOADS)
    assert [lease.payload for lease in queue.claim("w1", limit=99, now_ms=T)] == PAYLOADS
    check_all()


@pytest.mark.parametrize("by_copy", [False, True])
def test_an_id_that_another_host_accepted_between_look_and_insert_is_passed_over(monkeypatch, by_copy):
    """Differs because SQLite's write transaction lets nobody in between: there such a row means a mistake, and nothing
    is written; PostgreSQL's unique key decides."""
    monkeypatch.setattr(arrivals, "ROWS_BY_COPY", 1 if by_copy else 1_000)
    put("a", "b")
    real = arrivals.known_bodies
    looks = iter([lambda _ids: {}, real])
    monkeypatch.setattr(arrivals, "known_bodies", lambda ids: next(looks)(ids))
    orders = [{"id": "c", "quantity": 7}, {"id": "b", "quantity": 8}, {"id": "a", "quantity": 7}]
    if connection.vendor == "sqlite":
        with pytest.raises(IntegrityError, match="this order exists"):
            queue.enqueue_many(orders, now_ms=T)
        assert Job.objects.count() == 2
        return
    accepted, conflict, duplicate = queue.enqueue_many(orders, now_ms=T)
    assert (accepted, type(conflict), duplicate) == ("accepted", Conflict, "duplicate")
    assert Job.objects.count() == 3
    check_all("abc")


# --- what is refused before anything is asked (the list of bad inputs) -----------------------------------------------


BAD_ORDERS = [
    {"id": ""}, {"id": "a\n"}, {"id": "a" * 65}, {"id": "\u0430"}, {"id": "\ud800"}, {"id": "a\0b"}, {"id": 5},
    {"id": None}, {"id": b"a"}, {"id": "x" * 10_000_000}, {"quantity": True}, {"quantity": 1.0}, {"quantity": "1"},
    {"quantity": 0}, {"quantity": 1_000_001}, {"quantity": 10**5000}, {"quantity": float("nan")}, {"quantity": None},
    {"payload": []}, {"payload": "x"}, {"payload": {"a": float("inf")}}, {"payload": {"a": "\0"}},
    {"payload": {"\ud800": 1}}, {"payload": {1: 1}}, {"payload": {"a": "x" * 16_384}}, {"payload": {"a": {1, 2}}},
    {"order_key": "a b"}, {"order_key": None}, {"order_key": "\0"}, {"max_attempts": 0}, {"max_attempts": True},
    {"max_attempts": 101}, {"max_attempts": "3"}, {"deadline_ms": -1}, {"deadline_ms": 1.5}, {"deadline_ms": 10**15},
    {"deadline_ms": 10**400},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_ORDERS, ids=lambda bad: next(iter(bad)))
def test_a_bad_order_is_one_sentence_and_no_query(bad, django_assert_num_queries):
    with django_assert_num_queries(0), pytest.raises(InvalidOrder) as refused:
        queue.enqueue(**{"id": "a", "quantity": 1, **bad})
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert sentence.isprintable()
    assert sentence.isascii()
    assert len(sentence) < 300


def test_a_payload_that_is_too_deep_is_refused_without_a_crash():
    deep: dict = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(InvalidOrder, match="nested deeper"):
        queue.enqueue("a", 1, payload=deep)


def test_the_largest_payload_and_the_longest_id_pass():
    put("a" * 64, payload={"a": "x" * (16_384 - len('{"a":""}'))}, quantity=1_000_000)
    assert len(row("a" * 64)["payload"]) == 16_384


@pytest.mark.parametrize("at", [-1, True, 1.5, "5", 10**15, 2**63], ids=repr)
def test_an_impossible_instant_of_the_caller_is_refused_before_any_write(at):
    with pytest.raises(ValueError, match="now_ms"):
        queue.enqueue("a", 1, now_ms=at)
    assert not Job.objects.exists()
