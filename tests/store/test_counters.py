"""The statements that fold ended sessions' counters, and the minutes that go."""

import pytest

from queue_app.models import Flow
from queue_app.policy.windows import HOUR_MS, MINUTE_MS
from queue_app.store import counters
from tests.conftest import START_MS as T
from tests.store.changed import Asked

# Only PostgreSQL has other slots; tests/store/test_counters_tidied.py shows there what these do.
FOLDING = {
    "counts": (
        "queue, state, stage, reason, code",
        "n, last_at_ms",
        "sum(n), max(last_at_ms)",
        "n = t.n + excluded.n, last_at_ms = greatest(t.last_at_ms, excluded.last_at_ms)",
    ),
    "flows": (
        "span_ms, start_ms, queue, reason, code",
        "died, left_n, still",
        "sum(died), sum(left_n), sum(still)",
        "died = t.died + excluded.died, left_n = t.left_n + excluded.left_n, still = t.still + excluded.still",
    ),
    "results": ("batch, queue, reason, code, outcome", "n", "sum(n)", "n = t.n + excluded.n"),
    "tallies": ("name", "n", "sum(n)", "n = t.n + excluded.n"),
}


def test_each_table_is_folded_by_one_statement_which_takes_a_bounded_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked([(4,)], [(0,)], [(7,)], [(1,)]).stand_in(monkeypatch, counters)
    assert counters.fold_slots(7) == 12
    assert [(" ".join(sql.split()), values) for sql, values in asked.statements] == [
        (
            f"WITH gone AS ( DELETE FROM {table} WHERE id IN ( SELECT id FROM {table} WHERE slot <> 0 "
            "AND slot NOT IN (SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL) LIMIT %s FOR UPDATE SKIP LOCKED) "
            f"RETURNING * ), kept AS ( INSERT INTO {table} AS t ({places}, slot, {columns}) "
            f"SELECT {places}, 0, {totals} FROM gone GROUP BY {places} ORDER BY {places} "
            f"ON CONFLICT ({places}, slot) DO UPDATE SET {kept} ) SELECT count(*) FROM gone",
            [7],
        )
        for table, (places, columns, totals, kept) in FOLDING.items()
    ]


def test_sqlite_has_nothing_to_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([(4,)]).stand_in(monkeypatch, counters, postgresql=False)
    assert (counters.fold_slots(7), asked.statements) == (0, [])


@pytest.mark.parametrize(
    ("before_ms", "limit", "dropped"),
    [(T, 9, 2), (T + 1, 9, 3), (T - MINUTE_MS, 9, 1), (T + HOUR_MS, 9, 4), (0, 9, 0), (T + HOUR_MS, 3, 3), (T, 0, 0)],
)
def test_minutes_before_an_instant_go_and_every_hour_stays(before_ms: int, limit: int, dropped: int, db: None) -> None:
    starts = [T - 2 * MINUTE_MS, T - MINUTE_MS, T, T + MINUTE_MS]
    for start in starts:
        for span in (MINUTE_MS, HOUR_MS):
            Flow.objects.create(span_ms=span, start_ms=start, queue="snacks", reason="permanent", code="", died=1)
    assert counters.forget_minutes(before_ms, limit) == dropped
    left = Flow.objects.order_by("start_ms").values_list("start_ms", flat=True)
    assert [*left.filter(span_ms=HOUR_MS)] == starts
    assert len(left.filter(span_ms=MINUTE_MS)) == 4 - dropped
    assert set(starts) - {*left.filter(span_ms=MINUTE_MS)} <= {start for start in starts if start < before_ms}
