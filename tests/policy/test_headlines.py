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
from queue_app.policy.headlines import (
    ATTENTION,
    Headline,
    Need,
    headline,
    needs,
    surge_hour_ms,
    surge_minute_ms,
    wave_causes,
)
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


@pytest.mark.parametrize(
    ("states", "kind"), [(StateFigures(done=10), "calm"), (StateFigures(leased=1), "calm"), (StateFigures(), "empty")]
)
def test_nothing_needs_a_person(states: StateFigures, kind: str) -> None:
    said = headline(replace(CALM, states=states))
    assert said == Headline(kind, last_delivery_ms=NOW - 4_000)
    assert needs(CALM) == []


CAUSE = ("snacks", "exhausted", "http_503")


def test_the_night_of_fifty_thousand() -> None:
    wave = Surge(NOW - HOUR_MS, 49_200, ((CAUSE, 49_000), (("snacks", "permanent", ""), 200)))
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
    assert said == Headline(
        kind="dead",
        total=50_000,
        wave=49_200,
        since_ms=NOW - HOUR_MS,
        oldest_ms=NOW - 9 * HOUR_MS,
        causes=1,
        smaller=1,
        cause=CAUSE,
        growing=True,
        recent=96,
        looked="nobody",
        unlooked=50_000,
        last_delivery_ms=NOW - 4_000,
    )
    assert said.filter == Filter("snacks", "exhausted", "http_503", died_from_ms=NOW - HOUR_MS)


def test_without_a_wave_the_causes_are_all_groups_and_the_last_look_has_its_instant_and_name() -> None:
    said = headline(
        replace(
            CALM,
            states=StateFigures(dead=7),
            groups=(group("a", 5, look=LOOK, since=0), group("b", 2)),
            look=LOOK,
            recent=1,
            last_delivery_ms=None,
        )
    )
    assert said == Headline(
        kind="dead",
        total=7,
        causes=2,
        cause=("snacks", "exhausted", "a"),
        growing=True,
        recent=1,
        looked="some",
        unlooked=2,
        looked_at_ms=NOW - 9_000,
        looked_by="oda",
    )


def test_dead_orders_without_any_cause_yet_have_a_headline_too() -> None:
    said = headline(replace(CALM, states=StateFigures(dead=1)))
    assert said == Headline("dead", total=1, last_delivery_ms=NOW - 4_000)


@pytest.mark.parametrize(
    ("cause", "causes", "expected"),
    [
        (CAUSE, 1, Filter(*CAUSE, died_from_ms=NOW)),
        (CAUSE, 2, Filter(died_from_ms=NOW)),
        (None, 1, Filter(died_from_ms=NOW)),
        (None, 0, Filter(died_from_ms=NOW)),
    ],
)
def test_it_speaks_of_one_cause_or_of_the_whole_wave(
    cause: tuple[str, str, str] | None, causes: int, expected: Filter
) -> None:
    assert Headline("dead", since_ms=NOW, cause=cause, causes=causes).filter == expected


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


def queue(name: str, states: StateFigures, *, paused: bool = False, workers: int = 0) -> QueueFigures:
    return QueueFigures(name, "independent", paused, True, states, workers)


def process(name: str, state: str, detail: str = "", *, kind: str = "worker") -> ProcessFigures:
    return ProcessFigures(name, kind, "served", state, 0, NOW - 60_000, detail)


def test_needs_come_in_the_order_of_urgency_with_their_filters() -> None:
    few, many, unseen, more = (
        group("a", 9, look=LOOK, since=4), group("c", 9, look=LOOK, since=5), group("b", 3), group("d", 6)
    )  # fmt: skip
    found = needs(
        replace(
            CALM,
            queues=(
                queue("snacks", StateFigures(new=2, retrying=1)),
                queue("redriven", StateFigures(redriven=1)),
                queue("paused", StateFigures(new=2), paused=True),
                queue("served", StateFigures(new=2), workers=1),
                queue("finished", StateFigures(leased=3, done=4, dead=5)),
            ),
            groups=(few, many, unseen, more, group("e", 1, look=LOOK, since=0)),
            unknown=Unknown(3, 2, 1, 0, exact=True),
            processes=(
                process("w2", "silent", "disk_full"),
                process("w1", "alive", "disk_full"),
                process("w3", "stopped", "locked"),
                process("w4", "alive", "paused"),
                process("w5", "alive", "locked"),
            ),
            carried=5,
        )
    )
    assert found == [
        Need("no_worker", 3, queue="snacks"),
        Need("no_worker", 1, queue="redriven"),
        Need("no_redriver", 5),
        Need("disk_full", process="w1"),
        Need("locked", process="w5"),
        Need("silent", process="w2", since_ms=NOW - 60_000),
        Need("lease_over", 2),
        Need("unproved", 1),
        Need("unseen", 6, group=more, since_ms=NOW, filter=Filter("snacks", "exhausted", "d")),
        Need("unseen", 3, group=unseen, since_ms=NOW, filter=Filter("snacks", "exhausted", "b")),
        *(Need("died_since", one.since_look, group=one, since_ms=NOW, filter=one.since_filter) for one in (many, few)),
    ]
    assert found[-1].filter == Filter("snacks", "exhausted", "a", died_from_ms=LOOK.as_of_ms)
    assert ATTENTION == ("disk_full", "locked")


@pytest.mark.parametrize(
    ("unknown", "kinds"),
    [
        (Unknown(1, 1, 0, 0, exact=True), ["lease_over"]),
        (Unknown(1, 0, 1, 0, exact=True), ["unproved"]),
        (Unknown(0, 0, 0, 9, exact=True), []),
    ],
)
def test_each_kind_of_unknown_answer_is_a_need_of_its_own(unknown: Unknown, kinds: list[str]) -> None:
    assert [need.kind for need in needs(replace(CALM, unknown=unknown))] == kinds


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
    found = needs(replace(CALM, processes=(process("p", state, kind=kind),), carried=carried))
    assert [need for need in found if need.kind != "silent"] == ([Need("no_redriver", carried)] if needed else [])


def test_without_dead_orders_another_trouble_is_the_headline() -> None:
    said = headline(replace(CALM, queues=(queue("snacks", StateFigures(new=1)),)))
    assert said == Headline("trouble", last_delivery_ms=NOW - 4_000)


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
        ((), 5, None),
        ((), 0, None),
        # four fifths are a wave, less is none
        ((1, 0, 4), 5, 2),
        ((0, 0, 3), 5, None),
        ((2, 0, 3), 6, 0),
        # what went before belongs to it from a tenth of its mean on
        ((10, 100), 110, 0),
        ((9, 100), 109, 1),
        ((0, 6, 100), 106, 2),
        ((5, 10, 100), 115, 1),
        ((6, 10, 100), 116, 0),
    ],
)
def test_the_hour_in_which_a_wave_began(still: tuple[int, ...], total: int, place: int | None) -> None:
    assert surge_hour_ms(hours(*still), total) == (None if place is None else place * HOUR_MS)


@pytest.mark.parametrize(
    ("still", "place"),
    [((1, 0, 0, 90, 80), 3), ((0, 2, 2), 1), ((0, 0), None), ((), None), ((1, 10), 0), ((1, 11), 1), ((0, 1), 1)],
)
def test_the_minute_in_which_it_began(still: tuple[int, ...], place: int | None) -> None:
    buckets = [Bucket(at * MINUTE_MS, n, 0, n) for at, n in enumerate(still)]
    assert surge_minute_ms(buckets) == (None if place is None else place * MINUTE_MS)


def test_causes_of_a_wave_are_the_fewest_that_explain_nine_tenths() -> None:
    a, b, c = (("q", "exhausted", code) for code in "abc")
    assert wave_causes(Surge(0, 100, ((a, 90), (b, 9), (c, 1)))) == [a]
    assert wave_causes(Surge(0, 100, ((a, 50), (b, 45), (c, 5)))) == [a, b]
    assert wave_causes(Surge(0, 10, ((a, 8), (b, 1), (c, 1)))) == [a, b]
    assert wave_causes(Surge(0, 10, ((a, 8),))) == [a]
    assert wave_causes(Surge(0, 100, ())) == []


@pytest.mark.parametrize(("length", "first"), [(0, None), (23, 0), (24, 0), (25, 1), (168, 144)])
def test_a_day_is_the_last_twenty_four_hours(length: int, first: int | None) -> None:
    day = replace(CALM, hours=tuple(hours(*[1] * length))).day
    assert (len(day), day[0].start_ms // HOUR_MS if day else None) == (min(length, 24), first)
