"""The headline and the needs, from hand-made numbers."""

from dataclasses import replace

import pytest

from queue_app.policy.figures import (
    Bucket,
    Figures,
    GroupFigures,
    Look,
    Oldest,
    ProcessFigures,
    QueueFigures,
    Results,
    StateFigures,
    Surge,
    Unknown,
)
from queue_app.policy.filters import Filter
from queue_app.policy.headlines import headline, needs, surge_hour_ms, surge_minute_ms, wave_causes
from queue_app.policy.windows import HOUR_MS, MINUTE_MS

NOW = 1_800_000_000_000
CALM = Figures(
    as_of_ms=NOW,
    states=StateFigures(done=10),
    queues=(),
    groups=(),
    by_reason=(),
    by_code=(),
    oldest=None,
    look=None,
    since_look=0,
    results=Results(),
    late_finishes=0,
    windows=(),
    hours=(),
    recent=0,
    recent_since_ms=NOW - 300_000,
    surge=None,
    last_delivery_ms=NOW - 4_000,
    unknown=Unknown(0, 0, 0, 0, exact=True),
    processes=(),
)
LOOK = Look(1, NOW - 9_000, NOW - 9_500, 3, "oda", "group", "", "INC-1", "looking", 5)


def group(code: str, n: int, *, look: Look | None = None, since: int | None = None) -> GroupFigures:
    return GroupFigures(
        "snacks",
        "exhausted",
        code,
        n,
        NOW - HOUR_MS,
        NOW,
        (0,) * 24,
        0,
        look,
        n if since is None else since,
        NOW,
        Results(),
        True,
    )


def test_nothing_needs_a_person() -> None:
    said = headline(CALM)
    assert (said.kind, said.last_delivery_ms) == ("calm", NOW - 4_000)
    assert headline(replace(CALM, states=StateFigures())).kind == "empty"


def test_the_night_of_fifty_thousand() -> None:
    wave = Surge(
        NOW - HOUR_MS, 49_200, ((("snacks", "exhausted", "http_503"), 49_000), (("snacks", "permanent", ""), 200))
    )
    said = headline(
        replace(
            CALM,
            states=StateFigures(dead=50_000),
            groups=(group("http_503", 49_000), group("", 1_000)),
            oldest=Oldest("o1", NOW - 9 * HOUR_MS),
            surge=wave,
            recent=96,
        )
    )
    assert (said.kind, said.total, said.wave, said.since_ms) == ("dead", 50_000, 49_200, NOW - HOUR_MS)
    assert (said.causes, said.cause, said.growing, said.looked) == (
        1,
        ("snacks", "exhausted", "http_503"),
        True,
        "nobody",
    )
    assert said.filter == Filter("snacks", "exhausted", "http_503", died_from_ms=NOW - HOUR_MS)


@pytest.mark.parametrize(
    ("groups", "looked", "unlooked"),
    [
        ((group("a", 5), group("b", 2)), "nobody", 7),
        ((group("a", 5, look=LOOK, since=0), group("b", 2)), "some", 2),
        ((group("a", 5, look=LOOK, since=1),), "some", 1),
        ((group("a", 5, look=LOOK, since=0),), "all", 0),
        ((replace(group("a", 5), part=LOOK), group("b", 2)), "part", 7),
        ((replace(group("a", 5), part=LOOK), group("b", 2, look=LOOK, since=0)), "some", 5),
    ],
)
def test_whether_anybody_looked(groups: tuple[GroupFigures, ...], looked: str, unlooked: int) -> None:
    said = headline(replace(CALM, states=StateFigures(dead=7), groups=groups))
    assert (said.looked, said.unlooked) == (looked, unlooked)
    assert (said.wave, said.since_ms, said.growing) == (0, None, False)


def test_needs_come_in_the_order_of_urgency_with_their_filters() -> None:
    looked, unseen = group("a", 9, look=LOOK, since=4), group("b", 3)
    found = needs(
        replace(
            CALM,
            queues=(
                QueueFigures("snacks", "independent", False, True, StateFigures(new=2, retrying=1), 0),
                QueueFigures("paused", "independent", True, True, StateFigures(new=2), 0),
                QueueFigures("served", "independent", False, True, StateFigures(new=2), 1),
            ),
            groups=(looked, unseen, group("c", 1, look=LOOK, since=0)),
            unknown=Unknown(3, 2, 1, 0, exact=True),
            processes=(
                ProcessFigures("w1", "worker", "served", "alive", 0, NOW, "disk_full"),
                ProcessFigures("w2", "worker", "served", "silent", 0, NOW - 60_000, "disk_full"),
                ProcessFigures("w3", "worker", "served", "stopped", 0, NOW - 60_000, ""),
            ),
        )
    )
    assert [(need.kind, need.n or need.process or need.queue) for need in found] == [
        ("no_worker", 3),
        ("disk_full", "w1"),
        ("silent", "w2"),
        ("lease_over", 2),
        ("unproved", 1),
        ("unseen", 3),
        ("died_since", 4),
    ]
    assert found[5].filter == Filter("snacks", "exhausted", "b")
    assert found[6].filter == Filter("snacks", "exhausted", "a", died_from_ms=LOOK.as_of_ms)


@pytest.mark.parametrize(
    ("carried", "kind", "state", "needed"),
    [
        (2, "redriver", "silent", True),
        (2, "redriver", "stopped", True),
        (2, "worker", "alive", True),
        (2, "redriver", "alive", False),
        (0, "redriver", "stopped", False),
    ],
)
def test_redrives_that_nobody_carries_out_need_a_person(carried: int, kind: str, state: str, needed: bool) -> None:
    process = ProcessFigures("p", kind, "", state, 0, NOW, "")
    found = needs(replace(CALM, processes=(process,), carried=carried))
    assert [need.n for need in found if need.kind == "no_redriver"] == ([carried] if needed else [])


def test_without_dead_orders_another_trouble_is_the_headline() -> None:
    lonely = QueueFigures("snacks", "independent", False, True, StateFigures(new=1), 0)
    assert headline(replace(CALM, queues=(lonely,))).kind == "trouble"


def hours(*still: int) -> list[Bucket]:
    return [Bucket(place * HOUR_MS, n, 0, n) for place, n in enumerate(still)]


@pytest.mark.parametrize(
    ("still", "total", "place"),
    [
        ((0, 0, 0, 500), 500, 3),
        ((3, 0, 1, 500), 504, 3),
        ((3, 0, 400, 500), 903, 2),
        ((3, 60, 400, 500, 0, 0), 963, 1),
        ((10, 10, 10, 10), 40, 0),
        ((0, 0, 0, 0), 0, None),
        ((0, 0, 0, 5), 900, None),
    ],
)
def test_the_hour_in_which_a_wave_began(still: tuple[int, ...], total: int, place: int | None) -> None:
    assert surge_hour_ms(hours(*still), total) == (None if place is None else place * HOUR_MS)


@pytest.mark.parametrize(("still", "place"), [((1, 0, 0, 90, 80), 3), ((0, 2, 2), 1), ((0, 0), None), ((), None)])
def test_the_minute_in_which_it_began(still: tuple[int, ...], place: int | None) -> None:
    buckets = [Bucket(at * MINUTE_MS, n, 0, n) for at, n in enumerate(still)]
    assert surge_minute_ms(buckets) == (None if place is None else place * MINUTE_MS)


def test_causes_of_a_wave_are_the_fewest_that_explain_nine_tenths() -> None:
    a, b, c = (("q", "exhausted", code) for code in "abc")
    assert wave_causes(Surge(0, 100, ((a, 90), (b, 9), (c, 1)))) == [a]
    assert wave_causes(Surge(0, 100, ((a, 50), (b, 45), (c, 5)))) == [a, b]
