"""Every move of a person on a redrive that is under way: the whole receipt, every column that changed, the whole event."""

from collections.abc import Callable
from typing import Any

import pytest

from queue_app.policy.errors import InvalidNote, NotAllowed
from queue_app.policy.plans import EXPIRY_MS, InvalidPlan, PlanMoved, UnknownPlan
from queue_app.services import batches, plans
from queue_app.services.receipts import Receipt
from tests.services.plans_of_people import (
    approved,
    paused,
    proposed,
    running,
    silent,
    stood,
    stopped,
    unbegun,
    withdrawn,
)
from tests.services.told import DEACTIVATED, WAYS, WORKERS, Case, Refused, World, by_way, check

pytestmark = pytest.mark.django_db

ACTS: dict[str, Callable[..., Receipt]] = {
    "pause": batches.pause, "resume": batches.resume, "stop": batches.stop, "slow": batches.set_pace,
    "withdraw": plans.withdraw, "cancel": plans.cancel,
}  # fmt: skip


def act(move: str, who: str = "oda", *given: Any, **more: Any) -> Callable[[World], object]:
    return lambda w: stood(w, ACTS[move](getattr(w, who), w.plan.pk, *given, **more, **w.how))


def receipt(to: str, move: str, /, *, note: str = "", round_: int = 1, by: str = "oda", **columns: Any) -> Any:
    """Of a move that was made now, with the columns that changed."""
    return lambda w: (
        Receipt(w.plan.pk, to, move, True, by, w.clock.now, note, round_),
        {name: value(w) if callable(value) else value for name, value in columns.items()},
    )


def stands(state: str, move: str, *, by: str = "", round_: int = 1) -> Any:
    """Of a move that somebody made before."""
    return lambda w: (Receipt(w.plan.pk, state, move, False, by, w.plan.changed_at_ms, "", round_), {})


def told(action: str, *, note: str = "", who: str = "oda", **detail: Any) -> Any:
    return lambda w: [w.event(getattr(w, who), action, f"plan:{w.plan.pk}", note=note, **detail)]


def now(w: World) -> int:
    return w.clock.now


def moved(sentence: str) -> Any:
    return lambda w: Refused(PlanMoved, sentence.format(w.plan.pk))


def recorded(move: str, sentence: str, who: str = "oda") -> Any:
    return lambda w: w.refused(getattr(w, who), move, f"plan:{w.plan.pk}", sentence.format(w.plan.pk))


def not_now(move: str, sentence: str, before: Any, *given: Any) -> Case:
    return Case(act(move, "oda", *given), moved(sentence), recorded(move, sentence), before)


def gone(move: str, before: Any, *given: Any) -> Case:
    return Case(lambda w: ACTS[move](w.gone(), w.plan.pk, *given, **w.how), lambda _w: Refused(NotAllowed, DEACTIVATED),
                recorded(move, DEACTIVATED, "tom"), before)  # fmt: skip


def auditor(move: str, before: Any, *given: Any) -> Case:
    return Case(
        act(move, "ada", *given), lambda _w: Refused(NotAllowed, WORKERS), recorded(move, WORKERS, "ada"), before
    )


PACE = Refused(InvalidPlan, "The pace may be from 0.01 to the approved 10 orders/s.", "rate")
UNDER_WAY = {"redriven": 1, "skipped": 1, "left": 1, "round": 1}
NOT_BEGUN = {"redriven": 0, "skipped": 0, "left": 3, "round": 1}
STOP = {"state": "stopped", "why": "person", "changed_at_ms": now, "ended_at_ms": now}
RESUMED: dict[str, Any] = {"why": "", "changed_at_ms": now, "expires_at_ms": lambda w: w.clock.now + EXPIRY_MS}


def ran_out(w: World) -> None:
    approved(w)
    w.clock.now = w.plan.expires_at_ms


CASES = {
    "pause": Case(act("pause", note="INC-2"),
                  receipt("paused", "pause", note="INC-2", state="paused", why="person", changed_at_ms=now),
                  told("batch.pause", note="INC-2", **UNDER_WAY), running),
    "pause by another": Case(act("pause", "tom"),
                             receipt("paused", "pause", by="tom", state="paused", why="person", changed_at_ms=now),
                             told("batch.pause", who="tom", **NOT_BEGUN), approved),
    "pause again": Case(act("pause", note="INC-3"), stands("paused", "pause"), before=paused),
    "pause too early": not_now("pause", "R-{} cannot be paused: it is proposed.", proposed),
    "pause what paused itself": not_now("pause", "R-{} cannot be paused: it is paused.", silent),
    "pause what ran out": Case(act("pause"), moved("R-{} cannot be paused: it is expired."),
                               lambda w: [w.program("plan.expire", round=1),
                                          *recorded("pause", "R-{} cannot be paused: it is expired.")(w)], ran_out),
    "resume": Case(act("resume", note="INC-2"),
                   receipt("running", "resume", note="INC-2", state="running", level_at_ms=now, **RESUMED),
                   lambda w: [*told("batch.resume", note="INC-2", **UNDER_WAY)(w),
                              w.program("batch.begin", round=1, rate_mj=10_000, first=False)], paused),
    "resume what had not begun": Case(
        act("resume"),
        receipt("running", "resume", state="running", level_at_ms=now, level_uj=1_000_000, started_at_ms=now, **RESUMED),
        lambda w: [*told("batch.resume", **NOT_BEGUN)(w),
                   w.program("batch.begin", round=1, rate_mj=10_000, first=True)], unbegun),
    "resume again": Case(act("resume", note="INC-3"), stands("running", "resume"), before=running),
    "resume what paused itself": not_now("resume", "R-{} cannot be resumed: it is paused, and only what a person paused "
                                         "can be.", silent),
    "resume too early": not_now("resume", "R-{} cannot be resumed: it is approved, and only what a person paused can be.",
                                approved),
    "stop": Case(act("stop", note="INC-2"), receipt("stopped", "stop", note="INC-2", **STOP),
                 told("batch.stop", note="INC-2", **UNDER_WAY), running),
    "stop what is paused": Case(act("stop", "tom"),
                                receipt("stopped", "stop", by="tom", **{k: v for k, v in STOP.items() if k != "why"}),
                                told("batch.stop", who="tom", **UNDER_WAY), paused),
    "stop again": Case(act("stop", note="INC-3"), stands("stopped", "stop"), before=stopped),
    "stop too early": not_now("stop", "R-{} cannot be stopped: it is proposed.", proposed),
    "slow": Case(act("slow", "oda", 2_500, note="INC-2"), receipt("running", "slow", note="INC-2", rate_mj=2_500),
                 told("batch.pace", note="INC-2", rate_mj=2_500, before_mj=10_000), running),
    "slowest": Case(act("slow", "tom", 10), receipt("paused", "slow", by="tom", rate_mj=10),
                    told("batch.pace", who="tom", rate_mj=10, before_mj=10_000), paused),
    "as slow as it is": Case(act("slow", "tom", 10_000, note="INC-2"),
                             lambda w: (Receipt(w.plan.pk, "running", "slow", False, "tom", w.clock.now, "INC-2", 1), {}),
                             before=running),
    "slow what is proposed": not_now("slow", "The pace of R-{} cannot be changed: it is proposed.", proposed, 10),
    **{f"a pace of {rate}": Case(act("slow", "oda", rate), lambda _w: PACE, before=running)
       for rate in (9, 10_001, True, "10", 10.0, None)},
    "withdraw": Case(act("withdraw", note="INC-2"),
                     receipt("withdrawn", "withdraw", note="INC-2", round_=0, state="withdrawn", changed_at_ms=now,
                             ended_at_ms=now),
                     told("plan.withdraw", note="INC-2", planned=3), proposed),
    "withdraw without a note": Case(act("withdraw"),
                                    receipt("withdrawn", "withdraw", round_=0, state="withdrawn", changed_at_ms=now,
                                            ended_at_ms=now), told("plan.withdraw", planned=3), proposed),
    "withdraw what ran out": Case(act("withdraw"), moved("R-{} cannot be withdrawn: it is expired."),
                                  lambda w: [w.program("plan.expire", round=1),
                                             *recorded("withdraw", "R-{} cannot be withdrawn: it is expired.")(w)], ran_out),
    "withdraw again": Case(act("withdraw"), stands("withdrawn", "withdraw", by="oda", round_=0), before=withdrawn),
    "withdraw too late": not_now("withdraw", "R-{} cannot be withdrawn: it is approved.", approved),
    "withdraw another's": Case(act("withdraw", "tom"),
                               lambda _w: Refused(NotAllowed, "A redrive is withdrawn by the person who asked for it."),
                               recorded("withdraw", "A redrive is withdrawn by the person who asked for it.", "tom"),
                               proposed),
    "cancel too late": not_now("cancel", "The making of R-{} cannot be cancelled: it is proposed.", proposed),
    **{f"{move} as an auditor": auditor(move, running, *given)
       for move, given in (("pause", ()), ("resume", ()), ("stop", ()), ("slow", (10,)), ("withdraw", ()), ("cancel", ()))},
    **{f"{move} when gone": gone(move, running, *given)
       for move, given in (("pause", ()), ("resume", ()), ("stop", ()), ("slow", (10,)), ("withdraw", ()), ("cancel", ()))},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=["console", "cli"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_move(world: World, way: dict[str, str], case: Case) -> None:
    check(case, by_way(world, way))


@pytest.mark.parametrize("note", ["", "INC-2"])
@pytest.mark.parametrize("way", WAYS, ids=["console", "cli"])
def test_the_making_of_a_list_is_cancelled_once(
    world: World, way: dict[str, str], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "IN_REQUEST", -1)  # so that its list is still in the making
    first = Case(
        act("cancel", "tom", **{"note": note} if note else {}),
        receipt("cancelled", "cancel", by="tom", note=note, round_=0, state="cancelled", changed_at_ms=now,
                ended_at_ms=now),
        told("plan.cancel", who="tom", note=note, planned=0), proposed,
    )  # fmt: skip
    check(first, by_way(world, way))
    world.plan.refresh_from_db()
    check(Case(act("cancel"), stands("cancelled", "cancel", by="oda", round_=0)), world)


@pytest.mark.parametrize("move", ACTS)
def test_a_redrive_that_is_none_is_refused_and_a_bad_note_before_it(world: World, move: str) -> None:
    given = (10,) if move == "slow" else ()
    for number in (0, -1, 999_999, 2**63 - 1, 2**63, True, "1", None):
        case = Case(lambda w, n=number: ACTS[move](w.oda, n, *given),
                    lambda _w: Refused(UnknownPlan, "There is no such redrive."))  # fmt: skip
        check(case, world)
    with pytest.raises(InvalidNote):
        ACTS[move](world.ada, 1, *given, note="two words")
