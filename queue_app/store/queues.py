"""The rows of `queues`."""

from collections.abc import Mapping
from typing import NamedTuple

from django.db import connection

from queue_app.models import Queue
from queue_app.policy.queues import QueuePolicy
from queue_app.store.database import is_postgresql, now_ms
from queue_app.store.gates import troubled
from queue_app.store.statements import Rows, Statement, fetch

_FIELDS = (
    "name",
    "ordering",
    "max_attempts",
    "budget_ms",
    "wait_base_ms",
    "wait_cap_ms",
    "wait_budget_ms",
    "lease_ms",
    "redrive_horizon_ms",
    "rate_mj",
    "max_unfinished",
    "accepting",
    "paused",
    "delivery_rate_mj",
    "breaker_after",
    "breaker_wait_ms",
    "done_kept_ms",
    "receiver_keeps_ms",
)


def policy_of(name: str, *, lock: bool = False) -> QueuePolicy | None:
    """The policy of a declared queue, or None when no queue has this name. `lock` holds its row on PostgreSQL.

    Plain SQL, because every claim asks: building the same query by the ORM took longer than all the rest of a small one.
    """
    suffix = " FOR UPDATE" if lock and is_postgresql() else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(_FIELDS)} FROM queues WHERE name = %s{suffix}", [name])
        row = cursor.fetchone()
    return QueuePolicy(*row) if row else None


class Standing(NamedTuple):
    """How a queue stands at an instant; `troubled` as in `store.gates`."""

    policy: QueuePolicy
    troubled: bool
    now_ms: int


def standing(name: str) -> Standing | None:
    """Inside a write transaction: how a queue stands by the clock of the database; all in one look."""
    return standing_of(fetch(*standing_statement(name)))


def standing_statement(name: str) -> Statement:
    """What `standing` asks, to be asked together with something else."""
    clock = "snackops_now_ms()" if is_postgresql() else "0"
    return f"SELECT {', '.join(_FIELDS)}, {troubled('queues.name')}, {clock} FROM queues WHERE name = %s", [name]


def standing_of(rows: Rows) -> Standing | None:
    """What `standing` makes of the answer."""
    if not rows:
        return None
    *policy, in_trouble, now = rows[0]
    return Standing(QueuePolicy(*policy), bool(in_trouble), now if is_postgresql() else now_ms())


def policies() -> dict[str, QueuePolicy]:
    """Every declared queue's policy by name."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(_FIELDS)} FROM queues ORDER BY name")
        return {row[0]: QueuePolicy(*row) for row in cursor.fetchall()}


def declare(policy: QueuePolicy) -> None:
    """Make or change a queue."""
    values = {field: getattr(policy, field) for field in _FIELDS if field != "name"}
    Queue.objects.update_or_create(name=policy.name, defaults=values)


def set_paused(name: str, *, paused: bool) -> bool:
    """Stop or go on handing out; False when it already stood so (or no queue has this name)."""
    return Queue.objects.filter(pk=name, paused=not paused).update(paused=paused) == 1


def set_accepting(name: str, *, accepting: bool) -> bool:
    """Accept orders or refuse them; False when it already stood so (or no queue has this name)."""
    return Queue.objects.filter(pk=name, accepting=not accepting).update(accepting=accepting) == 1


def set_limits(name: str, limits: Mapping[str, int | None]) -> bool:
    """Change limits, which the caller has checked; False when no queue has this name."""
    return Queue.objects.filter(pk=name).update(**limits) == 1
