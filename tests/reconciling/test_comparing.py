"""Orders of every state against what a receiver knows: each difference is found once, and what only moves is none."""

import random

import pytest
from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import AuditEvent, Job, Reconciliation, Tombstone
from queue_app.policy.errors import NotAllowed
from queue_app.policy.ledgers import Totals
from queue_app.policy.reconciling import differences
from queue_app.policy.windows import DAY_MS
from queue_app.reads import comparisons
from queue_app.services import queue, reconciling
from queue_app.services.reconciling import Result
from queue_app.services.verification import verify
from tests.conftest import Clock
from tests.reads.stories import accept, deliver, exhaust, refuse
from tests.reconciling.conftest import Book, all_applied, applied, tried

pytestmark = pytest.mark.django_db


def prune(job_id: str) -> None:
    """What housekeeping leaves of a delivered order."""
    row = Job.objects.get(pk=job_id)
    Tombstone.objects.create(
        job_id=job_id,
        body_digest="0" * 64,
        quantity=row.quantity,
        done_at_ms=row.changed_at_ms,
        removed_at_ms=row.changed_at_ms,
    )
    row.delete()


def every_state() -> None:
    """done-1..3, dead-1..2, wait-1..2, leased-1, pruned-1..2."""
    for job_id in ("done-1", "done-2", "done-3", "pruned-1", "pruned-2"):
        accept([job_id])
        deliver(job_id)
    for job_id in ("pruned-1", "pruned-2"):
        prune(job_id)
    for job_id in ("dead-1", "dead-2"):
        accept([job_id])
        refuse(job_id)
    accept(["leased-1"])
    assert [lease.id for lease in queue.claim("w")] == ["leased-1"]
    accept(["wait-1", "wait-2"])


SETTLED = ("done-1", "done-2", "done-3", "pruned-1", "pruned-2")


def test_what_agrees_is_no_difference_and_the_sums_of_both_sides_are_told(clock: Clock, book: Book) -> None:
    every_state()
    book.put(*all_applied(SETTLED), tried("dead-1"))
    found = reconciling.compare(book)
    assert (found.compared, found.differing, found.kinds, found.examples) == (10, 0, {}, ())
    assert found.here == {"done": 3, "done_pieces": 5, "dead": 2, "pending": 2, "leased": 1, "pruned": 2}
    assert found.there == {"keys": 5, "stock": 5, "writes": 5, "requests": 6, "rows": 6}
    assert found.passing == {"in_flight": 0, "forgotten": 0}


@pytest.mark.parametrize("bite", [1, 2, 3, 400])
def test_every_kind_is_found_at_any_size_of_page(bite: int, clock: Clock, book: Book) -> None:
    every_state()
    clock.advance(31_000)  # the lease of leased-1 is over
    accept(["token-0"])
    book.put(
        *all_applied(("done-1", "pruned-1", "dead-1", "leased-1", "stranger-2")),
        tried("done-2"),
        applied("done-3", 2),
        tried("stranger-1"),
        tried("dead-2", requests=3),
        applied("token-0", requests=1),
    )
    found = reconciling.compare(book, bite=bite)
    assert sorted(found.examples) == [
        ("dead_with_effect", "dead-1"),
        ("leased_with_effect", "leased-1"),
        ("more_requests", "dead-2"),
        ("more_requests", "token-0"),
        ("no_effect", "done-2"),
        ("no_effect", "pruned-2"),
        ("pending_with_effect", "token-0"),
        ("quantity", "done-3"),
        ("unknown_here", "stranger-1"),
        ("unknown_here", "stranger-2"),
    ]
    assert sum(found.kinds.values()) == 10
    assert (found.compared, found.differing) == (13, 9)  # token-0 differs in two ways


def test_one_missing_and_one_double_behind_right_totals_are_both_found(clock: Clock, book: Book) -> None:
    for job_id in ("a", "b", "c"):
        accept([job_id])
        deliver(job_id)
    book.put(*all_applied("ac"))
    book.given = Totals(keys=2, stock=3, writes=3, requests=3)  # a was written twice: three writes, three pieces
    found = reconciling.compare(book)
    assert found.kinds == {"no_effect": 1, "double_writes": 1}
    assert found.examples == (("no_effect", "b"),)
    assert found.differing == 2


def test_an_order_that_is_delivered_between_the_two_looks_is_no_difference(clock: Clock, book: Book) -> None:
    accept(["a"])

    def meanwhile(_after: str | None) -> None:  # our side was read already: pending, token 0
        if not book.entries:
            clock.advance(5)
            deliver("a")
            book.put(applied("a", at_ms=clock.now))

    book.between = meanwhile
    found = reconciling.compare(book)
    assert (found.differing, found.passing) == (0, {"in_flight": 0, "forgotten": 0})


def test_an_order_that_came_after_its_place_in_the_walk_is_no_stranger(clock: Clock, book: Book) -> None:
    accept(["z"])
    deliver("z")
    book.put(applied("z"))

    def meanwhile(_after: str | None) -> None:
        if "b" not in book.entries:
            accept(["b"])
            deliver("b")
            book.put(applied("b"))

    book.between = meanwhile
    assert reconciling.compare(book).differing == 0


def test_an_effect_that_came_after_its_page_is_asked_for_alone(clock: Clock, book: Book) -> None:
    accept(["a", "b", "c"])
    for job_id in "abc":
        queue.finish(job_id, queue.claim("w")[0].token, "ok") if job_id != "b" else queue.claim("w", lease_ms=60_000)
    book.put(applied("a"), applied("c"))
    seen = reconciling.comparisons.bite

    def slow(
        after: str | None, limit: int
    ) -> list:  # the page is read by now; then b is delivered, then it is read here
        if after == "a":
            clock.advance(7)
            queue.finish("b", 1, "ok")
            book.put(applied("b", at_ms=clock.now))
        return seen(after, limit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparisons, "bite", slow)
        # the receiver's whole list in one page, our side one by one
        pages = book.page
        patch.setattr(book, "page", lambda after, limit: pages(after, 400 if after is None else limit))
        found = reconciling.compare(book, bite=1)
    assert found.differing == 0
    assert len(book.asked) == 2  # once from the beginning, once for b


def test_a_delivery_that_runs_is_in_flight_and_is_judged_next_time(clock: Clock, book: Book) -> None:
    accept(["a"])
    queue.claim("w", lease_ms=30_000)
    book.put(applied("a"))
    first = reconciling.compare(book)
    assert (first.differing, first.passing["in_flight"]) == (0, 1)
    clock.advance(30_000)
    assert reconciling.compare(book).kinds == {"leased_with_effect": 1}


def test_what_the_receiver_may_have_forgotten_is_counted_apart(clock: Clock, book: Book) -> None:
    for job_id in ("old", "old-pruned"):
        accept([job_id])
        deliver(job_id)
    prune("old-pruned")
    clock.advance(90 * DAY_MS)
    found = reconciling.compare(book)
    assert (found.differing, found.passing["forgotten"]) == (0, 2)


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_is_judged_as_a_plain_loop_over_all_ids_would(seed: int, clock: Clock, book: Book) -> None:
    dice = random.Random(seed)
    ids = [
        f"{dice.choice('Aa0_')[:1].replace('_', 'z')}{dice.choice(['', '-', '.', ':', '_', 'B', 'b'])}{n}"
        for n in range(30)
    ]
    for job_id in ids:
        if dice.random() < 0.8:
            accept([job_id], max_attempts=1)
            fate = dice.choice([deliver, deliver, refuse, exhaust, lambda _id: None])
            if fate in (deliver, refuse, exhaust) and Job.objects.filter(state="pending").count() == 1:
                fate(job_id)
        if Job.objects.filter(pk=job_id, state="done").exists() and dice.random() < 0.3:
            prune(job_id)
        if dice.random() < 0.7:
            book.put(dice.choice([applied, tried])(job_id, dice.choice([1, 1, 1, 2]), requests=dice.randint(1, 3)))
    here = comparisons.orders(ids)
    expected = {
        (kind, job_id)
        for job_id in set(ids)
        for kind in differences(here.get(job_id), book.entries.get(job_id), clock.now)
    }
    results = [reconciling.compare(book, bite=bite, examples=100) for bite in (1, 2, 5, 400)]
    for found in results:
        assert set(found.examples) == expected
        assert found.differing == len({job_id for _kind, job_id in expected})
        assert found.compared == len(here.keys() | book.entries.keys())


def test_examples_are_bounded_for_each_kind_and_in_all(clock: Clock, book: Book) -> None:
    book.put(*(tried(f"s{n:03}") for n in range(150)))
    assert [len(reconciling.compare(book, examples=n).examples) for n in (0, 10, 100, 1_000)] == [0, 10, 100, 100]
    assert reconciling.compare(book, examples=0).kinds == {"unknown_here": 150}


def test_however_much_differs_only_a_handful_is_held_at_a_time(
    clock: Clock, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.put(*(tried(f"s{n:03}") for n in range(450)))
    asked: list[int] = []
    orders = comparisons.orders

    def counted(ids):
        asked.append(len(ids))
        return orders(ids)

    monkeypatch.setattr(comparisons, "orders", counted)
    assert reconciling.compare(book).kinds == {"unknown_here": 450}
    assert asked == [200, 200, 50]


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_receiver_is_asked(clock: Clock, book: Book) -> None:
    accept(["a", "b"])
    book.put(*all_applied("ab"))
    open_then: list[bool] = []
    book.between = lambda _after: open_then.append(connection.in_atomic_block or not connection.get_autocommit())
    reconciling.compare(book, bite=1)
    assert open_then
    assert not any(open_then)


# --- keeping it -----------------------------------------------------------------------------------------------------


def a_result(clock: Clock, book: Book) -> Result:
    accept(["a"])
    deliver("a")
    return reconciling.compare(book)


def test_a_comparison_is_kept_with_its_event_and_the_chain_stays_whole(
    clock: Clock, book: Book, operator: User
) -> None:
    found = a_result(clock, book)
    first = reconciling.record(found)
    second = reconciling.record(found, operator)
    kept = comparisons.latest(5)
    assert [(row.id, row.by, row.differing) for row in kept] == [(second, "oda", 1), (first, "", 1)]
    assert (kept[0].kinds, kept[0].examples) == ({"no_effect": 1}, (("no_effect", "a"),))
    assert kept[0].there == found.there
    assert kept[0].here == found.here
    events = AuditEvent.objects.filter(action="reconcile").order_by("seq").values_list("name", "source", "target")
    assert list(events) == [("reconcile", "cli", "receiver"), ("oda", "cli", "receiver")]
    assert verify().whole


def test_without_its_event_no_comparison_is_kept(clock: Clock, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    found = a_result(clock, book)

    def refuse_it(*_events: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(reconciling.chain, "append", refuse_it)
    with pytest.raises(RuntimeError):
        reconciling.record(found)
    assert not Reconciliation.objects.exists()


def test_somebody_without_a_role_keeps_none_and_the_attempt_is_recorded(clock: Clock, book: Book) -> None:
    nobody = User.objects.create_user("nobody")
    with pytest.raises(NotAllowed):
        reconciling.record(a_result(clock, book), nobody)
    assert not Reconciliation.objects.exists()
    assert AuditEvent.objects.filter(action="refused", name="nobody").count() == 1
