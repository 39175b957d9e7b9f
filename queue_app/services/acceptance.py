"""Accepting orders: durable when it returns, and the same order twice is one order (DESIGN section 4, "enqueue")."""

from collections.abc import Iterable, Mapping
from typing import Any

from queue_app.policy.bodies import digest_of
from queue_app.policy.errors import Conflict, InvalidOrder, QueueClosed, QueueFull
from queue_app.policy.orders import Order, check_order
from queue_app.policy.queues import QueuePolicy
from queue_app.reads import sizes
from queue_app.store import arrivals, database, queues
from queue_app.store.arrivals import Arrival

Answer = str | InvalidOrder | Conflict | QueueFull | QueueClosed
_FIELDS = frozenset({"id", "quantity", "queue", "payload", "order_key", "max_attempts", "deadline_ms"})


def enqueue(
    id: str,  # noqa: A002 - DESIGN section 5 names it
    quantity: int,
    *,
    queue: str = "snacks",
    payload: Mapping[str, Any] | None = None,
    order_key: str = "",
    max_attempts: int | None = None,
    deadline_ms: int | None = None,
    now_ms: int | None = None,
) -> str:
    """Accept one order: "accepted", or "duplicate" when the same order is known (then nothing changes).

    `deadline_ms` is an instant, `now_ms` replaces the clock. Raises InvalidOrder (nothing was asked of the database but
    whether the queue is declared), Conflict (the id is known with another body), QueueClosed, QueueFull.
    """
    order = check_order(
        id,
        quantity,
        queue=queue,
        payload=payload,
        order_key=order_key,
        max_attempts=max_attempts,
        deadline_ms=deadline_ms,
    )
    (answer,) = _accept([order], now_ms)
    if isinstance(answer, Exception):
        raise answer
    return answer


def enqueue_many(orders: Iterable[Mapping[str, Any]], *, now_ms: int | None = None) -> list[Answer]:
    """Accept many orders in one transaction: an answer per order, in order; a refusal is returned, not raised.

    Each order is a mapping with the names of `enqueue`. Either all accepted ones are durable or, after an error of the
    database, none.
    """
    answers: list[Answer] = []
    good: list[Order] = []
    places: list[int] = []
    for place, entry in enumerate(orders):
        try:
            good.append(_checked(entry))
            places.append(place)
            answers.append("")
        except InvalidOrder as refusal:
            answers.append(refusal)
    for place, answer in zip(places, _accept(good, now_ms), strict=True):
        answers[place] = answer
    return answers


def _checked(entry: Mapping[str, Any]) -> Order:
    if type(entry) is not dict and not isinstance(entry, Mapping):
        raise InvalidOrder("An order must be a mapping with id and quantity.")
    if not _FIELDS.issuperset(entry):
        raise InvalidOrder(f"An order has no field {str(min(map(str, set(entry) - _FIELDS)))[:40]!a}.")
    asked = entry.get
    return check_order(
        asked("id"),
        asked("quantity"),
        queue=asked("queue", "snacks"),
        payload=asked("payload"),
        order_key=asked("order_key", ""),
        max_attempts=asked("max_attempts"),
        deadline_ms=asked("deadline_ms"),
    )


@database.retried
def _accept(orders: list[Order], now_ms: int | None) -> list[Answer]:
    if not orders:
        return []
    with database.write():
        return _Acceptance(orders, database.instant(now_ms)).answers()


class _Acceptance:
    """One transaction's worth of orders: look once, insert the new ones, then answer each in turn."""

    def __init__(self, orders: list[Order], now_ms: int) -> None:
        self._orders = orders
        self._now = now_ms
        self._policies = queues.policies()
        self._known = arrivals.known_bodies([order.id for order in orders])
        self._room: dict[str, int] = {}

    def answers(self) -> list[Answer]:
        answers: list[Answer] = ["accepted"] * len(self._orders)
        fresh: dict[str, int] = {}  # id -> place of its first acceptable order
        others: list[int] = []
        free = {name for name, policy in self._policies.items() if policy.accepting and policy.max_unfinished is None}
        for place, order in enumerate(self._orders):
            if order.id in self._known or order.id in fresh:
                others.append(place)
            elif order.queue not in free and (refusal := self._refusal(order)) is not None:
                answers[place] = refusal
            else:
                fresh[order.id] = place
        others += self._place(fresh)
        for place in others:
            answers[place] = self._compared(self._orders[place], fresh)
        return answers

    def _place(self, fresh: dict[str, int]) -> list[int]:
        """Insert; the places of those that another host accepted a moment ago."""
        placed = self._insert([self._orders[place] for place in fresh.values()])
        if len(placed) == len(fresh):
            return []
        lost = [job_id for job_id in fresh if job_id not in placed]
        self._known |= arrivals.known_bodies(lost)
        return [fresh[job_id] for job_id in lost]

    def _compared(self, order: Order, fresh: dict[str, int]) -> Answer:
        """The answer to an order whose id is known, from before or from an earlier line."""
        known = self._known.get(order.id) or digest_of(self._orders[fresh[order.id]])
        if known != digest_of(order):
            return Conflict(f"The id {order.id} is known with another queue, quantity, payload or order_key.")
        return "duplicate"

    def _refusal(self, order: Order) -> InvalidOrder | QueueClosed | QueueFull | None:
        policy = self._policies.get(order.queue)
        if policy is None:
            return InvalidOrder(f"No queue {order.queue!r} is declared.")
        if not policy.accepting:
            return QueueClosed(f"The queue {order.queue} does not accept orders now.")
        return self._fullness(policy)

    def _fullness(self, policy: QueuePolicy) -> QueueFull | None:
        if policy.max_unfinished is None:
            return None
        room = self._room.get(policy.name)
        if room is None:
            room = policy.max_unfinished - sizes.unfinished(policy.name)
        self._room[policy.name] = room - 1
        if room > 0:
            return None
        return QueueFull(f"The queue {policy.name} holds {policy.max_unfinished} unfinished orders, its limit.")

    def _insert(self, orders: list[Order]) -> set[str]:
        if not orders:
            return set()
        budgets = {name: (policy.max_attempts, self._now + policy.budget_ms) for name, policy in self._policies.items()}
        rows = []
        for job_id, queue, quantity, payload, key, max_attempts, deadline in orders:
            tries, until = budgets[queue]
            rows.append(
                Arrival(
                    job_id,
                    queue,
                    key,
                    quantity,
                    payload,
                    tries if max_attempts is None else max_attempts,
                    until if deadline is None else deadline,
                )
            )
        return arrivals.insert(rows, self._now)
