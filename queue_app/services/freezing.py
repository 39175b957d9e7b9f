"""Freezing a selection, chunk by chunk: jobs dead since before the freeze began and still dead when their chunk is taken
(DESIGN section 8, "Plan").

A chunk is one short transaction and leaves the list whole: after any crash the next chunk goes on where it was. Items of
a cancelled freeze stay where they are, held by nobody.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from queue_app import clock
from queue_app.models import Plan
from queue_app.policy.plans import EMPTY, EXPIRY_MS
from queue_app.policy.selections import CHUNK, Selection, digest_on, from_text, next_chunk
from queue_app.reads import dead, selected
from queue_app.reads.dead import DeadRow, Position
from queue_app.services import programs
from queue_app.store import chain, database, holds, items, plans, queues
from queue_app.store.items import NewItem


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a freeze is. `size` suits the next chunk; `done`: the plan is not freezing any more; `held_ms`: how long the
    write lock was held."""

    looked_at: int
    planned: int
    size: int
    done: bool
    held_ms: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows as they were just now; `after` is where the next chunk begins, `last`: there are no more."""

    rows: list[DeadRow]
    after: Position
    last: bool


@database.retried
def step(plan_id: int, size: int = CHUNK[0], *, now_ms: int | None = None) -> Progress | None:
    """Take the next chunk of a plan that is being made. None when it is not, or somebody else is at it just now.

    The rows are read before the write lock is taken; whether they are still dead is asked under it.
    """
    seen = plans.read(plan_id)
    if seen is None or seen.state != "freezing":
        return None
    chunk = _read(seen, from_text(seen.selection), size)
    with database.write():
        began_ms = clock.monotonic_ms()  # the wait for the lock tells nothing about the chunk
        plan = plans.read(plan_id, lock=True, pass_over=True)
        if plan is None or (plan.state, _position(plan)) != ("freezing", _position(seen)):
            return None
        now = database.now_ms() if now_ms is None else now_ms
        _freeze(plan, chunk, now)
    held_ms = clock.monotonic_ms() - began_ms
    return Progress(plan.looked_at, plan.planned, next_chunk(size, held_ms), plan.state != "freezing", held_ms)


def _position(plan: Plan) -> tuple[int, int]:
    return plan.frozen_after_ms, plan.frozen_after_seq


def _read(plan: Plan, selection: Selection, size: int) -> _Chunk:
    start = _position(plan)
    if selection.filter is None:
        rows = selected.by_ids(selection.ids, plan.as_of_ms, start, size)
        return _Chunk(rows, rows[-1].position if rows else start, len(rows) < size)
    found = dead.stretch(selection.filter, plan.as_of_ms, start, size)
    if found.searched_to is not None:
        return _Chunk(found.rows, found.searched_to, False)
    return _Chunk(found.rows, found.rows[-1].position if found.rows else start, len(found.rows) < size)


def _freeze(plan: Plan, chunk: _Chunk, now: int) -> None:
    policy = queues.policy_of(plan.queue)
    horizon_ms = plan.as_of_ms - policy.redrive_horizon_ms if policy else 0
    alive_ms = 0 if plan.max_dead_ms is None else plan.as_of_ms - plan.max_dead_ms
    there = items.still_dead({row.id: row.token for row in chunk.rows})
    rows = [row for row in chunk.rows if row.id in there]
    beyond = sum(row.changed_at_ms < horizon_ms for row in rows)
    too_old = sum(horizon_ms <= row.changed_at_ms < alive_ms for row in rows)
    young = [row for row in rows if row.changed_at_ms >= max(horizon_ms, alive_ms)]
    taken, others = _hold(plan, young)
    new = [
        NewItem(plan.planned + place, row.id, row.token, row.reason, row.code, row.changed_at_ms, row.redriven > 0)
        for place, row in enumerate(taken, start=1)
    ]
    items.add(plan.pk, new)
    held_by = json.loads(plan.held_by)
    for plan_id in others:
        held_by[str(plan_id)] = held_by.get(str(plan_id), 0) + 1
    changes = {
        "looked_at": plan.looked_at + len(chunk.rows),
        "planned": plan.planned + len(new),
        "beyond_horizon": plan.beyond_horizon + beyond,
        "too_old": plan.too_old + too_old,
        "held_elsewhere": plan.held_elsewhere + len(others),
        "held_by": json.dumps(held_by, sort_keys=True),
        "frozen_after_ms": chunk.after[0],
        "frozen_after_seq": chunk.after[1],
        "digest": digest_on(plan.digest, [(item.pos, item.job_id, item.token) for item in new]),
    }
    if chunk.last or (plan.cap is not None and plan.planned + len(new) >= plan.cap):
        _end(plan, changes, now)
    else:
        _must(plans.change(plan, **changes))


def _hold(plan: Plan, rows: Sequence[DeadRow]) -> tuple[list[DeadRow], list[int]]:
    """The rows that this plan holds now, oldest first and within its cap, and the plans that hold some of the others."""
    taken: list[DeadRow] = []
    others: list[int] = []
    waiting = list(rows)
    while waiting:
        room = len(waiting) if plan.cap is None else plan.cap - plan.planned - len(taken)
        bite, waiting = waiting[:room], waiting[room:]
        if not bite:
            break
        got = holds.take(plan.pk, [row.id for row in bite])
        taken += [row for row in bite if row.id in got]
        others += holds.holders([row.id for row in bite if row.id not in got], except_plan=plan.pk).values()
    return taken, others


def _end(plan: Plan, changes: dict[str, object], now: int) -> None:
    if changes["planned"]:
        _must(plans.move(plan, "propose", now, expires_at_ms=now + EXPIRY_MS, **changes))
    else:
        _must(plans.move(plan, "find_none", now, why=EMPTY, **changes))
    chain.append(
        [
            programs.event(
                "plan.frozen" if plan.planned else "plan.empty",
                plan.pk,
                now,
                planned=plan.planned,
                digest=plan.digest,
                beyond_horizon=plan.beyond_horizon,
                too_old=plan.too_old,
                held_elsewhere=plan.held_elsewhere,
            )
        ]
    )


def _must(moved: bool) -> None:
    if not moved:
        raise RuntimeError("A plan moved inside the transaction that holds it.")
