"""Rounds and bites of housekeeping as whole values: what they ask of the store, what they give back and what is told."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db import connection

from queue_app import clock as product_clock
from queue_app.models import Head, Queue
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.retention import DoneJob, archive_line
from queue_app.policy.windows import DAY_MS, MINUTE_MS
from queue_app.services import housekeeping
from queue_app.services.housekeeping import Bite, Round
from queue_app.store import chores, counters, done_jobs, places, processes
from queue_app.store.chain import Event
from queue_app.store.done_jobs import Stretch
from tests.conftest import START_MS as T
from tests.conftest import Clock
from tests.growth.stories import buried, keep, there
from tests.services.told import told
from tests.store.rows import job

pytestmark = pytest.mark.django_db
BEFORE = {"drinks": T - 5, "snacks": T}


def done(job_id: str, seq: int, *, queue: str = "snacks", at_ms: int = T - 10) -> DoneJob:
    """Accepted and delivered then; as housekeeping finds it."""
    job(job_id, seq, queue=queue, state="done", created_at_ms=at_ms, changed_at_ms=at_ms)
    return DoneJob(job_id, seq, queue, "", 7, '{"item":"chips"}', 1, 1, at_ms, at_ms, 0, None)


# --- the rules ------------------------------------------------------------------------------------------------------
def test_rules_are_told_by_name_or_of_one_queue() -> None:
    Queue.objects.all().delete()
    assert housekeeping.rules() == {}
    keep(3, "snacks")
    keep(None, "drinks")
    keep(1, "tea")
    assert [*housekeeping.rules().items()] == [("drinks", None), ("snacks", 3 * DAY_MS), ("tea", DAY_MS)]
    assert [housekeeping.rules(name) for name in ("drinks", "tea")] == [{"drinks": None}, {"tea": DAY_MS}]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "No queue '' is declared."),
        ("スープ", "No queue '\\u30b9\\u30fc\\u30d7' is declared."),
        ("x" * 99, f"No queue '{'x' * 39} is declared."),
    ],
)
def test_a_queue_that_is_not_declared_is_refused(name: str, sentence: str) -> None:
    for call in (housekeeping.rules, lambda name: housekeeping.remove_round(name, wait=pytest.fail)):
        with pytest.raises(InvalidOrder) as refused:
            call(name)
        assert (str(refused.value), refused.value.values) == (sentence, {})


def test_what_would_go_is_counted_by_queue_over_all_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "BITE", (1, 2))
    for seq in range(1, 6):
        done(f"s{seq}", seq)
    done("d", 6, queue="drinks")
    done("young", 7, queue="drinks", at_ms=T - 5)
    done("tea", 8, queue="tea")
    looks: list[tuple[Mapping[str, int], int, int]] = []
    stretch = done_jobs.stretch
    monkeypatch.setattr(done_jobs, "stretch", lambda *asked: looks.append(asked) or stretch(*asked))  # type: ignore[func-returns-value]
    assert housekeeping.removable(BEFORE) == {"snacks": 5, "drinks": 1}
    assert looks == [(BEFORE, after, 2) for after in (0, 2, 4, 6)]
    assert len(there()) == 8


def test_without_a_rule_nobody_looks_at_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(done_jobs, "stretch", pytest.fail)
    assert housekeeping.removable({}) == {}


# --- one bite -------------------------------------------------------------------------------------------------------
class Look:
    """Stands in for the store's look and removal; a removal takes `took_ms`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, found: Stretch, took_ms: int = 0) -> None:
        self.now_ms, self.took_ms = 7_000, took_ms
        self.asked: list[tuple[object, ...]] = []
        self.found = found
        remove = done_jobs.remove

        def removing(jobs: list[DoneJob], before: Mapping[str, int]) -> set[str]:
            self.now_ms += self.took_ms
            return remove(jobs, before)

        monkeypatch.setattr(done_jobs, "stretch", self.stretch)
        monkeypatch.setattr(done_jobs, "remove", removing)
        monkeypatch.setattr(product_clock, "monotonic_ms", lambda: self.now_ms)

    def stretch(self, *asked: object) -> Stretch:
        self.asked.append(asked)
        return self.found


def place() -> int | None:
    """Where the next round over all queues begins; None: nobody kept a place."""
    return Head.objects.filter(pk=places.RETENTION).values_list("seq", flat=True).first()


@pytest.mark.parametrize(
    ("removable", "whole", "last", "gives", "kept"),
    [
        (True, True, False, Bite({"snacks": 1}, 12, 50, 15), 12),
        (True, True, True, Bite({"snacks": 1}, None, 50, 15), 0),
        (True, False, False, Bite({"snacks": 1}, 12, 50, 15), None),
        (True, False, True, Bite({"snacks": 1}, None, 50, 15), None),
        (False, True, False, Bite({}, 12, 50, 0), None),  # nothing to write, and the place can wait
        (False, True, True, Bite({}, None, 50, 15), 0),  # the end of a round is kept
        (False, False, False, Bite({}, 12, 50, 0), None),
        (False, False, True, Bite({}, None, 50, 0), None),
    ],
)
def test_a_bite_says_what_went_and_where_the_next_begins(
    removable: bool, whole: bool, last: bool, gives: Bite, kept: int | None, clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    found = [done("a", 11)] if removable else []
    look = Look(monkeypatch, Stretch(found, 12, last), took_ms=15)
    assert housekeeping.remove_bite(BEFORE, 3, 50, whole=whole) == gives
    assert (look.asked, place()) == ([(BEFORE, 3, 50)], kept)


@pytest.mark.parametrize(("took_ms", "size"), [(0, 200), (7, 200), (10, 150), (30, 50), (2_000, 25)])
def test_the_next_bite_suits_the_time_that_this_one_held_the_lock(
    took_ms: int, size: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Look(monkeypatch, Stretch([done("a", 1)], 1, True), took_ms)
    assert housekeeping.remove_bite(BEFORE, 0, 100) == Bite({"snacks": 1}, None, size, took_ms)


def test_of_each_queue_is_told_how_many_went_and_once_a_round_that_they_did(clock: Clock) -> None:
    for n, (queue, name) in enumerate([("snacks", "a"), ("drinks", "b"), ("snacks", "c"), ("snacks", "d")], start=1):
        done(name, n, queue=queue)
    clock.now = T + 3
    known = set[str]()
    first = housekeeping.remove_bite(BEFORE, 0, 3, told=known)
    assert (first.removed, first.after, known) == ({"snacks": 2, "drinks": 1}, 3, {"snacks", "drinks"})

    def event(queue: str, *, archived: bool = False) -> Event:
        detail = {"done_before_ms": BEFORE[queue], "archived": archived}
        return Event(T + 3, "remove_done", f"queue:{queue}", source="cli", detail=detail)

    assert told(0) == [event("drinks"), event("snacks")]
    assert housekeeping.remove_bite(BEFORE, 3, 3, told=known).removed == {"snacks": 1}
    assert (len(told(0)), buried(), there()) == (2, {"a", "b", "c", "d"}, set())
    done("e", 5, queue="drinks")
    housekeeping.remove_bite(BEFORE, 4, 3, told={"snacks"}, archive=lambda _lines: None)
    done("f", 6)
    housekeeping.remove_bite(BEFORE, 5, 3, archive=lambda _lines: None)  # nobody keeps what was told
    assert told(2) == [event("drinks", archived=True), event("snacks", archived=True)]


def test_only_what_went_is_told_and_buried(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, changed = done("a", 1), done("b", 2, queue="drinks", at_ms=T - 5)
    Look(monkeypatch, Stretch([changed, gone], 2, False))
    known = set[str]()
    assert housekeeping.remove_bite(BEFORE, 0, 9, told=known).removed == {"snacks": 1}
    assert (known, buried(), there()) == ({"snacks"}, {"a"}, {"b"})
    assert [event.target for event in told(0)] == ["queue:snacks"]
    Look(monkeypatch, Stretch([changed], 2, False))
    assert housekeeping.remove_bite(BEFORE, 0, 9, told=known) == Bite({}, 2, 25, 0)
    assert (known, len(told(0))) == ({"snacks"}, 1)


def test_the_archive_has_every_line_before_anything_goes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [done("a", 1), done("b", 2)]
    archived: list[tuple[list[str], set[str]]] = []
    Look(monkeypatch, Stretch(jobs, 2, False))
    housekeeping.remove_bite(BEFORE, 0, 9, archive=lambda lines: archived.append((list(lines), there())))
    assert archived == [([archive_line(one) for one in jobs], {"a", "b"})]
    Look(monkeypatch, Stretch([], 2, True))
    housekeeping.remove_bite(BEFORE, 0, 9, archive=pytest.fail)
    assert there() == set()


@pytest.mark.parametrize(("until", "kept_off"), [(T - 1, False), (T, False), (T + 1, True)])
def test_a_recount_keeps_a_bite_off_until_its_instant(
    until: int, kept_off: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.keep_off(places.RECOUNT, until)
    Look(monkeypatch, Stretch([done("a", 9)], 9, False))
    known = set[str]()
    bite = housekeeping.remove_bite(BEFORE, 4, 60, told=known)
    assert bite == (Bite({}, 4, 60, 0, kept_off=True) if kept_off else Bite({"snacks": 1}, 9, 120, 0))
    assert (there(), known, place()) == (({"a"}, set(), None) if kept_off else (set(), {"snacks"}, 9))


# --- a round --------------------------------------------------------------------------------------------------------
class Bites:
    """Stands in for the bites of a round; keeps what each is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *bites: Bite) -> None:
        self.bites = list(bites)
        self.asked: list[tuple[dict[str, int], int, int, Any, bool]] = []
        self.told: set[str] | None = None
        monkeypatch.setattr(housekeeping, "remove_bite", self.bite)

    def bite(self, before: dict[str, int], after: int, size: int, *, archive: Any, whole: bool, told: set[str]) -> Bite:
        assert self.told is None or told is self.told, "one round, one memory of what was told"
        assert type(told) is set
        self.told = told
        self.asked.append((before, after, size, archive, whole))
        return self.bites.pop(0)


THREE = (Bite({"snacks": 2}, 10, 50, 9), Bite({"snacks": 1, "drinks": 4}, 20, 70, 30), Bite({}, None, 25, 4))


@pytest.mark.parametrize(
    ("queue", "kept", "now_ms", "before", "first"),
    [
        (None, 0, None, {"drinks": T + 7 - 2 * DAY_MS, "snacks": T + 7 - DAY_MS}, 0),
        (None, 6, T, {"drinks": T - 2 * DAY_MS, "snacks": T - DAY_MS}, 6),
        ("snacks", 6, None, {"snacks": T + 7 - DAY_MS}, 0),
    ],
)
def test_a_round_goes_from_bite_to_bite_and_adds_them_up(
    queue: str | None, kept: int, now_ms: int | None, before: dict[str, int], first: int, clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    clock.now = T + 7
    keep(1)
    keep(2, "drinks")
    keep(None, "tea")
    places.remember(places.RETENTION, kept)
    bites, pauses, archive = Bites(monkeypatch, *THREE), list[float](), [].extend
    gave = housekeeping.remove_round(queue, archive=archive, wait=pauses.append, now_ms=now_ms)
    assert gave == Round({"snacks": 3, "drinks": 4}, 3, 30, False)  # type: ignore[arg-type]
    assert bites.asked == [
        (before, after, size, archive, queue is None) for after, size in ((first, 25), (10, 50), (20, 70))
    ]
    assert pauses == [0.009, 0.03, 0.004]


def test_a_round_that_is_kept_off_ends_there(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(1)
    bites, pauses = Bites(monkeypatch, THREE[0], Bite({}, 10, 50, 0, kept_off=True)), list[float]()
    gave = housekeeping.remove_round(wait=pauses.append)
    assert gave == Round({"snacks": 2}, 2, 9, True)  # type: ignore[arg-type]
    assert (len(bites.asked), pauses) == (2, [0.009])


@pytest.mark.parametrize(("turns", "bites"), [(0, 0), (1, 1), (2, 2), (9, 3)])
def test_a_round_ends_when_it_is_told_to(turns: int, bites: int, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(1)
    Bites(monkeypatch, *THREE)
    left = iter([False] * turns + [True] * 9)
    assert housekeeping.remove_round(wait=lambda _seconds: None, stopped=lambda: next(left)).bites == bites


@pytest.mark.parametrize("queue", [None, "tea"])
def test_a_round_without_a_rule_does_nothing(queue: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(None, "snacks")
    keep(None, "tea")
    Bites(monkeypatch)
    assert housekeeping.remove_round(queue, wait=pytest.fail) == Round()


def test_a_round_refuses_what_is_no_instant() -> None:
    with pytest.raises(ValueError, match=r"^now_ms must be"):
        housekeeping.remove_round(wait=pytest.fail, now_ms=-1)


# --- what gathers by itself -----------------------------------------------------------------------------------------
CHORES = {
    "counters folded": (counters, "fold_slots", (2_000,)),
    "minutes": (counters, "forget_minutes", (T - 8 * DAY_MS, 2_000)),
    "processes": (processes, "forget", (T - DAY_MS,)),
    "presences": (chores, "forget_presences", (T - DAY_MS, 2_000)),
    "sessions": (chores, "forget_sessions", (T, 2_000)),
    "failed sign-ins": (chores, "forget_sign_ins", (T - DAY_MS, 2_000)),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[object, ...]]:
    """What each chore was asked for; the first drops 1 row, the next 2, and so on."""
    found: dict[str, tuple[object, ...]] = {}

    def standing_in(name: str, dropped: int) -> Callable[..., int]:
        def chore(*values: object) -> int:
            assert connection.in_atomic_block, "each in a transaction of its own"
            found[name] = values
            return dropped

        return chore

    for dropped, (name, (module, function, _values)) in enumerate(CHORES.items(), start=1):
        monkeypatch.setattr(module, function, standing_in(name, dropped))
    return found


@pytest.mark.parametrize("given", [True, False])
def test_each_chore_takes_a_bite_of_what_is_too_old_for_it(
    given: bool, asked: dict[str, tuple[object, ...]], clock: Clock
) -> None:
    clock.now = 5 if given else T
    gave = housekeeping.tidy(T if given else None)
    assert [*gave.items()] == [(name, dropped) for dropped, name in enumerate(CHORES, start=1)]
    assert asked == {name: values for name, (_module, _function, values) in CHORES.items()}


def test_the_turn_comes_once_a_minute_and_its_instant_is_that_of_the_chores(
    asked: dict[str, tuple[object, ...]], clock: Clock
) -> None:
    clock.now = T
    assert housekeeping.tidy_if_due() == {name: dropped for dropped, name in enumerate(CHORES, start=1)}
    assert asked["sessions"] == (T, 2_000)
    asked.clear()
    assert housekeeping.tidy_if_due(T + MINUTE_MS - 1) is None
    assert asked == {}
    assert housekeeping.tidy_if_due(T + MINUTE_MS) is not None
    assert asked["sessions"] == (T + MINUTE_MS, 2_000)
    assert housekeeping.tidy_if_due(T + 2 * MINUTE_MS - 1) is None
