"""Letting a worker finish and end: whole receipts, rows and events; and what a sign of life leaves alone."""

from collections.abc import Callable
from typing import Any

import pytest

from queue_app.models import Process
from queue_app.policy.errors import InvalidNote, NotAllowed
from queue_app.services import life_signs, workers
from queue_app.services.life_signs import Work
from queue_app.services.workers import StartedAnew, UnknownWorker, WorkerReceipt
from tests.services.told import DEACTIVATED, LEADS, WAYS, Case, Refused, World, by_way, check

pytestmark = pytest.mark.django_db

LONG = "w" * 128


@pytest.fixture(autouse=True)
def crew(world: World) -> None:
    """A worker that lives, one with the longest name, one that was told, one that ended, one that is lost, and a redriver."""
    for name in ("w1", LONG, "told", "ended", "lost"):
        life_signs.arrive(name, "worker", "snacks", Work("h1", 4))
    life_signs.arrive("r1", "redriver")
    Process.objects.filter(pk="told").update(draining=True)
    Process.objects.filter(pk="ended").update(stopped_at_ms=world.clock.now)
    world.more["began"] = world.clock.now
    world.clock.advance(3_600_000)


def draining() -> set[str]:
    return set(Process.objects.filter(draining=True).values_list("name", flat=True))


def drain(who: str | Callable[[World], Any], name: str, **more: Any) -> Callable[[World], object]:
    person = (lambda w: getattr(w, who)) if isinstance(who, str) else who
    return lambda w: workers.drain(person(w), name, **{k: v(w) if callable(v) else v for k, v in more.items()}, **w.how)


def receipt(name: str, *, first: bool, stopped: bool = False) -> Callable[[World], WorkerReceipt]:
    return lambda w: WorkerReceipt(name, first, stopped, w.clock.now)


def drained(name: str, target: str, note: str = "") -> Callable[[World], Any]:
    told = {"worker": name, "queue": "snacks", "host": "h1"}
    return lambda w: [w.event(w.tom, "drain_worker", target, note=note, **told, started_at_ms=w.more["began"])]


def refused(who: str, why: str) -> Callable[[World], Any]:
    return lambda w: w.refused(getattr(w, who), "drain_worker", "worker:w1", why)


def unknown(name: str) -> Callable[[World], Refused]:
    return lambda _w: Refused(UnknownWorker, f"No worker {name} ever said that it lives.")


CASES = {
    "a lead's": (Case(drain("tom", "w1", note="INC-1"), receipt("w1", first=True),
                      drained("w1", "worker:w1", "INC-1")), {"w1"}),
    "as it was seen": (Case(drain("tom", "w1", started_at_ms=lambda w: w.more["began"]), receipt("w1", first=True),
                            drained("w1", "worker:w1")), {"w1"}),
    "the longest name": (Case(drain("tom", LONG), receipt(LONG, first=True), drained(LONG, "worker:" + "w" * 121)), {LONG}),
    "one that is lost": (Case(drain("tom", "lost"), receipt("lost", first=True), drained("lost", "worker:lost")), {"lost"}),
    "a second word": (Case(drain("tom", "told"), receipt("told", first=False)), set()),
    "too late": (Case(drain("tom", "ended"), receipt("ended", first=False, stopped=True)), set()),
    "an operator's": (Case(drain("oda", "w1"), lambda _w: Refused(NotAllowed, LEADS), refused("oda", LEADS)), set()),
    "an auditor's": (Case(drain("ada", "w1"), lambda _w: Refused(NotAllowed, LEADS), refused("ada", LEADS)), set()),
    "one who is gone": (Case(drain(World.gone, "w1"), lambda _w: Refused(NotAllowed, DEACTIVATED),
                             refused("tom", DEACTIVATED)), set()),
    "a redriver": (Case(drain("tom", "r1"), unknown("r1")), set()),
    "nobody": (Case(drain("tom", "w2"), unknown("w2")), set()),
    "no name": (Case(drain("oda", "a\0b"), unknown(r"'a\x00b'")), set()),
    "another by that name": (Case(drain("tom", "w1", started_at_ms=lambda w: w.more["began"] - 1), lambda _w: Refused(
        StartedAnew, "w1 has begun anew since you looked: look again.")), set()),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(("case", "told"), CASES.values(), ids=list(CASES))
def test_a_worker_is_told_once_and_by_a_lead(world: World, way: dict[str, str], case: Case, told: set[str]) -> None:
    check(case, by_way(world, way))
    assert draining() == {"told", *told}


def test_a_ticket_that_cannot_be_meant_is_refused_before_anybody_is_asked(world: World) -> None:
    with pytest.raises(InvalidNote):
        workers.drain(world.ada, "w1", note="a b")
    assert draining() == {"told"}


def test_signs_of_life_leave_the_word_alone_and_a_new_start_takes_it_away(world: World) -> None:
    workers.drain(world.tom, "w1")
    for work in (None, Work("h1", 4, 7)):
        life_signs.beat("w1", "worker", "snacks", work=work)
        assert "w1" in draining()
    life_signs.arrive("w1", "worker", "snacks", Work("h1", 4))
    assert "w1" not in draining()
    life_signs.beat("w1", "worker", "snacks", work=Work(draining=True))
    assert "w1" in draining(), "one that ends by itself says so"
