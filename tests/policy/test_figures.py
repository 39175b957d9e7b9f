"""Sums, ratios and filters of the figures, from hand-made numbers."""

import pytest

from queue_app.policy.figures import GroupFigures, Look, Ratio, Results, StateFigures, Window
from queue_app.policy.filters import Filter

STATES = StateFigures(new=1, retrying=20, redriven=300, leased=4_000, done=50_000, dead=600_000)


@pytest.mark.parametrize(
    ("ratio", "value"),
    [(Ratio(0, 0), None), (Ratio(3, 0), None), (Ratio(0, 4), 0.0), (Ratio(1, 4), 0.25), (Ratio(4, 4), 1.0)],
)
def test_a_part_of_nothing_has_no_share(ratio: Ratio, value: float | None) -> None:
    assert ratio.value == value


def test_every_state_counts_once_and_completion_is_of_all() -> None:
    assert (STATES.pending, STATES.total) == (321, 654_321)
    assert STATES.completion == Ratio(50_000, 654_321)
    assert StateFigures().completion == Ratio(0, 0)


def test_success_is_of_the_redrives_that_came_to_an_end() -> None:
    results = Results(waiting=1, done=20, dead_same=300, dead_other=4_000)
    assert (results.redriven, results.success) == (4_321, Ratio(20, 4_320))
    assert (Results().redriven, Results(waiting=3).success) == (0, Ratio(0, 0))


@pytest.mark.parametrize("look", [None, Look(1, 900, 800, 3, "oda", "group", "", "INC-1", "", 5)])
def test_a_group_has_the_filters_of_its_orders_and_of_those_since_the_last_look(look: Look | None) -> None:
    group = GroupFigures(
        "snacks", "exhausted", "http_503", 9, 1, 2, (0,) * 24, 0, look, 4, 850, Results(), effect_possible=True
    )
    assert group.filter == Filter(queue="snacks", reason="exhausted", code="http_503")
    since = look.as_of_ms if look else None
    assert group.since_filter == Filter(queue="snacks", reason="exhausted", code="http_503", died_from_ms=since)


@pytest.mark.parametrize("since_ms", [None, 5])
def test_a_window_has_the_filter_of_its_beginning(since_ms: int | None) -> None:
    assert Window("24h", since_ms, 7, 6).filter == Filter(died_from_ms=since_ms)
