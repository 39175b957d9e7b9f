"""Rows and counts of the quarantine equal what plain SQL says after real moves."""

import pytest
from django.db import connection

from queue_app.policy.filters import Filter
from queue_app.policy.windows import DAY_MS, HOUR_MS, MINUTE_MS, MINUTES_KEPT_MS
from queue_app.reads import dead, ways
from queue_app.reads.dead import Count
from tests.conftest import START_MS, Clock
from tests.dead_rows import bury

FILTERS = [
    Filter(),
    Filter(queue="snacks"),
    Filter(queue="drinks"),
    Filter(queue="drinks", reason="permanent"),
    Filter(reason="exhausted"),
    Filter(code="http_422"),
    Filter(code=""),
    Filter(code="no_such"),
    Filter(queue="snacks", reason="permanent", code="http_422"),
    Filter(queue="snacks", reason="permanent", code="http_422", effect=True),
    Filter(effect=True),
    Filter(effect=False),
    Filter(died_from_ms=START_MS + 10_000),
    Filter(died_from_ms=START_MS + MINUTE_MS),
    Filter(died_from_ms=START_MS + 2_500, died_to_ms=START_MS + HOUR_MS + 90_500),
    Filter(died_to_ms=START_MS + 7_000),
    Filter(died_from_ms=START_MS, died_to_ms=START_MS + HOUR_MS, queue="drinks"),
    Filter(min_age_ms=HOUR_MS),
    Filter(max_age_ms=HOUR_MS),
    Filter(max_age_ms=0),
    Filter(id_prefix="s1"),
    Filter(id_prefix="S"),
    Filter(id_prefix="d"),
    Filter(attempts_min=1),
    Filter(attempts_min=2, attempts_max=2),
    Filter(redriven=True),
    Filter(redriven=False, queue="snacks"),
    Filter(looked=True),
    Filter(looked=False, effect=True),
]


def _recount(filter: Filter, as_of_ms: int) -> list[str]:  # noqa: A002
    """Every dead row, asked one by one in plain Python."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, queue, reason, code, changed_at_ms, attempts, redriven FROM jobs WHERE state = 'dead' "
            "ORDER BY changed_at_ms, seq"
        )
        rows = cursor.fetchall()
    low, high = filter.span(as_of_ms)
    return [
        row[0]
        for row in rows
        if filter.admits_group(row[1], row[2], row[3])
        and low <= row[4] < high
        and row[0].startswith(filter.id_prefix or "")
        and (filter.attempts_min is None or row[5] >= filter.attempts_min)
        and (filter.attempts_max is None or row[5] <= filter.attempts_max)
        and (filter.redriven is None or (row[6] > 0) == filter.redriven)
        and filter.looked is not True
    ]


@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: wanted.canonical())
def test_rows_count_and_condition_agree_with_a_recount(mixed: Clock, wanted: Filter) -> None:
    for as_of_ms in (mixed.now, START_MS + HOUR_MS, START_MS + 5_500):
        expected = _recount(wanted, as_of_ms)
        assert [row.id for row in dead.chunk(wanted, as_of_ms, None, 1_000)] == expected
        assert dead.count(wanted, as_of_ms) == Count(len(expected))
        sql, values = dead.where(wanted, as_of_ms)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM jobs AS j WHERE {sql}", values)
            assert cursor.fetchone()[0] == len(expected)


def test_chunks_pick_up_where_the_last_one_ended(mixed: Clock) -> None:
    seen: list[str] = []
    after = None
    while rows := dead.chunk(Filter(), mixed.now, after, 4):
        seen += [row.id for row in rows]
        after = rows[-1].position
    assert seen == _recount(Filter(), mixed.now)


def test_a_filter_that_only_rows_can_answer_is_searched_in_bounded_stretches(
    mixed: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "SCAN", 6)
    expected = _recount(Filter(redriven=True), mixed.now)
    first = dead.stretch(Filter(redriven=True), mixed.now, None, 50)
    assert (first.rows, first.searched_to is None) == ([], False)
    assert [row.id for row in dead.chunk(Filter(redriven=True), mixed.now, None, 50)] == expected
    assert not dead.count(Filter(redriven=True), mixed.now).exact


def test_side_by_side_no_group_is_searched_further_than_the_densest(
    mixed: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Filter(queue="snacks", redriven=True)  # three groups: 12, 3 and 1 orders
    monkeypatch.setattr(ways, "SCAN", 6)
    oldest = dead.stretch(wanted, mixed.now, None, 50)
    assert oldest.searched_to == dead.chunk(Filter("snacks", "permanent", "http_422"), mixed.now, None, 3)[2].position
    newest = dead.stretch(wanted, mixed.now, None, 50, newest_first=True)
    assert newest.searched_to == dead.chunk(Filter("snacks", "permanent", ""), mixed.now, None, 3)[0].position
    assert [row.id for row in newest.rows] == ["s1"]


def test_above_the_cap_a_count_by_rows_says_that_it_is_not_exact(mixed: Clock) -> None:
    assert dead.count(Filter(attempts_min=1), mixed.now, cap=5) == Count(5, exact=False)
    assert dead.count(Filter(queue="snacks"), mixed.now, cap=5).exact


def test_counts_stay_right_when_old_minutes_are_pruned(clock: Clock, db: None) -> None:
    bury(2_000, now_ms=clock.now, over_ms=20 * DAY_MS)
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM flows WHERE span_ms = %s AND start_ms < %s", [MINUTE_MS, clock.now - MINUTES_KEPT_MS]
        )
    for low, high in ((19, 1), (19, 12), (9, 7), (3, 2), (8, 0)):
        for edge_ms in (0, 1, 30_000, MINUTE_MS, 3_599_999):
            wanted = Filter(
                died_from_ms=clock.now - low * DAY_MS + edge_ms, died_to_ms=clock.now - high * DAY_MS - edge_ms
            )
            assert dead.count(wanted, clock.now).n == len(dead.chunk(wanted, clock.now, None, 3_000))


def test_a_minute_with_more_deaths_than_can_be_counted_one_by_one_says_so(
    clock: Clock, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(300, now_ms=clock.now, over_ms=10_000)
    monkeypatch.setattr(dead, "CAP", 50)
    assert dead.count(Filter(died_from_ms=clock.now - 9_000), clock.now, cap=50) == Count(50, exact=False)
    assert dead.count(Filter(), clock.now) == Count(300)


def test_many_groups_are_read_as_one_stream(clock: Clock, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(120, now_ms=clock.now)
    expected = [row.id for row in dead.chunk(Filter(), clock.now, None, 999) if row.queue == "snacks"]
    for most in (1, 40):
        monkeypatch.setattr(ways, "MAX_STREAMS", most)
        assert [row.id for row in dead.chunk(Filter(queue="snacks"), clock.now, None, 999)] == expected
        assert dead.count(Filter(queue="snacks", attempts_min=0), clock.now).n == len(expected)


def test_a_beginning_that_is_common_is_searched_by_age(clock: Clock, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(60, now_ms=clock.now)
    expected = [row.id for row in dead.chunk(Filter(id_prefix="o1"), clock.now, None, 99)]
    monkeypatch.setattr(ways, "SCAN", 10)
    assert [row.id for row in dead.chunk(Filter(id_prefix="o1"), clock.now, None, 99)] == expected
    assert len(expected) == 11
