"""The trial and the breaker of a batch: the whole tick, the whole row, the whole event; and what is drawn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from queue_app.models import PlanGroup, PlanItem
from queue_app.policy.approvals import Tightening
from queue_app.policy.terms import Terms
from queue_app.services import ticks
from queue_app.store import plans
from tests.redrive import story
from tests.services.batch_steps import (
    JOB,
    TWO,
    Before,
    Case,
    at_work,
    changed,
    check,
    ends,
    filled,
    items,
    now,
    of_trial,
    running,
    skipping,
    step,
    then,
    tick,
    wait,
)
from tests.services.told import World

pytestmark = pytest.mark.django_db
CAUSE, OTHER = ("permanent", "http_422"), ("permanent", "http_410")
SENDING = {"redriven": 1, "level_uj": 0}


def left(why: str, **detail: int) -> dict[str, Any]:
    return {"why": why, "round": 1, "redriven": 2, "skipped": 0, "left": 3} | detail


SENT = {"canary_drawn": True, "canary_sent_at_ms": now}
TRIALS = {
    "it starts with the trial": Case(running(5, TWO), tick(redriven=1, due=100), SENDING, [at_work(1, trial=True)]),
    "whose time does not count": Case(
        running(5, TWO, wait=20), tick(redriven=1, due=80), {"redriven": 1, **filled(200_000, 0)},
        [at_work(1, trial=True)],
    ),
    "at the pace of the first step": Case(
        running(5, Terms(100_000, steps=((10_000, 2),), canary=2), wait=20, ran_ms=9_000), tick(redriven=1, due=80),
        {"redriven": 1, **filled(200_000, 9_000)}, [at_work(1, trial=True)],
    ),
    "and with what is drawn for it alone": Case(
        running(5, TWO, wait=10_000), tick(redriven=2, due=1),  # TWO: 3 orders in the bucket
        {"redriven": 2, **filled(1_500_000, 0)}, [at_work(2, trial=True)],
    ),
    "bite by bite": Case(
        running(5, TWO, wait=10_000), tick(redriven=1, due=1), {"redriven": 1, **filled(2_500_000, 0)},
        [at_work(1, trial=True)], (("bite", 1),),
    ),
    "one of it that failed is tried again": Case(
        then(running(5, TWO), step, wait(100), lambda w: items(w, [2], tries=1, at_ms=w.clock.now)),
        tick(redriven=1, due=100), {"redriven": 2, **filled(0, 0)}, [at_work(1, trial=True)],
    ),
    "but not before its time": Case(
        then(running(5, TWO), step, wait(100), lambda w: items(w, [2], tries=1, at_ms=w.clock.now + 400)),
        tick(due=400), filled(JOB, 0),
    ),
    "a clock that was set back lets nobody pass": Case(
        running(5, TWO, wait=-5_000, level_uj=JOB - 1), tick(due=1), {"level_at_ms": now}
    ),
    "its results are waited for": Case(
        then(running(5, TWO, wait=10_000), step), tick(due=250), SENT
    ),
    "look by look": Case(of_trial(), tick(due=250), {}),
    "half of them tell nothing": Case(of_trial(5, TWO, ends("ok")), tick(due=250), {}),
    "nor does one death of two": Case(of_trial(5, TWO, ends("permanent")), tick(due=250), {}),
    "a good one lets the rest go": Case(
        of_trial(5, TWO, ends("ok", "permanent")), tick(redriven=2, due=100),
        {"redriven": 4, "next_pos": 5, "canary_passed": True, **filled(0, 0)}, [at_work(2)],
    ),
    "or at least notes that it was good": Case(
        then(running(9, replace(TWO, rate_mj=100_000), wait=40), step, step, ends("ok", "ok"), wait(10)), tick(due=10),
        {"canary_passed": True, **filled(4 * JOB, 0)},
    ),
    "two deaths of two halt it": Case(
        of_trial(5, TWO, ends("permanent", "permanent")), tick("halted"),
        {"state": "halted", "why": "canary_deaths", "changed_at_ms": now}, [("batch.halt", left("canary_deaths"))],
    ),
    "silence is borne": Case(of_trial(5, TWO, wait(59_899)), tick(due=250), {}),
    "for its time": Case(
        of_trial(5, TWO, wait(59_900)), tick("paused"),
        {"state": "paused", "why": "canary_silent", "changed_at_ms": now}, [("batch.pause", left("canary_silent"))],
    ),
    "what was skipped is not left": Case(
        of_trial(7, TWO, wait(60_000), skipped=3), tick("paused"),
        {"state": "paused", "why": "canary_silent", "changed_at_ms": now},
        [("batch.pause", left("canary_silent", skipped=3, left=2))],
    ),
    "without a limit nothing is waited for": Case(
        of_trial(), tick(redriven=2, due=100),
        {"redriven": 4, "next_pos": 5, "canary_passed": True, **filled(0, 0)}, [at_work(2)],
        (("bite", 2), ("unlimited", True)),
    ),
    "but deaths count": Case(
        of_trial(5, TWO, ends("permanent", "permanent")), tick("halted"),
        {"state": "halted", "why": "canary_deaths", "changed_at_ms": now}, [("batch.halt", left("canary_deaths"))],
        (("unlimited", True),),
    ),
    "a trial that was sent is not drawn again": Case(of_trial(canary=4), tick(due=250), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", TRIALS.values(), ids=list(TRIALS))
def test_the_trial(world: World, case: Case) -> None:
    check(case, world)


def two_causes(canary: int, left_out: tuple[tuple[str, str], ...] = ()) -> Before:
    """Three orders of another cause, then three of the usual one."""

    def before(w: World) -> None:
        story.die(3, code="http_410")
        story.die(3, first=4, code="http_422")
        w.plan = story.ask(w.oda, terms=Terms(10_000, canary=canary))
        story.approve(w.tom, w.plan, tightening=Tightening(left_out=left_out))
        assert ticks.begin(w.plan.pk)
        w.clock.advance(350)
        changed(w)

    return before


def had_turns(cause: tuple[str, str], redriven: int, skipped: int) -> Callable[[World], object]:
    return lambda w: PlanGroup.objects.filter(plan=w.plan, reason=cause[0], code=cause[1]).update(
        redriven=redriven, skipped=skipped
    )


DRAWN = {
    "the oldest": (running(5, TWO), [1, 2]),
    "from the place where the batch is": (running(5, TWO, next_pos=3), [3, 4]),
    "no more than there are": (running(3, Terms(10_000, canary=9)), [1, 2, 3]),
    "of every cause": (two_causes(2), [1, 4]),
    "but not of one that was left out": (two_causes(2, (OTHER,)), [4, 5]),
    "by what was not redriven": (then(two_causes(3), had_turns(OTHER, 2, 0)), [1, 4, 5]),
    "nor skipped": (then(two_causes(3), had_turns(OTHER, 0, 2)), [1, 4, 5]),
    "the other way around": (then(two_causes(3), had_turns(CAUSE, 1, 1)), [1, 2, 4]),
    "another one for one that was skipped": (then(skipping(running(5, TWO), [1]), step, wait(100)), [1, 2, 3]),
    "none for one that was redriven": (then(running(5, TWO), step, wait(100)), [1, 2]),
}


@pytest.mark.parametrize(("before", "drawn"), DRAWN.values(), ids=list(DRAWN))
def test_what_is_drawn_for_the_trial(world: World, before: Before, drawn: list[int]) -> None:
    before(world)
    step(world)
    found = PlanItem.objects.filter(plan=world.plan, canary=1).order_by("pos")
    assert list(found.values_list("pos", flat=True)) == drawn
    assert PlanItem.objects.filter(plan=world.plan, canary=0).count() == world.plan.planned - len(drawn)


# --- the breaker ----------------------------------------------------------------------------------------------------

ONE_DEATH = Terms(10_000, canary=0, stop_permille=10)  # of the last hundred
GOES_ON = Case(
    running(0), tick(redriven=1, due=100), {"redriven": 2, "next_pos": 3, **filled(0, 100)}, [at_work(1)]
)  # fmt: skip


def one_ended(outcome: str = "permanent", terms: Terms = ONE_DEATH, **columns: Any) -> Before:
    return then(running(5, terms), step, ends(outcome), wait(100), lambda w: changed(w, **columns))


def halted(**detail: int) -> tuple[str, dict[str, Any]]:
    return "batch.halt", {"why": "breaker", "round": 1, "redriven": 1, "skipped": 0, "left": 4} | detail


HALTED = {"state": "halted", "why": "breaker", "changed_at_ms": now}
BREAKERS = {
    "enough deaths halt it": Case(one_ended(), tick("halted"), HALTED, [halted()]),
    "what was skipped is not left": Case(one_ended(skipped=2), tick("halted"), HALTED, [halted(skipped=2, left=2)]),
    "fewer do not": replace(GOES_ON, before=one_ended(terms=replace(ONE_DEATH, stop_permille=11))),
    "nor what was delivered": replace(GOES_ON, before=one_ended("ok")),
    "nor what died before the round": replace(
        GOES_ON, before=then(one_ended(), lambda w: changed(w, round_outcome=plans.last_outcome(w.plan.pk)))
    ),
    "nor what was redriven before it": replace(
        GOES_ON, before=then(one_ended(), lambda w: changed(w, round_at_ms=w.clock.now))
    ),
}


@pytest.mark.parametrize("case", BREAKERS.values(), ids=list(BREAKERS))
def test_the_breaker(world: World, case: Case) -> None:
    check(case, world)
