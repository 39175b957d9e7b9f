"""Request in, answer out: every address that the receiver knows. No sockets here."""

import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from queue_app.receiver.database import Unusable
from queue_app.receiver.faults import read_faults
from queue_app.receiver.ledger import Ledger
from queue_app.receiver.orders import Refused, is_id, read_order

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler may know: the query as sent, all Idempotency-Key headers, the body."""

    method: str
    path: str
    query: str
    keys: list[str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a JSON document; `delay_ms` to wait before it is sent, `drop` to close without sending it."""

    status: int
    document: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    delay_ms: int = 0
    drop: bool = False


def refusal(status: int, sentence: str, **headers: str) -> Answer:
    """An answer that says no in one sentence, and never quotes what was sent."""
    return Answer(
        status, {"ok": False, "error": sentence}, {key.replace("_", "-"): text for key, text in headers.items()}
    )


def answer(request: Request, ledger: Ledger) -> Answer:
    """The answer to `request`. Bad input is 4xx; a database that cannot be used is 503 (507 when its disk is full)."""
    methods = _ROUTES.get(request.path)
    if methods is None or (request.path == "/faults" and not ledger.demo):
        return refusal(404, "There is nothing at this address.")
    if request.method not in methods:
        return refusal(405, "This address does not take this method.", Allow=", ".join(methods))
    try:
        return methods[request.method](request, ledger)
    except Refused as refused:
        return refusal(refused.status, refused.sentence)
    except Unusable as unusable:
        if unusable.full:
            return refusal(507, str(unusable))
        return refusal(503, str(unusable), Retry_After="1")


def _post_order(request: Request, ledger: Ledger) -> Answer:
    order = read_order(request.body, request.keys)
    applied = ledger.apply(order.id, order.quantity)
    fault = applied.fault
    delay_ms = fault.delay_ms if fault else 0
    drop = bool(fault and fault.drop)
    if fault and applied.outcome == "failed":
        return Answer(fault.status or 503, {"ok": False, "error": "Told to fail."}, delay_ms=delay_ms, drop=drop)
    if applied.outcome == "conflict":
        sentence = "This id is known with another quantity."
        return Answer(409, {"ok": False, "error": sentence}, delay_ms=delay_ms, drop=drop)
    duplicate = applied.outcome == "duplicate"
    document = {"ok": True, "id": order.id, "duplicate": duplicate}
    return Answer(200 if duplicate else 201, document, delay_ms=delay_ms, drop=drop)


def _get_ledger(request: Request, ledger: Ledger) -> Answer:
    asked = _query(request.query, {"after", "limit"})
    after, limit = asked.get("after"), asked.get("limit", str(DEFAULT_LIMIT))
    if after is not None and not is_id(after):
        raise Refused(400, "The cursor is not one that this ledger gives out.")
    if not re.fullmatch(r"[0-9]{1,4}", limit) or not 1 <= int(limit) <= MAX_LIMIT:
        raise Refused(400, f"The limit must be a whole number from 1 to {MAX_LIMIT:,}.")
    page = ledger.page(after, int(limit))
    return Answer(200, {"orders": page.orders, "next": page.next, "totals": page.totals, "as_of_ms": page.as_of_ms})


def _query(query: str, known: set[str]) -> dict[str, str]:
    """The parameters of a query. Raises `Refused` (400) for one that is unknown, given twice or not readable."""
    try:
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:
        raise Refused(400, "The query cannot be read.") from None
    asked = dict(pairs)
    if len(asked) != len(pairs) or set(asked) - known:
        raise Refused(400, "The query has a parameter twice or one that is not known.")
    return asked


def _get_faults(_request: Request, ledger: Ledger) -> Answer:
    return Answer(200, {"faults": [fault.as_json() for fault in ledger.faults()]})


def _post_faults(request: Request, ledger: Ledger) -> Answer:
    try:
        faults = read_faults(request.body)
    except ValueError as error:
        raise Refused(400, str(error)) from None
    ledger.replace_faults(faults)
    return Answer(200, {"faults": [fault.as_json() for fault in faults]})


def _get_livez(_request: Request, _ledger: Ledger) -> Answer:
    return Answer(200, {"ok": True})


_ROUTES: dict[str, dict[str, Callable[[Request, Ledger], Answer]]] = {
    "/orders": {"POST": _post_order},
    "/ledger": {"GET": _get_ledger},
    "/faults": {"GET": _get_faults, "POST": _post_faults},
    "/livez": {"GET": _get_livez},
}
