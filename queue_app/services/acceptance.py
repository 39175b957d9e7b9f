"""Accepting orders: durable when it returns, and the same order twice is one order (DESIGN section 4, "enqueue")."""

from collections.abc import Iterable, Mapping
from itertools import batched
from typing import Any

from queue_app.policy.bodies import digest_of
from queue_app.policy.errors import Conflict, InvalidOrder, QueueClosed, QueueFull
from queue_app.policy.orders import Order, check_order
from queue_app.policy.queues import QueuePolicy
from queue_app.reads import sizes
from queue_app.store import arrivals, database, evidence, queues

Answer = str | InvalidOrder | Conflict | QueueFull | QueueClosed
_OPTIONS = frozenset({"queue", "payload", "order_key", "max_attempts", "deadline_ms"})


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
    if not isinstance(entry, Mapping):
        raise InvalidOrder("An order must be a mapping with id and quantity.")
    unknown = set(entry) - _OPTIONS - {"id", "quantity"}
    if unknown:
        raise InvalidOrder(f"An order has no field {str(min(map(str, unknown)))[:40]!a}.")
    return check_order(entry.get("id"), entry.get("quantity"), **{k: entry[k] for k in _OPTIONS if k in entry})


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
        self._known = self._bodies([order.id for order in orders])
        self._room: dict[str, int | None] = {}

    def answers(self) -> list[Answer]:
        fresh: dict[str, Order] = {}
        refused: dict[int, Answer] = {}
        for place, order in enumerate(self._orders):
            if order.id in self._known or order.id in fresh:
                continue
            refusal = self._refusal(order)
            if refusal is None:
                fresh[order.id] = order
            else:
                refused[place] = refusal
        placed = self._insert(list(fresh.values()))
        lost = [job_id for job_id in fresh if job_id not in placed]
        if lost:  # another host accepted the same id a moment ago
            self._known |= self._bodies(lost)
        self._known |= {job_id: digest_of(fresh[job_id]) for job_id in placed}
        return [refused.get(place) or self._answer(order, placed) for place, order in enumerate(self._orders)]

    def _answer(self, order: Order, placed: set[str]) -> Answer:
        if self._known[order.id] != digest_of(order):
            return Conflict(f"The id {order.id} is known with another queue, quantity, payload or order_key.")
        if order.id in placed:
            placed.discard(order.id)  # only the first line of a batch was the acceptance
            return "accepted"
        return "duplicate"

    def _bodies(self, ids: list[str]) -> dict[str, str]:
        known: dict[str, str] = {}
        for some in batched(ids, database.NAMES_PER_STATEMENT, strict=False):
            # the rows first: what another host removes between the two looks has its tombstone by then
            known |= sizes.body_digests(some) | evidence.buried_bodies(list(some))
        return known

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
        limits = []
        for order in orders:
            policy = self._policies[order.queue]
            limits.append(
                (
                    policy.max_attempts if order.max_attempts is None else order.max_attempts,
                    self._now + policy.budget_ms if order.deadline_ms is None else order.deadline_ms,
                )
            )
        return arrivals.insert(orders, arrivals.next_seqs(len(orders)), limits, self._now)
