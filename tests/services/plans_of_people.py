"""What stands before a person's move in a redrive."""

from dataclasses import replace

from queue_app.models import Plan
from queue_app.policy.terms import Terms
from queue_app.services import batches, plans, ticks
from queue_app.services.receipts import Receipt
from tests.redrive import story
from tests.services.told import World

TERMS = Terms(10_000, canary=0)


def proposed(w: World) -> None:
    """Three orders of one cause died, and Oda asks for them."""
    story.die(3, code="http_422")  # surely not delivered, so that no number is typed
    w.clock.advance(1_000)
    w.plan = story.ask(w.oda, terms=TERMS)
    w.clock.advance(1_000)


def mixed(w: World) -> None:
    """Two causes, in a queue that has them twice and once; with a trial and a slow rate."""
    story.die(2)
    story.die(1, first=3, code="http_422")
    w.clock.advance(1_000)
    w.plan = story.ask(w.oda, terms=replace(TERMS, canary=2), comment="all of it")
    w.clock.advance(1_000)


def approved(w: World) -> None:
    """And Tom approved it."""
    proposed(w)
    story.approve(w.tom, w.plan)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def running(w: World) -> None:
    """It runs, one order was redriven and one skipped."""
    approved(w)
    assert ticks.begin(w.plan.pk)
    Plan.objects.filter(pk=w.plan.pk).update(redriven=1, skipped=1)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def paused(w: World) -> None:
    """Oda paused it."""
    running(w)
    batches.pause(w.oda, w.plan.pk)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def unbegun(w: World) -> None:
    """Oda paused it before it began."""
    approved(w)
    batches.pause(w.oda, w.plan.pk)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def halfway(w: World) -> None:
    """One of three was redriven and delivered, then Oda paused it; the round left its traces."""
    approved(w)
    assert ticks.begin(w.plan.pk)
    assert ticks.tick(w.plan.pk).redriven == 1
    assert story.work() == 1
    batches.set_pace(w.oda, w.plan.pk, 5_000)
    batches.pause(w.oda, w.plan.pk)
    traces = {"ran_ms": 5, "canary_drawn": True, "canary_sent_at_ms": 7, "solo": True}
    Plan.objects.filter(pk=w.plan.pk).update(**traces)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def silent(w: World) -> None:
    """Its trial fell silent."""
    running(w)
    Plan.objects.filter(pk=w.plan.pk).update(state="paused", why="canary_silent")
    w.plan.refresh_from_db()


def stopped(w: World) -> None:
    """Oda stopped it."""
    running(w)
    batches.stop(w.oda, w.plan.pk)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def withdrawn(w: World) -> None:
    """Oda took it back."""
    proposed(w)
    plans.withdraw(w.oda, w.plan.pk)
    w.clock.advance(1_000)
    w.plan.refresh_from_db()


def stood(w: World, receipt: Receipt) -> tuple[Receipt, dict[str, object]]:
    """The receipt, and the columns of the plan that are not as they were before the move."""
    before = {name: value for name, value in vars(w.plan).items() if not name.startswith("_")}
    after = Plan.objects.values().get(pk=receipt.plan)
    return receipt, {name: value for name, value in after.items() if value != before[name]}
