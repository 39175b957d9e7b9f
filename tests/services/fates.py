"""What may befall an order between its place on a list and its turn: each takes the item, and gives the one to be tried."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from queue_app.models import Job
from queue_app.store.items import Item
from tests.redrive import story
from tests.services.batch_steps import changed, gone
from tests.services.told import World


def aged(ms: int) -> Callable[[World, Item], Item]:
    """It died so long ago."""

    def meddle(w: World, item: Item) -> Item:
        w.clock.now = Job.objects.get(pk=item.job_id).changed_at_ms + ms
        return item

    return meddle


def left(w: World, item: Item) -> Item:
    """It went back some other way."""
    gone(w, [item.pos])
    return item


def died_again(w: World, item: Item) -> Item:
    story.work("permanent", code="http_422")
    return item


def of_plan(**columns: Any) -> Callable[[World, Item], Item]:
    def meddle(w: World, item: Item) -> Item:
        changed(w, **columns)
        return item

    return meddle


def both(*steps: Callable[[World, Item], Item]) -> Callable[[World, Item], Item]:
    def meddle(w: World, item: Item) -> Item:
        for step in steps:
            item = step(w, item)
        return item

    return meddle


def frozen_as(**fields: Any) -> Callable[[World, Item], Item]:
    return lambda _w, item: replace(item, **fields)


def no_row(_w: World, item: Item) -> Item:
    """PostgreSQL and SQLite keep dead orders from being deleted, so the item names another."""
    return replace(item, job_id="nobody")
