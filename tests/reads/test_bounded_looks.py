"""A look at the quarantine stops where it says that it does: what lies beyond costs it nothing, however much that is."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from queue_app.policy.filters import Filter
from queue_app.reads import dead, ways
from queue_app.services import exports
from tests.conftest import Clock
from tests.dead_rows import bury
from tests.views.conftest import auditor_console

__all__ = ["auditor_console"]

pytestmark = pytest.mark.django_db
NONE, OF_ONE_CAUSE = Filter(attempts_min=50), Filter("snacks", "exhausted", "http_503", attempts_min=50)
HOUR_MS = 3_600_000


def effort(read: Callable[[], object]) -> int:
    """What the database did for it: steps of SQLite's machine, or rows that PostgreSQL's scans met."""
    if connection.vendor == "sqlite":
        steps: list[None] = []
        connection.connection.set_progress_handler(lambda: steps.append(None), 10)
        read()
        connection.connection.set_progress_handler(None, 0)
        return len(steps)
    asked: list[tuple[str, Any]] = []

    def listen(execute: Callable[..., object], sql: str, params: Any, many: bool, context: Any) -> object:
        asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        read()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # a small table is read whole otherwise
        cursor.execute("SET LOCAL enable_sort = off")
        met = 0
        for sql, params in asked:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
            (told,) = cursor.fetchone()
            met += rows_of((json.loads(told) if isinstance(told, str) else told)[0]["Plan"])
    return met


def rows_of(node: dict[str, Any]) -> int:
    """Rows that the scans of a plan met, passed on or not."""
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) if node["Node Type"].endswith("Scan") else 0
    return int(own * node["Actual Loops"]) + sum(rows_of(inner) for inner in node.get("Plans", ()))


@pytest.mark.parametrize("wanted", [NONE, OF_ONE_CAUSE], ids=["whole", "one cause"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_look_costs_the_same_beside_300_rows_and_beside_ten_times_as_many(
    wanted: Filter, newest_first: bool, clock: Clock
) -> None:
    def look() -> dead.Stretch:
        return dead.stretch(wanted, clock.now, None, 50, newest_first=newest_first, scan=60)

    bury(300, now_ms=clock.now - HOUR_MS, over_ms=60_000)
    few = effort(look)
    others = {"over_ms": 60_000, "first": 10_000}
    bury(2_700, now_ms=clock.now - 2 * HOUR_MS if newest_first else clock.now, **others)
    assert look().searched_to is not None
    assert effort(look) < few * 1.5


def test_a_count_costs_the_same_however_many_it_does_not_look_at(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SCAN", 60)
    bury(300, now_ms=clock.now - HOUR_MS, over_ms=60_000)
    few = effort(lambda: dead.count(NONE, clock.now))
    bury(2_700, now_ms=clock.now, over_ms=60_000, first=10_000)
    assert not dead.count(NONE, clock.now).exact
    assert effort(lambda: dead.count(NONE, clock.now)) < few * 1.5


@pytest.mark.parametrize(("scan", "looks"), [(None, 1), (100, 3), (60, 5)])
def test_a_chunk_rests_between_its_looks_and_finds_the_same(scan: int | None, looks: int, clock: Clock) -> None:
    bury(290, now_ms=clock.now)
    rested: list[None] = []
    found = dead.chunk(Filter(redriven=True), clock.now, None, 500, scan=scan, rest=lambda: rested.append(None))
    assert [row.id for row in found] == [f"o{number}-1" for number in range(0, 290, 10)]
    assert len(rested) == looks - 1


def test_the_file_of_a_filter_that_matches_few_is_read_in_small_looks_with_a_rest_after_each(
    clock: Clock, auditor_console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(290, now_ms=clock.now)
    monkeypatch.setattr(exports, "LOOK", 100)
    rested: list[float] = []
    monkeypatch.setattr(exports.time, "sleep", rested.append)
    answer = auditor_console.post("/quarantine/export/", {"format": "jsonl", "redriven": "yes"})
    assert b"".join(answer).count(b'"redriven": 1') == 29
    assert rested == 2 * [exports.REST_S]
