"""Counting rows beside the counters: every row once, whatever the bites, and each death in its hour."""

import pytest
from django.contrib.auth.models import User
from django.db import connection

from queue_app.models import Count, Result, Tally
from queue_app.policy.recounting import Group, Numbers
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS
from queue_app.store import places, recounts
from tests.conftest import Clock
from tests.store.counted import (
    COUNTED,
    KEPT,
    LEFT,
    LEFT_DIED,
    NOTHING,
    REFUSED,
    STILL,
    TRIED,
    T,
    deaths,
    everything,
    flow,
    flows,
    forget_counters,
    no_wait,
    of,
    place,
    redrives,
    said,
)
from tests.store.rows import job, outcome, redrive

ON_POSTGRESQL = connection.vendor == "postgresql"


@pytest.mark.parametrize("bite", [(1, 1), (2, 3), (1_000, 50_000)])
@pytest.mark.parametrize("known", [True, False])
def test_every_row_is_counted_once_at_any_size_of_bites(
    known: bool, bite: tuple[int, int], clock: Clock, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(operator)
    if not known:
        forget_counters()  # the deaths of all time in one piece
    monkeypatch.setattr(recounts, "BITE", bite)
    _stored, counted, corrections = recounts.measure(KEPT, no_wait)
    assert said(counted) == COUNTED
    assert corrections == 0


def test_where_nothing_is_there_is_nothing_to_count(db: None) -> None:
    stored, counted, corrections = recounts.measure(KEPT, no_wait)
    assert (said(stored), said(counted), corrections) == (said(NOTHING), said(NOTHING), 0)


def test_what_comes_while_it_counts_is_counted_too(
    clock: Clock, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job("a", 1)
    job("b", 2, state="done", changed_at_ms=T)
    redrive(1, operator, batch=3)
    outcome(1, "done", batch=3)
    monkeypatch.setattr(recounts, "BITE", (1, 1))
    pauses: list[float] = []

    def meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            job("c", 3, state="leased", changed_at_ms=T + 1)
            redrive(2, operator, batch=3)
            outcome(2, "dead_same", batch=3)

    _stored, counted, _corrections = recounts.measure(KEPT, meanwhile)
    more = not ON_POSTGRESQL  # nobody waits there: one snapshot
    assert len(pauses) == (7 if more else 0)
    assert said(counted)["counts"] == {place("snacks", "pending", "new"): 1, place("snacks", "done"): 1} | (
        {place("snacks", "leased"): 1} if more else {}
    )
    assert said(counted)["results"] == {(3, *REFUSED, "done"): 1} | ({(3, *REFUSED, "dead_same"): 1} if more else {})


# --- deaths, hour by hour -------------------------------------------------------------------------------------------
def test_time_is_cut_at_hours_that_have_counters_and_before_minutes_are_kept_once_a_day(db: None) -> None:
    midnight = T - 8 * HOUR_MS
    old = [midnight - DAY_MS, midnight - HOUR_MS, midnight + 2 * HOUR_MS, midnight + 3 * HOUR_MS, KEPT - HOUR_MS]
    for hour in [*old, KEPT, T + HOUR_MS, T + 2 * HOUR_MS]:
        flow(HOUR_MS, hour, died=1)
        flow(HOUR_MS, hour, TRIED, died=1)
        flow(MINUTE_MS, hour + MINUTE_MS, died=1)
    cuts = [midnight - DAY_MS, midnight + 2 * HOUR_MS, KEPT, T + HOUR_MS, T + 2 * HOUR_MS]
    assert recounts._slices(KEPT) == [*zip([None, *cuts], [*cuts, None], strict=True)]


def test_the_first_hour_of_kept_minutes_is_cut_at_once_also_when_its_day_begins_with_it(db: None) -> None:
    for hour in (KEPT, T):
        flow(HOUR_MS, hour, died=1)
    assert recounts._slices(KEPT) == [(None, KEPT), (KEPT, T), (T, None)]


def test_without_counters_all_of_time_is_one_piece(db: None) -> None:
    assert recounts._slices(KEPT) == [(None, None)]


@pytest.mark.parametrize(
    ("since", "until", "condition"),
    [
        (None, None, "1 = 1"),
        (5, None, "at >= 5"),
        (None, 9, "at < 9"),
        (5, 9, "at >= 5 AND at < 9"),
        (0, 0, "at >= 0 AND at < 0"),
    ],
)
def test_a_piece_of_time_holds_its_beginning_and_not_its_end(
    since: int | None, until: int | None, condition: str
) -> None:
    assert recounts._within("at", since, until) == condition


@pytest.mark.parametrize(
    ("since", "until"),
    [(None, None), (None, T), (T, None), (T, T + HOUR_MS), (T - HOUR_MS, T), (T - 3 * HOUR_MS, T + 2 * HOUR_MS)],
)
def test_deaths_of_a_piece_are_those_that_died_in_it(
    since: int | None, until: int | None, clock: Clock, operator: User
) -> None:
    def within(parts: list[tuple[int, Group, int]]) -> list[tuple[int, Group, int]]:
        return [
            part for part in parts if (since is None or part[0] >= since) and (until is None or part[0] < until)
        ]  # the borders are whole hours

    deaths()
    redrives(operator)
    counting = recounts._Counting(KEPT)
    counting.deaths(since, until)
    assert {name: dict(counter) for name, counter in counting.numbers.flows.items()} == flows(
        died=within([*STILL, *LEFT_DIED]), left_n=within(LEFT), still=within(STILL)
    )


# --- what the counters say ------------------------------------------------------------------------------------------
def test_counters_are_the_sums_over_their_slots_and_the_latest_of_their_changes(db: None) -> None:
    done, dead = place("snacks", "done"), place("drinks", "dead", "", "permanent", "x")
    columns = ("queue", "state", "stage", "reason", "code")
    for where, slot, n, last in ((done, 0, 5, T), (done, 7, -2, T + 3), (done, 8, 4, T + 1), (dead, 7, 1, 0)):
        Count.objects.create(**dict(zip(columns, where, strict=True)), slot=slot, n=n, last_at_ms=last)
    for batch, slot, n in ((3, 0, 2), (3, 7, 5), (0, 7, 1)):
        Result.objects.create(batch=batch, **of(REFUSED), outcome="done", slot=slot, n=n)
    for slot, n in ((0, 3), (7, 4)):
        Tally.objects.create(name="late_finish", slot=slot, n=n)
    assert said(recounts._stored()) == said(NOTHING) | {
        "counts": {done: 7, dead: 1},
        "last": {done: T + 3, dead: 0},
        "results": {(3, *REFUSED, "done"): 7, (0, *REFUSED, "done"): 1},
        "tallies": {("late_finish",): 7},
    }


HOURS = [KEPT - HOUR_MS, KEPT, T, T + HOUR_MS]


@pytest.mark.parametrize(
    ("since", "until", "hours", "minutes"),
    [
        (None, None, HOURS, HOURS[1:]),
        (None, T, HOURS[:2], HOURS[1:2]),
        (KEPT - HOUR_MS, T, HOURS[:2], HOURS[1:2]),
        (KEPT, T, HOURS[1:2], HOURS[1:2]),
        (T, T + HOUR_MS, [T], [T]),
        (T, None, HOURS[2:], HOURS[2:]),
        (None, KEPT, HOURS[:1], []),
    ],
)
def test_flows_of_a_piece_are_read_by_hours_and_where_they_are_kept_by_minutes(
    since: int | None, until: int | None, hours: list[int], minutes: list[int], db: None
) -> None:
    for start in HOURS:
        for span in (HOUR_MS, MINUTE_MS):
            flow(span, start, died=5, left_n=3, still=2)
            flow(span, start, slot=7, died=10, left_n=20, still=-1)
            flow(span, start, TRIED, slot=7, died=1)
    found = Numbers()
    recounts._store_flows(found, KEPT, since, until)
    spans = [(HOUR_MS, start) for start in hours] + [(MINUTE_MS, start) for start in minutes]
    assert {name: dict(counter) for name, counter in found.flows.items()} == {
        "died": {(*one, *group): n for one in spans for group, n in ((REFUSED, 15), (TRIED, 1))},
        "left_n": {(*one, *group): n for one in spans for group, n in ((REFUSED, 23), (TRIED, 0))},
        "still": {(*one, *group): n for one in spans for group, n in ((REFUSED, 1), (TRIED, 0))},
    }


def test_both_sides_and_the_corrections_so_far_are_measured(clock: Clock, operator: User) -> None:
    everything(operator)
    forget_counters()
    Count.objects.create(queue="snacks", state="done", stage="", reason="", code="", n=9, last_at_ms=T)
    for start in (KEPT - HOUR_MS, T):
        flow(HOUR_MS, start, died=4, left_n=3, still=2)
        flow(MINUTE_MS, start, died=4, left_n=3, still=2)
    places.remember(places.RECOUNT, 5)
    stored, counted, corrections = recounts.measure(KEPT, no_wait)
    spans = [(HOUR_MS, KEPT - HOUR_MS, *REFUSED), (HOUR_MS, T, *REFUSED), (MINUTE_MS, T, *REFUSED)]
    assert said(stored) == said(NOTHING) | {
        "counts": {place("snacks", "done"): 9}, "last": {place("snacks", "done"): T},
        "died": dict.fromkeys(spans, 4), "left_n": dict.fromkeys(spans, 3), "still": dict.fromkeys(spans, 2),
    }  # fmt: skip
    assert (said(counted), corrections) == (COUNTED, 5)
