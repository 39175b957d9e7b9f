"""What a recount does to others: its bites and pauses, whom it keeps off meanwhile, and what it adds to the counters."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection

from queue_app import clock as product_clock
from queue_app.models import Count, Flow, Head, Result, Tally
from queue_app.policy.recounting import Difference, Numbers
from queue_app.policy.windows import HOUR_MS, MINUTE_MS
from queue_app.store import database, places, recounts
from tests.conftest import Clock
from tests.store.changed import Asked
from tests.store.counted import KEPT, REFUSED, TRIED, T, everything, flow, no_wait, place
from tests.store.rows import job

ON_POSTGRESQL = connection.vendor == "postgresql"


class Watch:
    """A monotonic clock that moves when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 5_000_000
        monkeypatch.setattr(product_clock, "monotonic_ms", lambda: self.now_ms)


@pytest.mark.parametrize(
    ("took_ms", "sizes"),
    [
        ([0, 7, 7], [1_000, 2_000, 4_000, 8_000]),
        ([7, 8, 8], [1_000, 2_000, 3_750, 7_031]),
        ([0, 15, 30, 30], [1_000, 2_000, 2_000, 1_000, 1_000]),
        ([0] * 7, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 50_000, 50_000]),
        ([], [1_000]),
    ],
)
def test_a_bite_follows_how_long_the_last_one_took_and_the_pause_is_as_long(
    took_ms: list[int], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, asked, pauses = Watch(monkeypatch), list[int](), list[float]()

    def part(size: int) -> bool:
        asked.append(size)
        more = len(asked) <= len(took_ms)
        watch.now_ms += took_ms[len(asked) - 1] if more else 0
        return more

    recounts._walk(part, pauses.append, pytest.fail)
    assert asked == sizes
    assert pauses == ([] if ON_POSTGRESQL else [ms / 1_000 for ms in took_ms])


def test_the_sign_is_renewed_once_ten_seconds_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, renewed = Watch(monkeypatch), list[int]()
    steps = iter([9_999, 1, 1, 10_000, 1, 0, 10_001])

    def part(_size: int) -> bool:
        step = next(steps, None)
        watch.now_ms += step or 0
        return step is not None

    recounts._walk(part, no_wait, lambda: renewed.append(watch.now_ms - 5_000_000))
    assert renewed == [10_001, 20_002, 30_003]


def sign() -> int | None:
    """Until when removals are kept off; None: nobody ever did."""
    return Head.objects.filter(pk=places.RECOUNT).values_list("link", flat=True).first()


def kept_off(until: int) -> int | None:
    return None if ON_POSTGRESQL else until


def test_removals_are_kept_off_for_a_minute_from_the_last_sign_and_let_in_at_the_end(clock: Clock, db: None) -> None:
    with recounts._no_removals() as renew:
        assert sign() == kept_off(T + 60_000)
        clock.advance(5)
        assert sign() == kept_off(T + 60_000)
        renew()
        assert sign() == kept_off(T + 60_005)
    assert sign() == kept_off(0)


def test_removals_are_let_in_when_the_count_fails(clock: Clock, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []

    def fail() -> Numbers:
        seen.append(sign())
        raise KeyboardInterrupt

    monkeypatch.setattr(recounts, "_stored", fail)
    with pytest.raises(KeyboardInterrupt):
        recounts.measure(KEPT, no_wait)
    assert (seen, sign()) == ([kept_off(T + 60_000)], kept_off(0))


def test_a_long_count_renews_its_sign(clock: Clock, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, signs = Watch(monkeypatch), list[int | None]()
    monkeypatch.setattr(recounts, "BITE", (1, 1))
    for seq in range(3):
        job(f"o{seq}", seq)

    def wait(_seconds: float) -> None:
        signs.append(sign())
        clock.advance(11_000)
        watch.now_ms += 11_000

    recounts.measure(KEPT, wait)
    assert signs == ([] if ON_POSTGRESQL else [T + 60_000, T + 71_000, T + 82_000])


class Watched:
    """What was called with what, and whether a transaction was open then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *places: tuple[object, str]) -> None:
        self.calls: list[tuple[str, bool, tuple[object, ...]]] = []
        for owner, name in places:
            monkeypatch.setattr(owner, name, self.watching(name, getattr(owner, name)))

    def watching(self, name: str, work: Callable[..., object]) -> Callable[..., object]:
        def watched(*values: object) -> object:
            self.calls.append((name, connection.in_atomic_block, values))
            return work(*values)

        return watched


@pytest.mark.django_db(transaction=True)
def test_what_must_agree_is_read_in_one_transaction_and_the_bites_stop_nobody(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(operator)
    counting = recounts._Counting
    parts = ((recounts, "_stored"), (recounts, "_store_flows"), (counting, "end"), (counting, "deaths"))
    watched = Watched(monkeypatch, *parts)
    monkeypatch.setattr(recounts, "BITE", (1, 1))
    recounts.measure(KEPT, watched.watching("wait", no_wait))
    assert {(name, within) for name, within, _values in watched.calls} == {(name, True) for _owner, name in parts} | (
        set() if ON_POSTGRESQL else {("wait", False)}
    )
    assert not connection.in_atomic_block


def test_each_piece_of_time_is_read_on_both_sides_at_once(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    everything(operator)
    watched = Watched(monkeypatch, (recounts, "_store_flows"), (recounts._Counting, "deaths"))
    stored, _counted, _corrections = recounts.measure(KEPT, no_wait)
    slices = recounts._slices(KEPT)
    assert len(slices) > 3
    asked = [(name, values[1:]) for name, _within, values in watched.calls]
    assert asked[0::2] == [("deaths", one) for one in slices]
    assert asked[1::2] == [("_store_flows", (KEPT, *one)) for one in slices]
    assert all(values[0] is stored for name, _within, values in watched.calls if name == "_store_flows")


@pytest.mark.parametrize(
    ("name", "table", "column", "third"),
    [("orders", "jobs", "seq", 0), ("redrives", "redrives", "id", 1), ("outcomes", "redrive_outcomes", "id", 1)],
)
def test_a_bite_walks_by_the_key_of_its_table_from_where_the_last_one_ended(
    name: str, table: str, column: str, third: int, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(operator)
    counting = recounts._Counting(KEPT)
    watched = Watched(monkeypatch, (recounts._Counting, "_upto"))
    assert [getattr(counting, name)(size) for size in (3, 2)] == [True, True]
    assert [values[1:] for _name, _within, values in watched.calls] == [
        (table, column, -(2**62), 3), (table, column, third, 2),
    ]  # fmt: skip


class Connection(Asked):
    """PostgreSQL, as far as a recount asks it how to read."""

    in_atomic_block = False


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("inside", [False, True])
def test_on_postgresql_everything_is_one_snapshot_and_nobody_is_kept_off(
    inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Connection().stand_in(monkeypatch, recounts)
    asked.in_atomic_block = inside  # of another's transaction, which has read already: its own snapshot is left
    monkeypatch.setattr(database, "is_postgresql", lambda: True)
    with recounts._moment():
        assert not connection.in_atomic_block
    with recounts._no_removals() as renew, recounts._one_snapshot():
        assert connection.in_atomic_block
        assert renew() is None  # type: ignore[func-returns-value]
    assert not connection.in_atomic_block
    wanted = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
    assert asked.statements == ([] if inside else [(wanted, [])])
    assert sign() is None


# --- putting it right -----------------------------------------------------------------------------------------------
def test_what_is_wrong_is_added_in_slot_0_and_nothing_else_moves(db: None) -> None:
    done, new = place("snacks", "done"), place("snacks", "pending", "new")
    columns = ("queue", "state", "stage", "reason", "code")
    for slot, last in ((0, T), (7, T + 9)):
        Count.objects.create(**dict(zip(columns, done, strict=True)), slot=slot, n=5, last_at_ms=last)
    flow(HOUR_MS, T, died=4, left_n=3, still=2)
    Tally.objects.create(name="late_finish", n=1)
    hour = (HOUR_MS, T, *REFUSED)
    recounts.correct(
        [
            Difference("counts", done, "n", 10, 7),
            Difference("counts", done, "last_at_ms", T, T + 5),
            Difference("counts", new, "n", 0, 2),
            Difference("counts", new, "last_at_ms", 0, T + 4),
            Difference("results", (3, *REFUSED, "done"), "n", 0, 6),
            Difference("tallies", ("late_finish",), "n", 1, 3),
            Difference("flows", hour, "died", 4, 5),
            Difference("flows", hour, "still", 2, 0),
            Difference("flows", (MINUTE_MS, T, *TRIED), "left_n", 0, 1),
        ],
        0,
    )
    assert sorted(Count.objects.values_list(*columns, "slot", "n", "last_at_ms")) == [
        (*done, 0, 2, T + 5), (*done, 7, 5, T + 9), (*new, 0, 2, T + 4),
    ]  # fmt: skip
    assert [*Result.objects.values_list("batch", "queue", "reason", "code", "outcome", "slot", "n")] == [
        (3, *REFUSED, "done", 0, 6)
    ]
    assert [*Tally.objects.values_list("name", "slot", "n")] == [("late_finish", 0, 3)]
    found = Flow.objects.values_list(
        "span_ms", "start_ms", "queue", "reason", "code", "slot", "died", "left_n", "still"
    )
    assert sorted(found) == [(MINUTE_MS, T, *TRIED, 0, 0, 1, 0), (*hour, 0, 5, 3, 0)]


def test_each_difference_is_one_statement_that_makes_its_counter_or_adds_to_it(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked().stand_in(monkeypatch, recounts)
    done = place("snacks", "done")
    tally = Difference("tallies", ("late_finish",), "n", 1, 3)
    recounts.correct([tally, Difference("counts", done, "last_at_ms", 0, T)], 0)
    where = "queue, state, stage, reason, code"
    assert asked.statements == [
        (
            "INSERT INTO tallies AS t (name, slot, n) VALUES (%s, 0, %s) "
            "ON CONFLICT (name, slot) DO UPDATE SET n = t.n + excluded.n",
            ["late_finish", 2],
        ),
        (
            f"INSERT INTO counts AS t ({where}, slot, last_at_ms) VALUES (%s, %s, %s, %s, %s, 0, %s) "
            f"ON CONFLICT ({where}, slot) DO UPDATE SET last_at_ms = "
            "CASE WHEN t.last_at_ms > excluded.last_at_ms THEN t.last_at_ms ELSE excluded.last_at_ms END",
            [*done, T],
        ),
    ]


@pytest.mark.parametrize(("kept", "counted", "then"), [(T, T + 1, T + 1), (T + 1, T, T + 1), (T, T, T), (0, 1, 1)])
def test_a_last_change_is_only_ever_lifted(kept: int, counted: int, then: int, db: None) -> None:
    Count.objects.create(queue="snacks", state="done", stage="", reason="", code="", n=5, last_at_ms=kept)
    recounts.correct([Difference("counts", place("snacks", "done"), "last_at_ms", 0, counted)], 0)
    assert [*Count.objects.values_list("slot", "n", "last_at_ms")] == [(0, 5, then)]


@pytest.mark.parametrize(("so_far", "seen"), [(0, 1), (1, 0), (7, 6)])
def test_after_another_correction_nothing_is_added(so_far: int, seen: int, db: None) -> None:
    places.remember(places.RECOUNT, so_far)
    with pytest.raises(recounts.Recounted):
        recounts.correct([Difference("tallies", ("late_finish",), "n", 0, 3)], seen)
    assert (Tally.objects.exists(), places.read(places.RECOUNT)) == (False, so_far)


def test_a_correction_counts_itself(db: None) -> None:
    for n in range(3):
        recounts.correct([], n)
        assert places.read(places.RECOUNT) == n + 1
