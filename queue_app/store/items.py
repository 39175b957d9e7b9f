"""The frozen items of plans: added while the plan is made, then each leaves `waiting` once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from queue_app.store.database import placeholders
from queue_app.store.given import Given
from queue_app.store.statements import fetch, fetch_all

Group = tuple[str, str]
"""(reason, code)."""

_NEW = Given("pos bigint, job_id text, token bigint, reason text, code text, dead_since_ms bigint")
_CAUSES = Given("reason text, code text, planned bigint, again bigint, oldest_ms bigint, newest_ms bigint")
_FOUND = Given("id text, token bigint")


@dataclass(frozen=True, slots=True)
class NewItem:
    """A job as it is frozen; `again`: it was redriven before."""

    pos: int
    job_id: str
    token: int
    reason: str
    code: str
    dead_since_ms: int
    again: bool


@dataclass(frozen=True, slots=True)
class Item:
    """A waiting item whose turn it is; `held_by` is the plan in the job's hold, None when there is none."""

    pos: int
    job_id: str
    token: int
    reason: str
    code: str
    tries: int
    held_by: int | None

    @property
    def group(self) -> Group:
        """Reason and code that it was dead for."""
        return self.reason, self.code


_ADD = (
    "INSERT INTO plan_items (plan_id, pos, job_id, token, reason, code, dead_since_ms, state, why, canary, tries) "
    "SELECT %s, g.pos, g.job_id, g.token, g.reason, g.code, g.dead_since_ms, 'waiting', '', 0, 0 FROM {g}"
)
_COUNT = (
    "INSERT INTO plan_groups AS p (plan_id, reason, code, planned, again, redriven, skipped, oldest_ms, newest_ms) "
    "SELECT %s, g.reason, g.code, g.planned, g.again, 0, 0, g.oldest_ms, g.newest_ms FROM {g} WHERE 1 = 1 "
    "ON CONFLICT (plan_id, reason, code) DO UPDATE SET "
    "planned = p.planned + excluded.planned, again = p.again + excluded.again, "
    "newest_ms = CASE WHEN excluded.newest_ms > p.newest_ms THEN excluded.newest_ms ELSE p.newest_ms END, "
    "oldest_ms = CASE WHEN excluded.oldest_ms < p.oldest_ms THEN excluded.oldest_ms ELSE p.oldest_ms END"
)

# --- while the plan is made -----------------------------------------------------------------------------------------


def add(plan_id: int, new: Sequence[NewItem]) -> None:
    """Freeze these jobs and count them by cause."""
    if not new:
        return
    counted: dict[Group, list[int]] = {}
    for item in new:
        group = counted.setdefault((item.reason, item.code), [0, 0, item.dead_since_ms, item.dead_since_ms])
        group[0] += 1
        group[1] += item.again
        group[2] = min(group[2], item.dead_since_ms)
        group[3] = max(group[3], item.dead_since_ms)
    rows = _NEW.values([(i.pos, i.job_id, i.token, i.reason, i.code, i.dead_since_ms) for i in new])
    sums = _CAUSES.values([(*group, *numbers) for group, numbers in sorted(counted.items())])
    fetch_all([(_ADD.format(g=_NEW.table), [plan_id, *rows]), (_COUNT.format(g=_CAUSES.table), [plan_id, *sums])])


def still_dead(tokens: Mapping[str, int]) -> set[str]:
    """Of these jobs (id -> token) those that are dead with that token now."""
    if not tokens:
        return set()
    found = fetch(
        f"SELECT g.id FROM {_FOUND.table} "
        "WHERE (SELECT j.token FROM jobs AS j WHERE j.id = g.id AND j.state = 'dead') = g.token",
        _FOUND.values(list(tokens.items())),
    )
    return {job_id for (job_id,) in found}


# --- whose turn it is -----------------------------------------------------------------------------------------------

# The hold is looked up for each item: a join would be made by reading all holds where the planner has no statistics yet.
_TURN = (
    "SELECT i.pos, i.job_id, i.token, i.reason, i.code, i.tries, "
    "(SELECT h.plan_id FROM holds AS h WHERE h.job_id = i.job_id) FROM plan_items AS i "
    "WHERE i.plan_id = %s AND i.state = 'waiting' "
)


def fresh(plan_id: int, from_pos: int, to_pos: int, limit: int) -> list[Item]:
    """The next items from a position on, up to another, oldest first, that had no turn yet.

    Looked for stretch by stretch, each twice as long as the one before: PostgreSQL, which knows nothing of a list as young
    as this one, would read and sort all the rest of it for the first few.
    """
    found: list[Item] = []
    stretch = limit
    while len(found) < limit and from_pos <= to_pos:
        found += _items(
            "AND i.pos >= %s AND i.pos < %s AND i.tries = 0 ORDER BY i.pos LIMIT %s",
            [plan_id, from_pos, from_pos + stretch, limit - len(found)],
        )
        from_pos, stretch = from_pos + stretch, stretch * 2
    return found


def again(plan_id: int, now_ms: int, limit: int) -> list[Item]:
    """Items whose turn failed before and whose wait is over."""
    return _items("AND i.tries > 0 AND i.at_ms <= %s ORDER BY i.at_ms LIMIT %s", [plan_id, now_ms, limit])


def of_trial(plan_id: int, round_: int, now_ms: int, limit: int) -> list[Item]:
    """Items drawn for the trial of this round that may be tried now."""
    return _items(
        "AND i.canary = %s AND i.canary > 0 AND (i.at_ms IS NULL OR i.at_ms <= %s) ORDER BY i.pos LIMIT %s",
        [plan_id, round_, now_ms, limit],
    )


def next_again_ms(plan_id: int) -> int | None:
    """When the next item that failed before may be tried again, or None."""
    first = "SELECT min(at_ms) FROM plan_items WHERE plan_id = %s AND state = 'waiting' AND tries > 0 AND at_ms > 0"
    ((at_ms,),) = fetch(first, [plan_id])
    return at_ms


def _items(rest: str, values: list[int]) -> list[Item]:
    return [Item(*row) for row in fetch(_TURN + rest, values)]


# --- the trial ------------------------------------------------------------------------------------------------------


def draw(plan_id: int, round_: int, wanted: Mapping[Group, int], from_pos: int) -> int:
    """Mark the oldest waiting items of each group for the trial of this round; how many were found."""
    drawn: list[int] = []
    with connection.cursor() as cursor:
        for (reason, code), n in sorted(wanted.items()):
            cursor.execute(
                "SELECT pos FROM plan_items WHERE plan_id = %s AND reason = %s AND code = %s AND pos >= %s "
                "AND state = 'waiting' AND tries = 0 AND canary < %s ORDER BY pos LIMIT %s",
                [plan_id, reason, code, from_pos, round_, n],
            )
            drawn += [row[0] for row in cursor.fetchall()]
        if drawn:
            cursor.execute(
                "UPDATE plan_items SET canary = %s "
                f"WHERE plan_id = %s AND pos IN ({placeholders(len(drawn))}) AND state = 'waiting'",
                [round_, plan_id, *drawn],
            )
    return len(drawn)


_PLACES = Given("place bigint")
_TURNS = Given("reason text, code text, redriven bigint, skipped bigint")

# --- after a turn ---------------------------------------------------------------------------------------------------


def set_redriven(plan_id: int, positions: Sequence[int], now_ms: int) -> int:
    """Waiting -> redriven; how many moved."""
    return _leave(plan_id, positions, "state = 'redriven', at_ms = NULL, left_at_ms = %s", [now_ms])


def set_skipped(plan_id: int, positions: Sequence[int], why: str, now_ms: int) -> int:
    """Waiting -> skipped because; how many moved."""
    return _leave(plan_id, positions, "state = 'skipped', why = %s, at_ms = NULL, left_at_ms = %s", [why, now_ms])


def set_failed(plan_id: int, pos: int, again_at_ms: int) -> int:
    """One more turn failed in the item itself; it waits until the instant."""
    return _leave(plan_id, [pos], "tries = tries + 1, at_ms = %s", [again_at_ms])


def _leave(plan_id: int, positions: Sequence[int], change: str, values: list[int | str]) -> int:
    if not positions:
        return 0
    moved = fetch(
        f"UPDATE plan_items SET {change} WHERE plan_id = %s AND pos {_PLACES.among} AND state = 'waiting' RETURNING pos",
        [*values, plan_id, *_PLACES.values([(pos,) for pos in positions])],
    )
    return len(moved)


def count_turns(plan_id: int, redriven: Mapping[Group, int], skipped: Mapping[Group, int]) -> None:
    """Add to the causes' numbers what was redriven and skipped."""
    groups = sorted({*redriven, *skipped})
    if not groups:
        return
    fetch(
        f"UPDATE plan_groups SET redriven = plan_groups.redriven + g.redriven, skipped = plan_groups.skipped + g.skipped "
        f"FROM {_TURNS.table} WHERE plan_id = %s AND plan_groups.reason = g.reason AND plan_groups.code = g.code "
        "RETURNING plan_groups.id",
        [*_TURNS.values([(*group, redriven.get(group, 0), skipped.get(group, 0)) for group in groups]), plan_id],
    )
