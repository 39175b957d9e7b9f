"""Counters against rows: finding every difference, and putting it right while workers, redrivers and pages go on.

Readers never see a half: what is wrong is added in one transaction, and what is right is not touched.
"""

from collections.abc import Callable
from dataclasses import dataclass

from queue_app.policy.recounting import Difference, differences
from queue_app.policy.windows import HOUR_MS, MINUTES_USED_MS, ceiling
from queue_app.store import chain, database, recounts
from queue_app.store.chain import Event

TRIES = 3


@dataclass(frozen=True, slots=True)
class Report:
    """What disagreed at an instant, and whether it was put right."""

    as_of_ms: int
    differences: tuple[Difference, ...]
    mended: bool


def check(*, wait: Callable[[float], object], now_ms: int | None = None) -> Report:
    """Compare every counter with its rows; nothing is changed."""
    now = database.instant(now_ms)
    found, _ = _measured(now, wait)
    return Report(now, tuple(found), mended=False)


def rebuild(*, wait: Callable[[float], object], now_ms: int | None = None) -> Report:
    """Compare, and add what is missing, with one event in the record. Exact although work goes on meanwhile.

    Raises `recounts.Recounted` when others corrected the counters each time that it tried to.
    """
    for left in range(TRIES, 0, -1):
        now = database.instant(now_ms)
        found, corrections = _measured(now, wait)
        if not found:
            return Report(now, (), mended=False)
        try:
            _mend(found, corrections, now_ms)
            return Report(now, tuple(found), mended=True)
        except recounts.Recounted:
            if left == 1:
                raise
    raise AssertionError("unreachable")


@database.retried
def _mend(found: list[Difference], corrections: int, now_ms: int | None) -> None:
    with database.write():
        recounts.correct(found, corrections)
        chain.append([_event(found, database.instant(now_ms))])


def _measured(now: int, wait: Callable[[float], object]) -> tuple[list[Difference], int]:
    stored, counted, corrections = recounts.measure(ceiling(now - MINUTES_USED_MS, HOUR_MS), wait)
    return differences(stored, counted), corrections


def _event(found: list[Difference], now: int) -> Event:
    return Event(at_ms=now, action="recount", target="counters", source="cli", detail={"corrected": len(found)})
