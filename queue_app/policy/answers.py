"""What a receiver's answer means: kinds, codes, and whether an effect is possible (DESIGN section 6).

Pure rules: bytes and numbers in, values out. `ANSWERS` is the one table of codes for adapter, worker and screens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from queue_app.policy.strict_json import read_object

Kind = Literal["done", "retry", "permanent", "unknown", "queue"]
"""done, retry and permanent end a lease; unknown leaves the job leased; queue marks codes of the queue itself."""

RETRY_AFTER_MAX_MS = 3_600_000
"""A receiver may ask for one hour at most: a longer wish would park an order beyond anybody's sight."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_WORTH_READING = 8
_DATE_LENGTH = 64
_REDIRECTS = frozenset({300, 301, 302, 303, 305, 307, 308})


@dataclass(frozen=True, slots=True)
class Answer:
    """One code: what it does to the job, whether an effect at the receiver is possible, and a sentence for people."""

    code: str
    kind: Kind
    effect_possible: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one delivery came to; `retry_after_ms` is the receiver's bounded wish, or None."""

    kind: Kind
    code: str
    retry_after_ms: int | None = None


# "No effect" is said only where the receiver never had the whole request or refused it in so many words.
ANSWERS: tuple[Answer, ...] = (
    Answer("dns", "retry", False, "The receiver's name could not be resolved."),
    Answer("connect_refused", "retry", False, "Nothing accepts connections at the receiver's address."),
    Answer("connection_failed", "retry", False, "The receiver could not be reached."),
    Answer("timeout_connect", "retry", False, "The connection was not made in time."),
    Answer("tls", "retry", False, "No secure connection could be agreed with the receiver."),
    Answer("connection_lost", "retry", True, "The connection broke before an answer came."),
    Answer("short_body", "retry", True, "The answer broke off before its end."),
    Answer("timeout_write", "retry", True, "The receiver did not take the request in time."),
    Answer("timeout_read", "retry", True, "The receiver was silent for too long."),
    Answer("timeout_total", "retry", True, "The answer was not complete within the total time."),
    Answer("http_408", "retry", True, "The receiver gave up waiting for the request (408)."),
    Answer("http_425", "retry", False, "The receiver did not want the request that early (425)."),
    Answer("http_429", "retry", False, "The receiver asked for fewer requests (429)."),
    Answer("http_500", "retry", True, "The receiver failed (500)."),
    Answer("http_502", "retry", True, "A gateway got no usable answer from the receiver (502)."),
    Answer("http_503", "retry", True, "The receiver was not available (503)."),
    Answer("http_504", "retry", True, "A gateway waited for the receiver in vain (504)."),
    Answer("http_400", "permanent", False, "The receiver cannot read this order (400)."),
    Answer("http_409", "permanent", False, "The receiver knows this id with another order (409)."),
    Answer("http_410", "permanent", False, "The receiver no longer takes this order (410)."),
    Answer("http_413", "permanent", False, "The order is too large for the receiver (413)."),
    Answer("http_422", "permanent", False, "The receiver refuses what the order says (422)."),
    Answer("http_401", "unknown", False, "The receiver does not know us (401): look at the settings."),
    Answer("http_403", "unknown", False, "The receiver does not admit us (403): look at the settings."),
    Answer("http_404", "unknown", False, "Nobody takes orders at this address (404): look at the settings."),
    Answer("http_405", "unknown", False, "This address does not take orders (405): look at the settings."),
    Answer("redirect", "unknown", True, "The receiver pointed elsewhere; redirects are never followed."),
    Answer("not_ok", "unknown", True, "The answer does not say that the order was taken."),
    Answer("wrong_id", "unknown", True, "The answer speaks of another order."),
    Answer("bad_json", "unknown", True, "The answer is not the JSON object that was agreed on."),
    Answer("oversize", "unknown", True, "The answer is larger than any honest one."),
    Answer("compressed", "unknown", True, "The answer is compressed though nobody asked for it."),
    Answer("bad_http", "unknown", True, "The answer breaks the rules of HTTP."),
    Answer("bad_order", "unknown", False, "The order could not be put into a request; nothing was sent."),
    Answer("bad_ack", "unknown", True, "The answer is neither a success nor a failure that the receiver owns up to."),
    Answer("exception", "unknown", True, "The try ended by a fault inside the worker."),
    Answer("lease_expired", "queue", True, "The worker's time ran out before it reported an outcome."),
    Answer("deadline_passed", "queue", False, "The order's time ran out before this try began."),
    Answer("wait_budget", "queue", True, "The waits between tries grew beyond the queue's limit."),
)

_BY_CODE = {answer.code: answer for answer in ANSWERS}


def answer_for(code: str) -> Answer:
    """The table's row for a code; a status without a row follows its class, any other code counts as unknown."""
    known = _BY_CODE.get(code)
    if known is not None:
        return known
    status = re.fullmatch(r"http_([1-9][0-9]{2})", code)
    if status is None:
        return Answer(code, "unknown", True, "What happened at the receiver is not known.")
    if status[1].startswith("5"):
        return Answer(code, "retry", True, f"The receiver failed ({status[1]}).")
    return Answer(code, "unknown", True, f"The receiver gave an answer that was not agreed on ({status[1]}).")


def effect_possible(code: str) -> bool:
    """Whether a try that ended with this code may have had its effect at the receiver; unknown codes say yes."""
    return answer_for(code).effect_possible


def failed(code: str) -> Verdict:
    """The verdict of a delivery that ended with this code."""
    return Verdict(answer_for(code).kind, code)


def refused(status: int, retry_after: Sequence[str], now_ms: int) -> Verdict:
    """The verdict of any status but 200 and 201; `retry_after` holds all values of that header, for 429 and 503."""
    code = "redirect" if status in _REDIRECTS else f"http_{status}"
    wish = retry_after_ms(retry_after, now_ms) if status in (429, 503) else None
    return Verdict(answer_for(code).kind, code, wish)


def retry_after_ms(values: Sequence[str], now_ms: int) -> int | None:
    """The wait that Retry-After asks for, in milliseconds within [0, one hour]; None if it says nothing clear.

    Seconds or an HTTP date (RFC 9110, 10.2.3), which is held against the receiving wall-clock `now_ms`; a date
    without a zone is UTC. Two headers contradict each other, so both are ignored. Raises nothing.
    """
    if len(values) != 1 or not values[0].isascii():
        return None
    text = values[0].strip(" \t")
    if re.fullmatch(r"[0-9]+", text):
        digits = text.lstrip("0") or "0"
        # int() refuses thousands of digits with an exception; so many seconds are past the cap anyway.
        return RETRY_AFTER_MAX_MS if len(digits) > _DIGITS_WORTH_READING else _bounded(int(digits) * 1000)
    if len(text) > _DATE_LENGTH or not text[:1].isalpha():
        return None
    try:
        instant = parsedate_to_datetime(text)
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return _bounded(int((aware - _EPOCH).total_seconds() * 1000) - now_ms)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _bounded(wait_ms: int) -> int:
    return max(0, min(wait_ms, RETRY_AFTER_MAX_MS))


def ack_fault(body: bytes, sent_id: str) -> str | None:
    """None if the body acknowledges the order (`ok` is exactly true, `id` is the id sent); else the fault's code.

    What is one JSON object is decided in `strict_json`.
    """
    answer = read_object(body)
    if answer is None:
        return "bad_json"
    if answer.get("ok") is not True:
        return "not_ok"
    return None if answer.get("id") == sent_id else "wrong_id"
