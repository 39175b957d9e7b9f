"""The frozen items of plans: every row that is added, found or moved, at every border, and nothing of another plan."""

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest

from queue_app.models import Hold, Plan, PlanGroup, PlanItem
from queue_app.store import given, items
from queue_app.store.items import Item, NewItem
from tests.store.changed import Asked, changes
from tests.store.rows import AT, job

CAUSE, OTHER = ("permanent", "http_422"), ("exhausted", "")


@pytest.fixture
def plan(db: None) -> Plan:
    return make_plan()


def make_plan() -> Plan:
    return Plan.objects.create(
        queue="snacks", state="freezing", selection="{}", as_of_ms=AT, note="n", created_at_ms=AT, changed_at_ms=AT,
        expires_at_ms=AT, asked_rate_mj=1, rate_mj=1,
    )  # fmt: skip


def item(plan: Plan, pos: int, cause: tuple[str, str] = CAUSE, **columns: Any) -> PlanItem:
    values: dict[str, Any] = {"job_id": f"o{pos}", "token": pos + 10, "dead_since_ms": AT}
    return PlanItem.objects.create(plan=plan, pos=pos, reason=cause[0], code=cause[1], **values | columns)


def found(pos: int, cause: tuple[str, str] = CAUSE, tries: int = 0, held_by: int | None = None) -> Item:
    """The item of the helper above as a turn sees it."""
    return Item(pos, f"o{pos}", pos + 10, *cause, tries, held_by)


def places(some: list[Item]) -> list[int]:
    return [one.pos for one in some]


def test_the_cause_of_an_item() -> None:
    assert found(1, OTHER).group == OTHER


# --- while the plan is made -----------------------------------------------------------------------------------------


def test_jobs_are_frozen_and_counted_by_cause(plan: Plan) -> None:
    other = make_plan()
    items.add(other.pk, [NewItem(1, "x", 1, *CAUSE, AT, True)])
    new = [
        NewItem(1, "a", 4, *CAUSE, AT - 5, True),
        NewItem(2, "b", 5, *OTHER, AT - 7, True),
        NewItem(3, "c", 6, *CAUSE, AT - 9, False),
        NewItem(4, "d", 7, *CAUSE, AT - 4, True),
    ]
    with changes(PlanItem) as rows, changes(PlanGroup) as groups:
        items.add(plan.pk, new)
    fresh = {"plan_id": plan.pk, "state": "waiting", "why": "", "canary": 0, "tries": 0, "at_ms": None}
    names = ("pos", "job_id", "token", "reason", "code", "dead_since_ms")
    assert list(rows.values()) == [
        {"id": key, "left_at_ms": None, **fresh, **dict(zip(names, astuple(one), strict=False))}
        for key, one in zip(rows, new, strict=True)
    ]
    assert {(group.pop("id") > 0, *group.values()) for group in groups.values()} == {
        (True, plan.pk, *CAUSE, 3, 2, 0, 0, AT - 9, AT - 4),
        (True, plan.pk, *OTHER, 1, 1, 0, 0, AT - 7, AT - 7),
    }


@pytest.mark.parametrize(
    ("dead_since_ms", "oldest_ms", "newest_ms"),
    [(AT - 3, AT - 3, AT), (AT + 3, AT, AT + 3), (AT, AT, AT)],
)
def test_a_cause_that_is_there_grows(plan: Plan, dead_since_ms: int, oldest_ms: int, newest_ms: int) -> None:
    items.add(plan.pk, [NewItem(1, "a", 4, *CAUSE, AT, True), NewItem(2, "b", 4, *OTHER, AT, True)])
    PlanGroup.objects.update(redriven=1)
    with changes(PlanGroup) as groups:
        items.add(plan.pk, [NewItem(3, "c", 4, *CAUSE, dead_since_ms, True), NewItem(4, "d", 4, *CAUSE, AT, False)])
    ((key, moved),) = groups.items()
    wanted = {"planned": 3, "again": 2, "oldest_ms": oldest_ms, "newest_ms": newest_ms}
    assert moved == {name: value for name, value in wanted.items() if value != AT}
    grown = PlanGroup.objects.get(pk=key)
    assert (grown.reason, grown.code, grown.redriven) == (*CAUSE, 1)


@pytest.mark.django_db
def test_nothing_is_asked_about_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        items.add(1, [])
        assert items.still_dead({}) == set()
        assert items.set_redriven(1, [], AT) == items.set_skipped(1, [], "held", AT) == 0
        items.count_turns(1, {}, {})
        assert items.draw(1, 1, {}, 1) == 0


@pytest.mark.django_db
def test_of_the_jobs_that_were_read_those_that_are_still_dead() -> None:
    job("a", 1, state="dead", token=3)
    job("b", 2, state="dead", token=3)
    job("c", 3, state="leased", token=3)
    job("d", 4, state="dead", token=3)
    assert items.still_dead({"a": 3, "b": 2, "c": 3, "d": 4, "e": 3}) == {"a"}


# --- whose turn it is -----------------------------------------------------------------------------------------------


def test_items_that_had_no_turn_yet_from_a_place_on(plan: Plan) -> None:
    for pos, columns in enumerate(
        [{}, {"cause": OTHER}, {"state": "redriven"}, {"tries": 1}, {}, {"state": "skipped", "why": "held"}, {}],
        start=1,
    ):
        item(plan, pos, **columns)  # type: ignore[arg-type]
    item(make_plan(), 2, job_id="other")
    Hold.objects.create(job_id="o5", plan=plan)
    assert items.fresh(plan.pk, 2, 7, 2) == [found(2, OTHER), found(5, held_by=plan.pk)]
    assert [places(items.fresh(plan.pk, first, 7, limit)) for first, limit in [(1, 1), (1, 9), (3, 1), (6, 9), (8, 9)]] == [
        [1], [1, 2, 5, 7], [5], [7], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "last", "limit", "answers", "asked"),
    [
        (1, 9, 2, [[1, 2]], [(1, 3, 2)]),
        (1, 9, 2, [[1], [4]], [(1, 3, 2), (3, 7, 1)]),
        (1, 9, 3, [[], [5], [13]], [(1, 4, 3), (4, 10, 3)]),
        (1, 10, 3, [[], [5], [11]], [(1, 4, 3), (4, 10, 3), (10, 22, 2)]),
        (4, 4, 1, [[]], [(4, 5, 1)]),
        (5, 4, 1, [], []),
        (1, 9, 0, [], []),
    ],
)
def test_stretch_by_stretch(
    monkeypatch: pytest.MonkeyPatch, first: int, last: int, limit: int, answers: list[list[int]], asked: list[Any]
) -> None:
    spy = Asked(*[[astuple(found(pos)) for pos in some] for some in answers]).stand_in(monkeypatch, items)
    got = items.fresh(77, first, last, limit)
    assert [tuple(values) for _, values in spy.statements] == [(77, *stretch) for stretch in asked]
    assert places(got) == [pos for some in answers[: len(asked)] for pos in some]


def test_items_that_failed_before_and_whose_wait_is_over(plan: Plan) -> None:
    item(plan, 1, tries=1, at_ms=AT + 1)
    item(plan, 2, tries=2, at_ms=AT)
    item(plan, 3, tries=1, at_ms=AT - 1, cause=OTHER)
    item(plan, 4, tries=1, at_ms=AT - 1, state="skipped", why="held")
    item(plan, 5)
    item(make_plan(), 1, tries=1, at_ms=AT - 2, job_id="other")
    Hold.objects.create(job_id="o3", plan=plan)
    third = found(3, OTHER, 1, plan.pk)
    assert items.again(plan.pk, AT, 9) == [third, found(2, tries=2)]
    assert items.again(plan.pk, AT, 1) == [third]
    assert items.again(plan.pk, AT - 2, 9) == []


def test_when_the_next_of_them_may_be_tried(plan: Plan) -> None:
    assert items.next_again_ms(plan.pk) is None
    item(plan, 1)
    item(plan, 2, tries=1, at_ms=AT - 1, state="skipped", why="held")
    item(make_plan(), 1, tries=1, at_ms=AT - 2, job_id="other")
    assert items.next_again_ms(plan.pk) is None
    item(plan, 3, tries=1, at_ms=AT + 1)
    item(plan, 4, tries=2, at_ms=AT)
    assert items.next_again_ms(plan.pk) == AT


def test_items_of_a_rounds_trial(plan: Plan) -> None:
    for pos, columns in enumerate(
        [{"canary": 2}, {"canary": 1}, {"canary": 2, "state": "redriven"}, {}, {"canary": 2, "tries": 1, "at_ms": AT}],
        start=1,
    ):
        item(plan, pos, **columns)  # type: ignore[arg-type]
    item(make_plan(), 1, canary=2, job_id="other")
    assert items.of_trial(plan.pk, 2, AT, 9) == [found(1), found(5, tries=1)]
    assert places(items.of_trial(plan.pk, 2, AT, 1)) == [1]
    assert places(items.of_trial(plan.pk, 2, AT - 1, 9)) == [1]
    assert places(items.of_trial(plan.pk, 1, AT, 9)) == [2]
    assert items.of_trial(plan.pk, 0, AT, 9) == []


# --- the trial ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "from_pos", "drawn"),
    [
        ({CAUSE: 2}, 1, [1, 4]),
        ({CAUSE: 9}, 1, [1, 4, 6]),
        ({CAUSE: 1, OTHER: 1}, 1, [1, 2]),
        ({CAUSE: 1, OTHER: 1}, 2, [2, 4]),
        ({CAUSE: 1}, 5, [6]),
        ({OTHER: 2}, 3, [3]),
        ({CAUSE: 1}, 7, []),
        ({("permanent", ""): 1, ("exhausted", "http_422"): 1}, 1, []),
        ({CAUSE: 0}, 1, []),
    ],
)
def test_the_oldest_of_each_cause_are_drawn(
    plan: Plan, wanted: dict[Any, int], from_pos: int, drawn: list[int]
) -> None:
    for pos, (cause, columns) in enumerate(
        [
            (CAUSE, {}), (OTHER, {}), (OTHER, {"canary": 1}), (CAUSE, {"canary": 1}), (CAUSE, {"tries": 1, "at_ms": AT}),
            (CAUSE, {}), (CAUSE, {"canary": 2}), (CAUSE, {"state": "redriven"}),
        ],
        start=1,
    ):  # fmt: skip
        item(plan, pos, cause, **columns)  # type: ignore[arg-type]
    for pos in range(1, 9):
        item(other := make_plan(), pos, job_id=f"other{pos}") if pos == 1 else item(other, pos, job_id=f"other{pos}")
    with changes(PlanItem) as rows:
        assert items.draw(plan.pk, 2, wanted, from_pos) == len(drawn)
    ids = dict(PlanItem.objects.filter(plan=plan).values_list("pos", "pk"))
    assert rows == {ids[pos]: {"canary": 2} for pos in drawn}


# --- after a turn ---------------------------------------------------------------------------------------------------

MOVES: dict[str, tuple[Callable[[int, list[int]], int], dict[str, Any]]] = {
    "redriven": (
        lambda plan, some: items.set_redriven(plan, some, AT + 9),
        {"state": "redriven", "at_ms": None, "left_at_ms": AT + 9},
    ),
    "skipped": (
        lambda plan, some: items.set_skipped(plan, some, "not_dead", AT + 9),
        {"state": "skipped", "why": "not_dead", "at_ms": None, "left_at_ms": AT + 9},
    ),
    "failed": (
        lambda plan, some: sum(items.set_failed(plan, pos, AT + 9) for pos in some),
        {"tries": 2, "at_ms": AT + 9},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("move", "columns"), MOVES.values(), ids=list(MOVES))
def test_a_waiting_item_moves_once(plan: Plan, move: Callable[[int, list[int]], int], columns: dict[str, Any]) -> None:
    keys = [item(plan, pos, tries=1, at_ms=AT).pk for pos in (1, 2, 3)]
    item(plan, 4, state="redriven")
    item(plan, 5, state="skipped", why="held")
    item(make_plan(), 1, job_id="other")
    with changes(PlanItem) as rows:
        assert move(plan.pk, [3, 1, 4, 5, 6]) == 2
    assert rows == {keys[0]: columns, keys[2]: columns}


def test_turns_are_added_to_their_causes(plan: Plan) -> None:
    items.add(plan.pk, [NewItem(pos, f"o{pos}", 1, *CAUSE, AT, False) for pos in range(1, 10)])
    items.add(plan.pk, [NewItem(pos, f"o{pos}", 1, *OTHER, AT, False) for pos in range(10, 20)])
    items.add(plan.pk, [NewItem(20, "o20", 1, "permanent", "", AT, False)])
    items.add(make_plan().pk, [NewItem(1, "x", 1, *CAUSE, AT, False)])
    PlanGroup.objects.filter(plan=plan, code="http_422").update(redriven=1, skipped=2)
    keys = {(group.reason, group.code): group.pk for group in PlanGroup.objects.filter(plan=plan)}
    with changes(PlanGroup) as groups:
        items.count_turns(plan.pk, {CAUSE: 2}, {CAUSE: 1, OTHER: 4})
    assert groups == {keys[CAUSE]: {"redriven": 3, "skipped": 3}, keys[OTHER]: {"skipped": 4}}
    with changes(PlanGroup) as groups:
        items.count_turns(plan.pk, {OTHER: 5}, {})
    assert groups == {keys[OTHER]: {"redriven": 5}}


# --- what PostgreSQL is asked ---------------------------------------------------------------------------------------

TURN = (
    "SELECT i.pos, i.job_id, i.token, i.reason, i.code, i.tries, "
    "(SELECT h.plan_id FROM holds AS h WHERE h.job_id = i.job_id) FROM plan_items AS i "
    "WHERE i.plan_id = %s AND i.state = 'waiting' AND "
)
LEAVE = "WHERE plan_id = %s AND pos = ANY(%s::bigint[]) AND state = 'waiting' RETURNING pos"
ASKED: dict[str, tuple[Callable[[], object], list[Any], list[tuple[str, list[Any]]]]] = {
    "still dead": (
        lambda: items.still_dead({"a": 3, "b": 4}), [],
        [("SELECT g.id FROM unnest(%s::text[], %s::bigint[]) AS g(id, token) "
          "WHERE (SELECT j.token FROM jobs AS j WHERE j.id = g.id AND j.state = 'dead') = g.token", [["a", "b"], [3, 4]])],
    ),
    "fresh": (
        lambda: items.fresh(7, 3, 3, 5), [],
        [(f"{TURN}i.pos >= %s AND i.pos < %s AND i.tries = 0 ORDER BY i.pos LIMIT %s", [7, 3, 8, 5])],
    ),
    "again": (
        lambda: items.again(7, AT, 5), [],
        [(f"{TURN}i.tries > 0 AND i.at_ms <= %s ORDER BY i.at_ms LIMIT %s", [7, AT, 5])],
    ),
    "of a trial": (
        lambda: items.of_trial(7, 2, AT, 5), [],
        [(f"{TURN}i.canary = %s AND i.canary > 0 AND (i.at_ms IS NULL OR i.at_ms <= %s) ORDER BY i.pos LIMIT %s",
          [7, 2, AT, 5])],
    ),
    "next again": (
        lambda: items.next_again_ms(7), [[(AT,)]],
        [("SELECT min(at_ms) FROM plan_items WHERE plan_id = %s AND state = 'waiting' AND tries > 0 AND at_ms > 0", [7])],
    ),
    "draw": (
        lambda: items.draw(7, 2, {CAUSE: 3}, 4), [[(4,), (6,)]],
        [("SELECT pos FROM plan_items WHERE plan_id = %s AND reason = %s AND code = %s AND pos >= %s "
          "AND state = 'waiting' AND tries = 0 AND canary < %s ORDER BY pos LIMIT %s", [7, *CAUSE, 4, 2, 3]),
         ("UPDATE plan_items SET canary = %s WHERE plan_id = %s AND pos IN (%s, %s) AND state = 'waiting'", [2, 7, 4, 6])],
    ),
    "redriven": (
        lambda: items.set_redriven(7, [1, 2], AT), [],
        [(f"UPDATE plan_items SET state = 'redriven', at_ms = NULL, left_at_ms = %s {LEAVE}", [AT, 7, [1, 2]])],
    ),
    "skipped": (
        lambda: items.set_skipped(7, [1, 2], "held", AT), [],
        [(f"UPDATE plan_items SET state = 'skipped', why = %s, at_ms = NULL, left_at_ms = %s {LEAVE}",
          ["held", AT, 7, [1, 2]])],
    ),
    "failed": (
        lambda: items.set_failed(7, 1, AT), [],
        [(f"UPDATE plan_items SET tries = tries + 1, at_ms = %s {LEAVE}", [AT, 7, [1]])],
    ),
    "turns": (
        lambda: items.count_turns(7, {CAUSE: 2}, {OTHER: 4, CAUSE: 1}), [],
        [("UPDATE plan_groups SET redriven = plan_groups.redriven + g.redriven, skipped = plan_groups.skipped + g.skipped "
          "FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) AS g(reason, code, redriven, skipped) "
          "WHERE plan_id = %s AND plan_groups.reason = g.reason AND plan_groups.code = g.code RETURNING plan_groups.id",
          [["exhausted", "permanent"], ["", "http_422"], [0, 2], [4, 1], 7])],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "answers", "statements"), ASKED.values(), ids=list(ASKED))
def test_what_postgresql_is_asked(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], answers: list[Any], statements: list[Any]
) -> None:
    asked = Asked(*answers).stand_in(monkeypatch, items, given)
    call()
    assert asked.statements == statements
