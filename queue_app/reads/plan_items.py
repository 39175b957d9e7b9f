"""Single orders of a redrive's list, by position."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.policy.figures import Results
from queue_app.reads.groups import results_by_batch


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One order of a list. `at_ms`: redriven or skipped then; `outcome`: '', waiting, done, dead_same or dead_other, and
    `ended_at_ms` when that came; `trial`: the round it was tried in."""

    pos: int
    job_id: str
    token: int
    reason: str
    code: str
    dead_since_ms: int
    state: str
    why: str
    tries: int
    trial: int
    at_ms: int | None
    outcome: str
    ended_at_ms: int | None = None

    @property
    def redriven_at_ms(self) -> int | None:
        """When it was redriven, None when it was not: a failed try or a skip has an instant, too."""
        return self.at_ms if self.state == "redriven" else None

    @property
    def skipped_at_ms(self) -> int | None:
        """When it was skipped, None when it was not."""
        return self.at_ms if self.state == "skipped" else None


# As the indexes have it: the skipped ones' is partial, and serves only a text that says the same.
_IS = {"waiting": "i.state = 'waiting'", "redriven": "i.state = 'redriven'", "skipped": "i.why > ''"}


def plan_items(
    plan_id: int,
    *,
    after_pos: int = 0,
    states: Collection[str] | None = None,
    outcome: str | None = None,
    why: str | None = None,
    before_pos: int | None = None,
    limit: int = 50,
) -> list[ItemLine]:
    """Orders of a list by position, after one, or the last ones before one; `states` of the items, an `outcome` of
    redriven ones (a field of `Results`, else AttributeError), or `why` they were skipped."""
    conditions, values = ["i.plan_id = %s"], [plan_id]
    conditions.append("i.pos > %s" if before_pos is None else "i.pos < %s")
    values.append(after_pos if before_pos is None else before_pos)
    more: list[Any] = []
    if why is not None:
        states = ("skipped",)
        conditions.append("i.why = %s")
        more.append(why)
    if states:
        known = [state for state in _IS if state in states]
        conditions.append(f"({' OR '.join(_IS[state] for state in known) or '1 = 0'})")
    if outcome is not None:
        if not getattr(results_by_batch([plan_id]).get(plan_id, Results()), outcome):
            return []  # known from the counters, or a million orders would be searched in vain
        conditions.append("i.state = 'redriven' AND coalesce(o.outcome, 'waiting') = %s")
        more.append(outcome)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.pos, i.job_id, i.token, i.reason, i.code, i.dead_since_ms, i.state, i.why, i.tries, i.canary, "
            "coalesce(i.left_at_ms, i.at_ms), "
            "CASE WHEN i.state = 'redriven' THEN coalesce(o.outcome, 'waiting') ELSE '' END, o.at_ms "
            "FROM plan_items AS i LEFT JOIN redrive_outcomes AS o ON o.job_id = i.job_id AND o.token = i.token "
            f"AND o.batch = i.plan_id WHERE {' AND '.join(conditions)} "
            f"ORDER BY i.pos {'ASC' if before_pos is None else 'DESC'} LIMIT %s",
            [*values, *more, limit],
        )
        rows = [ItemLine(*row) for row in cursor.fetchall()]
        return rows if before_pos is None else rows[::-1]
