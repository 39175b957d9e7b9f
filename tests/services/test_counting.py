"""What a recount reports, what it adds, and when it begins anew; the counting itself is in tests/store/test_recounts.py."""

from collections.abc import Callable

import pytest

from queue_app.models import Count
from queue_app.policy.recounting import Difference, Numbers
from queue_app.policy.windows import DAY_MS, HOUR_MS
from queue_app.services import counting
from queue_app.services.counting import Report
from queue_app.store import places, recounts
from queue_app.store.chain import Event
from tests.conftest import START_MS as T
from tests.conftest import Clock
from tests.services.told import told
from tests.store.rows import job

pytestmark = pytest.mark.django_db
DONE = ("snacks", "done", "", "", "")
WRONG = (Difference("counts", DONE, "n", 5, 7), Difference("counts", DONE, "last_at_ms", 5, 7))
KEPT_FOR = 7 * DAY_MS + 12 * HOUR_MS  # as long as pages rely on minutes


def numbers(n: int) -> Numbers:
    found = Numbers(last={DONE: n})
    found.n["counts"][DONE] = n
    return found


def no_wait(_seconds: float) -> None:
    return None


class Recounts:
    """Stands in for the store: what it measures one after the other, and how often somebody else was quicker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *stored: int, quicker: int = 0) -> None:
        self.stored, self.quicker = list(stored), quicker
        self.measured: list[tuple[int, object]] = []
        self.corrected: list[tuple[list[Difference], int]] = []
        monkeypatch.setattr(recounts, "measure", self.measure)
        monkeypatch.setattr(recounts, "correct", self.correct)

    def measure(self, minutes_from: int, wait: Callable[[float], object]) -> tuple[Numbers, Numbers, int]:
        self.measured.append((minutes_from, wait))
        return numbers(self.stored.pop(0)), numbers(7), 40 + len(self.measured)

    def correct(self, found: list[Difference], corrections: int) -> None:
        self.corrected.append((found, corrections))
        if len(self.corrected) <= self.quicker:
            raise recounts.Recounted


@pytest.mark.parametrize(
    ("now_ms", "minutes_from"),
    [(T, T - KEPT_FOR), (T + 1, T - KEPT_FOR + HOUR_MS), (T + HOUR_MS, T - KEPT_FOR + HOUR_MS)],
)
@pytest.mark.parametrize("given", [True, False])
def test_a_check_tells_what_differs_as_of_when_and_changes_nothing(
    given: bool, now_ms: int, minutes_from: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.now = 5 if given else now_ms
    store = Recounts(monkeypatch, 5)
    assert counting.check(wait=no_wait, now_ms=now_ms if given else None) == Report(now_ms, WRONG, False)
    assert (store.measured, store.corrected, told(0)) == ([(minutes_from, no_wait)], [], [])


@pytest.mark.parametrize("move", [counting.check, counting.rebuild])
def test_where_nothing_differs_nothing_is_done(
    move: Callable[..., Report], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Recounts(monkeypatch, 7)
    assert move(wait=no_wait) == Report(T, (), False)
    assert (store.measured, store.corrected, told(0)) == ([(T - KEPT_FOR, no_wait)], [], [])


@pytest.mark.parametrize("move", [counting.check, counting.rebuild])
def test_what_is_no_instant_is_refused_before_anything_is_read(
    move: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Recounts(monkeypatch)
    with pytest.raises(ValueError, match=r"^now_ms must be"):
        move(wait=no_wait, now_ms=-1)
    assert store.measured == []


@pytest.mark.parametrize("given", [True, False])
def test_what_differs_is_added_with_one_event(given: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now = 5 if given else T
    store = Recounts(monkeypatch, 5)
    assert counting.rebuild(wait=no_wait, now_ms=T if given else None) == Report(T, WRONG, True)
    assert store.measured == [(T - KEPT_FOR, no_wait)]
    assert store.corrected == [(list(WRONG), 41)]
    assert told(0) == [Event(T, "recount", "counters", source="cli", detail={"corrected": 2})]


def test_after_a_correction_by_somebody_else_all_is_measured_anew(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Recounts(monkeypatch, 5, 7, quicker=1)
    assert counting.rebuild(wait=no_wait) == Report(T, (), False)
    assert (len(store.measured), store.corrected, told(0)) == (2, [(list(WRONG), 41)], [])


@pytest.mark.parametrize(("quicker", "tries"), [(1, 2), (2, 3)])
def test_the_third_try_may_still_be_the_one(
    quicker: int, tries: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Recounts(monkeypatch, 5, 5, 5, quicker=quicker)
    assert counting.rebuild(wait=no_wait) == Report(T, WRONG, True)
    assert store.corrected == [(list(WRONG), 41 + n) for n in range(tries)]
    assert [event.action for event in told(0)] == ["recount"]


def test_who_was_too_late_three_times_is_told_so(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Recounts(monkeypatch, 5, 5, 5, quicker=3)
    with pytest.raises(recounts.Recounted):
        counting.rebuild(wait=no_wait)
    assert (len(store.corrected), told(0)) == (3, [])


def test_a_correction_is_added_to_what_stands_and_counts_itself(clock: Clock) -> None:
    job("a", 1, state="done")
    Count.objects.filter(state="done").update(n=9)
    places.remember(places.RECOUNT, 6)
    wrong = (Difference("counts", DONE, "n", 9, 1),)
    assert counting.rebuild(wait=no_wait) == Report(T, wrong, True)
    assert counting.check(wait=no_wait) == Report(T, (), False)
    assert places.read(places.RECOUNT) == 7
