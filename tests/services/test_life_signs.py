"""Signs of life: every column that a process tells, who is forgotten, and what is tidied on the way."""

from typing import Any

import pytest

from queue_app.models import Process
from queue_app.policy.windows import DAY_MS
from queue_app.services import life_signs
from queue_app.services.life_signs import Work
from queue_app.store import counters
from tests.conftest import Clock

pytestmark = pytest.mark.django_db

WORK = Work("h1", 4, 120, 7, 2_500, True)
NOTHING = {"host": "", "concurrency": 1, "ended_n": 0, "failed_n": 0, "rate_mj": 0, "draining": False}
TOLD = {"host": "h1", "concurrency": 4, "ended_n": 120, "failed_n": 7, "rate_mj": 2_500, "draining": True}


def rows() -> dict[str, dict[str, Any]]:
    """Every column of every process."""
    return {row.pop("name"): row for row in Process.objects.order_by("name").values()}


def row(started: int, seen: int, *, stopped: int | None = None, detail: str = "", **more: Any) -> dict[str, Any]:
    times = {"started_at_ms": started, "seen_at_ms": seen, "stopped_at_ms": stopped}
    return {"kind": "worker", "queue": "snacks", "detail": detail, **times, **NOTHING, **more}


def test_work_that_nothing_is_told_of() -> None:
    assert Work() == Work(host="", concurrency=1, ended=0, failed=0, rate_mj=0, draining=False)
    assert life_signs.BEAT_MS == 5_000


def test_a_life_from_its_arrival_to_its_end(clock: Clock) -> None:
    began = clock.now
    life_signs.arrive("w1", "worker", "snacks")
    assert rows() == {"w1": row(began, began)}
    clock.advance(5)
    life_signs.beat("w1", "worker", "snacks", "disk_full", WORK)
    assert rows() == {"w1": row(began, began + 5, detail="disk_full", **TOLD)}
    clock.advance(5)
    life_signs.beat("w1", "worker", "snacks")
    assert rows() == {"w1": row(began, began + 10, **TOLD)}, "what was told of the work stays"
    clock.advance(5)
    life_signs.leave("w1", Work("h1", 4, 130, 8))
    ended = {**TOLD, "ended_n": 130, "failed_n": 8, "rate_mj": 0, "draining": False}
    assert rows() == {"w1": row(began, began + 15, stopped=began + 15, **ended)}
    clock.advance(5)
    life_signs.arrive("w1", "worker", "snacks", WORK)
    assert rows() == {"w1": row(began + 20, began + 20, **TOLD)}, "it lives again, from now on"
    clock.advance(5)
    life_signs.leave("w1")
    assert rows() == {"w1": row(began + 20, began + 25, stopped=began + 25, **TOLD)}


def test_a_redriver_belongs_to_no_queue_and_a_beat_alone_is_an_arrival(clock: Clock) -> None:
    life_signs.arrive("r1", "redriver")
    life_signs.beat("r2", "redriver")
    assert rows() == {name: row(clock.now, clock.now, kind="redriver", queue="") for name in ("r1", "r2")}


def test_who_was_not_seen_for_a_day_is_forgotten_at_the_next_arrival(clock: Clock) -> None:
    for name, ago in (("old", DAY_MS + 1), ("border", DAY_MS), ("young", DAY_MS - 1)):
        Process.objects.create(name=name, kind="worker", started_at_ms=0, seen_at_ms=clock.now - ago)
    life_signs.beat("w1", "worker")
    assert set(rows()) == {"old", "border", "young", "w1"}
    life_signs.arrive("w2", "worker")
    assert set(rows()) == {"border", "young", "w1", "w2"}


def test_an_arrival_tidies_a_bounded_number_of_rows(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    for chore in ("fold_slots", "forget_minutes"):
        monkeypatch.setattr(counters, chore, lambda *given, chore=chore: asked.append((chore, *given)))
    life_signs.beat("w1", "worker")
    life_signs.leave("w1")
    assert asked == []
    life_signs.arrive("w1", "worker")
    assert asked == [("fold_slots", 2_000), ("forget_minutes", clock.now - 8 * DAY_MS, 2_000)]
