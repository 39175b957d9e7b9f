"""Every move of a person outside redrives: the whole receipt that it gives, and the whole event that the record keeps."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from queue_app.models import SavedFilter
from queue_app.policy.errors import InvalidNote, NotAllowed, NotDead, UnknownJob
from queue_app.policy.filters import Filter
from queue_app.policy.queues import InvalidLimit, UnknownQueue
from queue_app.services import looks, payloads, queue, queues, saved_filters, unblocks
from queue_app.services.queues import QueueReceipt
from queue_app.services.saved_filters import InvalidName, UnknownFilter
from queue_app.services.unblocks import NotOrdered, UnblockReceipt
from tests.engine.rows import declare
from tests.services.told import DEACTIVATED, LEADS, WAYS, WORKERS, Case, Refused, World, by_way, check

pytestmark = pytest.mark.django_db

# --- queues ---------------------------------------------------------------------------------------------------------
# the move, the right that it needs, and what must stand before
QUEUE_MOVES: dict[str, tuple[Callable[..., QueueReceipt], str, tuple[Callable[..., QueueReceipt], ...]]] = {
    "close_queue": (queues.close, "close_queue", ()),
    "reopen_queue": (queues.reopen, "close_queue", (queues.close,)),
    "pause_queue": (queues.pause, "pause_queue", ()),
    "resume_queue": (queues.resume, "pause_queue", (queues.pause,)),
    "cancel_queue": (queues.cancel, "close_queue", ()),
}


UNDO = {
    "close_queue": queues.reopen, "reopen_queue": queues.close, "pause_queue": queues.resume,
    "resume_queue": queues.pause, "cancel_queue": queues.resume,
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("move", QUEUE_MOVES)
def test_a_queues_moves(world: World, way: dict[str, str], move: str) -> None:
    by_way(world, way)
    act, right, firsts = QUEUE_MOVES[move]

    def before(w: World) -> None:
        for first in firsts:
            first(w.tom, "snacks")
        w.clock.advance(1_000)

    def receipt(first: bool) -> Callable[[World], QueueReceipt]:
        return lambda w: QueueReceipt("snacks", move, first, w.clock.now)

    cases = [
        Case(
            lambda w: act(w.oda, "snacks", note="INC-1", **w.how),
            lambda _w: Refused(NotAllowed, LEADS),
            lambda w: w.refused(w.oda, right, "queue:snacks", LEADS),
            before,
        ),
        Case(lambda w: act(w.tom, "nope", **w.how), lambda _w: Refused(UnknownQueue, "No queue nope is declared.")),
        Case(
            lambda w: act(w.tom, "snacks", note="INC-1", **w.how),
            receipt(True),
            lambda w: [w.event(w.tom, move, "queue:snacks", note="INC-1")],
        ),
        Case(
            lambda w: act(w.tom, "snacks", note="INC-2", **w.how), receipt(False), before=lambda w: w.clock.advance(5)
        ),
        Case(
            lambda w: act(w.tom, "snacks", **w.how),
            receipt(True),
            lambda w: [w.event(w.tom, move, "queue:snacks")],
            lambda w: (UNDO[move](w.tom, "snacks"), w.clock.advance(5)),
        ),
        Case(
            lambda w: act(w.gone(), "snacks", **w.how),
            lambda _w: Refused(NotAllowed, DEACTIVATED),
            lambda w: w.refused(w.tom, right, "queue:snacks", DEACTIVATED),
        ),
    ]
    for case in cases:
        check(case, world)


def test_a_cancelled_queue_is_cancelled_again_when_one_half_was_undone(world: World) -> None:
    for undo in (queues.reopen, queues.resume):
        queues.cancel(world.tom, "snacks")
        undo(world.tom, "snacks")
        assert queues.cancel(world.tom, "snacks") == QueueReceipt("snacks", "cancel_queue", True, world.clock.now)
        assert not queues.cancel(world.tom, "snacks").first


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_queues_limits(world: World, way: dict[str, str]) -> None:
    limits: dict[str, int | None] = {"max_unfinished": 10, "breaker_after": 5, "breaker_wait_ms": 30_000}
    cases = [
        Case(
            lambda w: queues.set_limits(w.ada, "snacks", **w.how, **limits),  # type: ignore[arg-type]
            lambda _w: Refused(NotAllowed, LEADS),
            lambda w: w.refused(w.ada, "limit_queue", "queue:snacks", LEADS),
        ),
        Case(
            lambda w: queues.set_limits(w.tom, "snacks", max_unfinished=0, **w.how),
            lambda _w: Refused(
                InvalidLimit, "max_unfinished must be a whole number from 1 to 1,000,000,000.", "max_unfinished"
            ),
        ),
        Case(
            lambda w: queues.set_limits(w.tom, "snacks", note="INC-1", **w.how, **limits),  # type: ignore[arg-type]
            lambda w: QueueReceipt("snacks", "limit_queue", True, w.clock.now),
            lambda w: [
                w.event(
                    w.tom, "limit_queue", "queue:snacks", note="INC-1", max_unfinished_before=None, max_unfinished=10,
                    breaker_after_before=20, breaker_after=5,
                )
            ],
        ),
        Case(
            lambda w: queues.set_limits(w.tom, "snacks", **w.how, **limits),  # type: ignore[arg-type]
            lambda w: QueueReceipt("snacks", "limit_queue", False, w.clock.now),
        ),
        Case(
            lambda w: queues.set_limits(w.tom, "snacks", breaker_after=6, **w.how),
            lambda w: QueueReceipt("snacks", "limit_queue", True, w.clock.now),
            lambda w: [
                w.event(w.tom, "limit_queue", "queue:snacks", breaker_after_before=5, breaker_after=6)
            ],
        ),
        Case(
            lambda w: queues.set_limits(w.gone(), "snacks", **w.how),
            lambda _w: Refused(NotAllowed, DEACTIVATED),
            lambda w: w.refused(w.tom, "limit_queue", "queue:snacks", DEACTIVATED),
        ),
    ]  # fmt: skip
    for case in cases:
        check(case, by_way(world, way))


# --- letting later orders pass ----------------------------------------------------------------------------------------


def _one_dead_with_two_behind(world: World) -> None:
    declare("tables", ordering="ordered")
    for job_id in ("a1", "a2", "a3"):
        queue.enqueue(job_id, 1, queue="tables", order_key="t4")
    queue.enqueue("k0", 1, queue="tables")
    queue.enqueue("s1", 1, order_key="t4")
    queue.finish("a1", queue.claim("w", queue="tables", limit=1)[0].token, "permanent", code="http_422")
    world.more["at_ms"] = world.clock.advance(1_000)


def passes(who: str = "tom", job: str = "a1", *, token: Any = 1, note: str = "INC-1") -> Callable[[World], object]:
    return lambda w: unblocks.unblock(getattr(w, who), job, token=token, note=note, **w.how)


NOT_SEEN = Refused(NotDead, "a1 is not in quarantine as you saw it: look again.")
UNBLOCKS = [
    Case(passes("oda"), lambda _w: Refused(NotAllowed, LEADS),
         lambda w: w.refused(w.oda, "unblock", "job:a1", LEADS)),
    Case(passes(job="zz"), lambda _w: Refused(UnknownJob, "No order has the id zz.")),
    Case(passes(job="k0"), lambda _w: Refused(NotOrdered, "k0 keeps no other order back.")),
    Case(passes(job="s1"), lambda _w: Refused(NotOrdered, "s1 keeps no other order back.")),
    Case(passes(job="a2", token=0),
         lambda _w: Refused(NotDead, "a2 is not in quarantine as you saw it: look again.")),
    Case(passes(token=2), lambda _w: NOT_SEEN),
    Case(passes(token=True), lambda _w: NOT_SEEN),
    Case(passes(), lambda w: UnblockReceipt("a1", 1, True, "tom", w.clock.now, 2),
         lambda w: [w.event(w.tom, "unblock", "job:a1", note="INC-1", token=1, queue="tables", waiting=2)]),
    Case(passes(note="INC-2"), lambda w: UnblockReceipt("a1", 1, False, "tom", w.more["at_ms"], 0),
         before=lambda w: w.clock.advance(7)),
    Case(lambda w: unblocks.unblock(w.gone(), "a1", token=1, note="INC-1", **w.how),
         lambda _w: Refused(NotAllowed, DEACTIVATED),
         lambda w: w.refused(w.tom, "unblock", "job:a1", DEACTIVATED)),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_letting_later_orders_pass(world: World, way: dict[str, str]) -> None:
    _one_dead_with_two_behind(world)
    for case in UNBLOCKS:
        check(case, by_way(world, way))


# --- contents of an order ---------------------------------------------------------------------------------------------
PERMITTED = "Only people with a permission of its own may see what an order contains."
CONTENTS = [
    Case(lambda w: payloads.look(w.ada, "p1", **w.how), lambda _w: Refused(NotAllowed, PERMITTED),
         lambda w: w.refused(w.ada, "payload_look", "job:p1", PERMITTED)),
    Case(lambda w: payloads.look(w.tom, "zz", **w.how), lambda _w: Refused(UnknownJob, "No order has the id zz.")),
    Case(lambda w: payloads.look(w.tom, "p1", **w.how), lambda _w: '{"a":1}',
         lambda w: [w.event(w.tom, "payload_look", "job:p1", token=1)]),
    Case(lambda w: payloads.look(w.gone(), "p1", **w.how), lambda _w: Refused(NotAllowed, DEACTIVATED),
         lambda w: w.refused(w.tom, "payload_look", "job:p1", DEACTIVATED)),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_look_at_the_contents(world: World, way: dict[str, str]) -> None:
    queue.enqueue("p1", 1, payload={"a": 1})
    assert queue.claim("w")[0].token == 1
    world.tom.user_permissions.add(Permission.objects.get(codename="view_payload"))
    for case in CONTENTS:
        check(case, by_way(world, way))


# --- filters under a name -----------------------------------------------------------------------------------------------
WANTED, NEW = Filter(queue="snacks", id_prefix="o"), Filter(code="")


def kept(name: str) -> Callable[[World], int]:
    return lambda _w: SavedFilter.objects.get(name=name).pk


def saves(who: str, name: Any, wanted: Filter = WANTED, **more: bool) -> Callable[[World], object]:
    return lambda w: saved_filters.save(getattr(w, who), name, wanted, **more, **w.how)


def removes(who: str, name: str) -> Callable[[World], object]:
    def act(w: World) -> object:
        w.kept = kept(name)(w)
        return saved_filters.delete(getattr(w, who), w.kept, **w.how)

    return act


CONTROL = "The name holds a control character, which cannot be kept."
UNKNOWN = Refused(UnknownFilter, "This filter does not exist any more.")
FILTERS = [
    Case(saves("ada", " mine\t"), kept("mine")),
    Case(saves("ada", "mine", NEW), kept("mine")),
    Case(removes("tom", "mine"), lambda _w: UNKNOWN),
    Case(removes("ada", "mine"), lambda _w: None),
    Case(saves("ada", "ours", for_all=True), lambda _w: Refused(NotAllowed, WORKERS),
         lambda w: w.refused(w.ada, "save_filter", "filters", WORKERS)),
    Case(saves("oda", "ours ", for_all=True), kept("ours"),
         lambda w: [w.event(w.oda, "save_filter", f"filter:{kept('ours')(w)}", name="ours", filter=WANTED.canonical())]),
    Case(saves("tom", "ours", NEW, for_all=True), kept("ours"),
         lambda w: [w.event(w.tom, "save_filter", f"filter:{kept('ours')(w)}", name="ours", filter=NEW.canonical())]),
    Case(removes("ada", "ours"), lambda _w: Refused(NotAllowed, WORKERS),
         lambda w: w.refused(w.ada, "delete_filter", f"filter:{w.kept}", WORKERS)),
    Case(removes("tom", "ours"), lambda _w: None,
         lambda w: [w.event(w.tom, "delete_filter", f"filter:{w.kept}", name="ours", filter="")]),
    Case(lambda w: saved_filters.delete(w.tom, w.kept, **w.how), lambda _w: UNKNOWN),
    Case(lambda w: saved_filters.delete(w.tom, True, **w.how), lambda _w: UNKNOWN),
    Case(saves("oda", 5), lambda _w: Refused(InvalidName, "The name must be text.")),
    Case(saves("oda", " "), lambda _w: Refused(InvalidName, "A name has 1 to 60 characters.")),
    Case(saves("oda", "x" * 61), lambda _w: Refused(InvalidName, "A name has 1 to 60 characters.")),
    Case(saves("oda", "x" * 60), kept("x" * 60)),
    Case(saves("oda", "y"), kept("y")),
    Case(saves("oda", "a\x7fb"), lambda _w: Refused(InvalidName, CONTROL)),
    Case(lambda w: saved_filters.save(w.gone(), "z", WANTED, **w.how), lambda _w: Refused(NotAllowed, DEACTIVATED),
         lambda w: w.refused(w.tom, "save_filter", "filters", DEACTIVATED)),
    Case(lambda w: saved_filters.delete(w.tom, 7, **w.how), lambda _w: Refused(NotAllowed, DEACTIVATED),
         lambda w: w.refused(w.tom, "delete_filter", "filter:7", DEACTIVATED)),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_filters_under_a_name(world: World, way: dict[str, str]) -> None:
    for case in FILTERS:
        check(case, by_way(world, way, proof=False))


def test_what_is_kept_of_a_filter_and_how_many(world: World) -> None:
    own = saved_filters.save(world.ada, "mine", WANTED)
    shared = saved_filters.save(world.oda, "ours", WANTED, for_all=True)
    world.clock.advance(5)
    assert saved_filters.save(world.tom, "ours", NEW, for_all=True) == shared
    rows = {row.pop("id"): row for row in SavedFilter.objects.values()}
    assert {
        (pk, row["name"], row["owner_id"], row["query"]) for pk, row in rows.items()
    } == {(own, "mine", world.ada.pk, WANTED.canonical()), (shared, "ours", None, NEW.canonical())}  # fmt: skip
    for n in range(49):
        saved_filters.save(world.ada, f"f{n}", WANTED)
    full = Refused(InvalidName, "At most 50 filters can be kept.")
    check(Case(saves("ada", "one more"), lambda _w: full), world)
    check(Case(saves("ada", "mine", NEW), kept("mine")), world)
    check(Case(saves("oda", "one more"), kept("one more")), world)


def test_a_bad_note_is_refused_before_anybody_is_asked(world: World) -> None:
    for call in (
        lambda: queues.close(world.ada, "snacks", note="two words"),
        lambda: queues.set_limits(world.ada, "snacks", note="two words"),
        lambda: unblocks.unblock(world.ada, "a1", token=1, note=""),
        lambda: looks.record(world.ada, "job", "", "fixed", job_id="o1"),
    ):
        with pytest.raises(InvalidNote):
            call()
