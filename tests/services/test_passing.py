"""When a turn is plain: every single thing that makes it otherwise, and what a plain one asks of the store."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from queue_app.policy.attempts import Lease, Result
from queue_app.policy.queues import QueuePolicy
from queue_app.services import passing
from queue_app.store import jobs
from queue_app.store.ends import HeldRow
from queue_app.store.glances import Glance
from queue_app.store.jobs import JobRow
from queue_app.store.queues import Standing
from tests.engine.rows import DAY, T

POLICY = QueuePolicy("snacks", lease_ms=5_000)
STANDING = Standing(POLICY, False, T)
HELD = HeldRow("a", "snacks", "leased", 4, 1, 3, 0, T + DAY, "w1", 0, False)
DUE = JobRow(
    "d", "snacks", 7, '{"x":1}', "k", "pending", "", "", 2, 3, 8, None, None, T, T + DAY, T - 1, 0, None, 0
)  # fmt: skip
OK = Result("a", 4, "ok")
Asked = list[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def _no_queue_seen_before() -> Iterator[None]:
    before = set(passing._free)
    passing._free.clear()
    yield
    passing._free.clear()
    passing._free.update(before)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the store is asked to move; everything moves."""
    calls: Asked = []

    def pass_on(done: list[tuple[str, int]], due: list[JobRow], *more: Any) -> set[str]:
        calls.append((done, due, *more))
        return {job_id for job_id, _ in done} | {job.id for job in due}

    monkeypatch.setattr(jobs, "pass_on", pass_on)
    return calls


def turn(
    results: tuple[Result, ...] = (OK,),
    held: tuple[HeldRow, ...] = (HELD,),
    due: tuple[JobRow, ...] | None = (DUE,),
    standing: Standing = STANDING,
    lease_ms: int | None = None,
) -> tuple[list[bool], list[Lease]] | None:
    seen = Glance(standing, {row.id: row for row in held}, None if due is None else list(due))
    return passing.pass_on(results, seen, standing, "w1", lease_ms)


@pytest.mark.parametrize(("lease_ms", "until"), [(None, T + 5_000), (1, T + 1), (9_000, T + 9_000)])
def test_a_plain_turn_is_one_move_and_answers_all(asked: Asked, lease_ms: int | None, until: int) -> None:
    second = DUE._replace(id="e", token=0, attempts=0)
    answers, leases = turn(due=(DUE, second), lease_ms=lease_ms) or ([], [])
    assert asked == [([("a", 4)], [DUE, second], "w1", T, until)]
    assert answers == [True]
    assert leases == [
        Lease("d", "snacks", 7, '{"x":1}', 3, 9, until, T + DAY),
        Lease("e", "snacks", 7, '{"x":1}', 1, 1, until, T + DAY),
    ]


def test_what_did_not_move_is_refused_or_missing(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    results, held = (OK, Result("b", 5, "ok")), (HELD, HELD._replace(id="b", token=5))
    monkeypatch.setattr(jobs, "pass_on", lambda *_asked: {"b"})
    assert turn(results, held) == ([False, True], [])


@pytest.mark.parametrize(
    ("results", "held", "due"), [((), (), ()), ((OK,), (HELD,), ()), ((), (), (DUE,))], ids=["nothing", "ends", "due"]
)
def test_a_turn_with_only_one_half_or_none_is_plain_too(
    asked: Asked, results: tuple[Result, ...], held: tuple[HeldRow, ...], due: tuple[JobRow, ...]
) -> None:
    assert turn(results, held, due) == ([True] * len(results), [replace(LEASE_OF_DUE)] * len(due))
    assert len(asked) == 1


LEASE_OF_DUE = Lease("d", "snacks", 7, '{"x":1}', 3, 9, T + 5_000, T + DAY)

OTHER_QUEUES = {
    "ordered": Standing(replace(POLICY, ordering="ordered"), False, T),
    "paused": Standing(replace(POLICY, paused=True), False, T),
    "limited": Standing(replace(POLICY, delivery_rate_mj=1), False, T),
    "troubled": STANDING._replace(troubled=True),
}


@pytest.mark.parametrize("standing", OTHER_QUEUES.values(), ids=OTHER_QUEUES)
def test_a_queue_that_does_not_hand_out_freely_has_no_plain_turn_and_is_not_looked_ahead_for(
    asked: Asked, standing: Standing
) -> None:
    assert passing.looks_ahead("snacks", 9) == 0
    turn()
    assert [passing.looks_ahead(name, 9) for name in ("snacks", "drinks")] == [9, 0]
    del asked[:]
    assert turn(standing=standing) is None
    assert (asked, passing.looks_ahead("snacks", 9)) == ([], 0)


def test_a_queue_is_remembered_though_this_turn_was_not_plain(asked: Asked) -> None:
    assert turn(due=None) is None
    assert (asked, passing.looks_ahead("snacks", 7)) == ([], 7)


Change = Callable[[], tuple[list[bool], list[Lease]] | None]
NOT_PLAIN: dict[str, Change] = {
    "not looked for": lambda: turn(due=None),
    "nobody's": lambda: turn(held=()),
    "named twice": lambda: turn(results=(OK, OK)),
    "another's beside it": lambda: turn(held=(HELD, HELD._replace(id="b"))),
    "other job": lambda: turn(held=(HELD._replace(id="b"),)),
    "retry": lambda: turn(results=(Result("a", 4, "retry"),)),
    "permanent": lambda: turn(results=(Result("a", 4, "permanent"),)),
    "older token": lambda: turn(results=(Result("a", 3, "ok"),)),
    "newer token": lambda: turn(results=(Result("a", 5, "ok"),)),
    "given back": lambda: turn(held=(HELD._replace(state="pending"),)),
    "redriven": lambda: turn(held=(HELD._replace(redriven=1),)),
    "troubled": lambda: turn(held=(HELD._replace(troubled=True),)),
    "second fails": lambda: turn((OK, Result("b", 4, "retry")), (HELD, HELD._replace(id="b"))),
    "taken over": lambda: turn(due=(DUE._replace(state="leased", owner="w9", lease_until=T),)),
    "exhausted": lambda: turn(due=(DUE._replace(attempts=3),)),
    "too late": lambda: turn(due=(DUE._replace(deadline=T),)),
    "second is too late": lambda: turn(due=(DUE, DUE._replace(id="e", deadline=T))),
}


@pytest.mark.parametrize("turn_of", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_anything_out_of_the_ordinary_is_not_plain_and_writes_nothing(asked: Asked, turn_of: Change) -> None:
    assert turn_of() is None
    assert asked == []


def test_the_last_moment_of_a_budget_is_still_plain(asked: Asked) -> None:
    assert turn(due=(DUE._replace(deadline=T + 1, attempts=2),)) is not None
    assert len(asked) == 1
