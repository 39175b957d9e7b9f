"""Housekeeping of the counters: fewer rows, the same sums."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.models import Max, Model, Sum

from queue_app.models import Count, Flow, Result, Tally
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS, MINUTES_KEPT_MS
from queue_app.services import life_signs, queue
from queue_app.store import counters
from tests.conftest import Clock
from tests.demo.running import eventually
from tests.engine.rows import declare, kill, put, take
from tests.store.rows import plain_door, redrive

FIGURES: dict[type[Model], tuple[tuple[str, ...], list[Any]]] = {
    Count: (("queue", "state", "stage", "reason", "code"), [Sum("n"), Max("last_at_ms")]),
    Flow: (("span_ms", "start_ms", "queue", "reason", "code"), [Sum("died"), Sum("left_n"), Sum("still")]),
    Result: (("batch", "queue", "reason", "code", "outcome"), [Sum("n")]),
    Tally: (("name",), [Sum("n")]),
}


def figures() -> dict[str, list[tuple]]:
    """What pages read: the sums over slots."""
    return {
        table.__name__: sorted(table.objects.values_list(*places).annotate(*sums))
        for table, (places, sums) in FIGURES.items()
    }


def ended_slots() -> set[int]:
    """Slots in use that nobody adds to any more."""
    used = {slot for table in FIGURES for slot in table.objects.values_list("slot", flat=True)}
    if connection.vendor == "sqlite":
        return used - {0}
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity")
        return used - {0} - {pid for (pid,) in cursor.fetchall()}


def in_another_session(work: Callable[[], object]) -> None:
    """Do the work on a connection of its own, which has ended when this returns."""

    def run() -> int:
        try:
            work()
            return backend()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        slot = pool.submit(run).result(60)
    if slot:  # the pool keeps it for the next one who needs a connection
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [slot])
    eventually(lambda: not slot or slot in ended_slots(), "the session's end")


def backend() -> int:
    """The slot of this connection."""
    if connection.vendor == "sqlite":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def a_little_of_all(number: int, by: User) -> None:
    """An order in each table's figures, one of them refused by its token."""
    put(f"new-{number}")
    kill(f"dead-{number}", name="drinks")
    redrive(number, by)
    lease = take()
    assert not queue.finish(lease.id, lease.token - 1, "ok")


@pytest.mark.django_db(transaction=True)
def test_rows_of_ended_sessions_are_folded_and_every_figure_stays(clock: Clock, team_lead: User) -> None:
    declare("drinks")
    a_little_of_all(1, team_lead)
    mine = backend()
    in_another_session(partial(a_little_of_all, 2, team_lead))
    in_another_session(partial(a_little_of_all, 3, team_lead))
    before = figures()
    assert all(before.values()), "every table has something to fold"
    life_signs.arrive("w1", "worker")
    assert figures() == before
    assert ended_slots() == set()
    assert Count.objects.filter(slot=mine).exists(), "a session that lives keeps its slot"
    in_another_session(partial(a_little_of_all, 4, team_lead))
    before = figures()
    life_signs.arrive("w2", "worker")
    assert figures() == before
    assert ended_slots() == set()


@pytest.mark.django_db(transaction=True)
def test_one_round_folds_a_bounded_number_of_rows(clock: Clock, team_lead: User) -> None:
    declare("drinks")
    in_another_session(partial(a_little_of_all, 1, team_lead))
    before, rounds = figures(), 0
    while folded := counters.fold_slots(1):
        assert folded <= len(FIGURES)
        assert figures() == before
        rounds += 1
    assert ended_slots() == set()
    assert rounds > 1 or connection.vendor == "sqlite"


@pytest.mark.django_db(transaction=True)
def test_rows_that_a_namesake_of_an_ended_session_holds_are_left_for_the_next_time(
    clock: Clock, team_lead: User
) -> None:
    declare("drinks")
    in_another_session(partial(a_little_of_all, 1, team_lead))
    before, left = figures(), ended_slots()
    with plain_door() as namesake:
        namesake("BEGIN")
        if left:
            namesake("UPDATE tallies SET n = n WHERE slot <> 0")
        counters.fold_slots(99)
        assert ended_slots() == left
        assert not [*Count.objects.filter(slot__in=left)]
        namesake("COMMIT")
    counters.fold_slots(99)
    assert ended_slots() == set()
    assert figures() == before


@pytest.mark.django_db
def test_minutes_older_than_they_are_kept_go_and_hours_stay(clock: Clock) -> None:
    declare("drinks")
    kill("old", at=clock.now - MINUTES_KEPT_MS - MINUTE_MS)
    kill("young", at=clock.now - MINUTES_KEPT_MS)
    kill("now", at=clock.now)
    life_signs.arrive("w1", "worker")
    starts = Flow.objects.order_by("start_ms").values_list("start_ms", flat=True)
    assert [*starts.filter(span_ms=MINUTE_MS)] == [clock.now - 8 * DAY_MS, clock.now]
    assert starts.filter(span_ms=HOUR_MS).count() == 3
    assert counters.forget_minutes(clock.now + DAY_MS, 1) == 1, "a bounded number of rows"
