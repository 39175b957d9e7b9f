"""Queues as they stand: policy, orders by state, who works on them, the gate to the receiver. A fixed number of queries."""

from dataclasses import dataclass, fields

from django.db import connection

from queue_app.models import Queue
from queue_app.policy.breakers import CLOSED, Breaker
from queue_app.policy.figures import SILENT_MS, StateFigures
from queue_app.policy.queues import QueuePolicy

_POLICY = [field.name for field in fields(QueuePolicy)]
_BREAKER = "queue, breaker, failed_in_row, since_ms, probe_at_ms, probe_job, probe_token"


@dataclass(frozen=True, slots=True)
class Crew:
    """The living workers of a queue: how many, on how many hosts, deliveries at once in all, and what they end together
    (thousandths of an order/s). `lost`: silent ones that never said that they stop."""

    workers: int = 0
    hosts: int = 0
    at_once: int = 0
    rate_mj: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One declared queue as of an instant."""

    policy: QueuePolicy
    states: StateFigures
    crew: Crew
    breaker: Breaker

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.policy.name

    @property
    def breaker_open(self) -> bool:
        """Whether its receiver is left alone now (also while one order asks)."""
        return self.breaker.state != CLOSED and self.policy.breaker_after > 0


def lines(as_of_ms: int) -> tuple[QueueLine, ...]:
    """Every declared queue by name. Four queries."""
    states, crews, breakers = _states(), _crews(as_of_ms), _breakers()
    policies = [QueuePolicy(**row) for row in Queue.objects.order_by("name").values(*_POLICY)]
    return tuple(
        QueueLine(
            policy,
            states.get(policy.name, StateFigures()),
            crews.get(policy.name, Crew()),
            breakers.get(policy.name, Breaker()),
        )
        for policy in policies
    )


def left_alone() -> tuple[tuple[str, Breaker], ...]:
    """The queues whose receiver is left alone now, by name. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_BREAKER} FROM gates WHERE breaker <> 'closed' AND EXISTS "
            "(SELECT 1 FROM queues AS q WHERE q.name = gates.queue AND q.breaker_after > 0) ORDER BY queue"
        )
        return tuple((row[0], Breaker(*row[1:])) for row in cursor.fetchall())


def _breakers() -> dict[str, Breaker]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_BREAKER} FROM gates")
        return {row[0]: Breaker(*row[1:]) for row in cursor.fetchall()}


def _states() -> dict[str, StateFigures]:
    found: dict[str, dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT queue, state, stage, sum(n) FROM counts GROUP BY queue, state, stage")
        for queue, state, stage, n in cursor.fetchall():
            states = found.setdefault(queue, dict.fromkeys(StateFigures.__slots__, 0))
            states[stage or state] += int(n)
    return {queue: StateFigures(**states) for queue, states in found.items()}


def _crews(as_of_ms: int) -> dict[str, Crew]:
    alive = "seen_at_ms > %s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT queue, sum(CASE WHEN {alive} THEN 1 ELSE 0 END), "
            f"count(DISTINCT CASE WHEN {alive} THEN host END), "
            f"sum(CASE WHEN {alive} THEN concurrency ELSE 0 END), sum(CASE WHEN {alive} THEN rate_mj ELSE 0 END), "
            f"sum(CASE WHEN {alive} THEN 0 ELSE 1 END) "
            "FROM processes WHERE kind = 'worker' AND stopped_at_ms IS NULL GROUP BY queue",
            [as_of_ms - SILENT_MS] * 5,
        )
        return {row[0]: Crew(*(int(n) for n in row[1:])) for row in cursor.fetchall()}
