"""The breaker of a queue: when a receiver that fails everything is left alone, and how it is asked again.

Pure rules (DESIGN section 8 has the breaker of a redrive; this is the one of deliveries, over all workers and hosts).
closed: everything is handed out · open: nothing, until its wait is over · probing: one order is on its way.
"""

from dataclasses import dataclass, replace

from queue_app.policy.attempts import Result

CLOSED, OPEN, PROBING = "closed", "open", "probing"
WAIT_CAP_MS = 600_000  # doubled waits end here: a receiver that came back is noticed within ten minutes

WORKS, FAILS, NEITHER = "works", "fails", "neither"
PROBE_FAILS, PROBE_NEITHER = "probe_fails", "probe_neither"

# Asking for another try, but by a receiver that is there; and an order that never became a request.
_NOT_DOWN = frozenset({"http_425", "http_429", "bad_order"})

# (state, what a try told) -> move. What was on its way when the breaker opened decides nothing, unless it succeeds.
MOVES: dict[tuple[str, str], str] = {
    (CLOSED, WORKS): "reset",
    (CLOSED, FAILS): "count",  # opens when the row is full
    (CLOSED, NEITHER): "stay",
    (OPEN, WORKS): "close",
    (OPEN, FAILS): "stay",
    (OPEN, NEITHER): "stay",
    (PROBING, WORKS): "close",
    (PROBING, FAILS): "stay",
    (PROBING, NEITHER): "stay",
    (PROBING, PROBE_FAILS): "reopen",  # with the wait doubled
    (PROBING, PROBE_NEITHER): "ask_next",  # it answered, but only about this one order: the next may be asked at once
}


@dataclass(frozen=True, slots=True)
class Rules:
    """`after`: failed tries in a row that open it (0: never); `wait_ms`: before the first probe."""

    after: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Breaker:
    """How the breaker stands. `since_ms`: closed, or not closed, since then; `probe_at_ms`: while open, from then on one
    order may be handed out; `probe_job` and `probe_token`: while probing, which one. Each failed probe makes the row
    longer by one, so `failed_in_row` also tells how often the wait was doubled."""

    state: str = CLOSED
    failed_in_row: int = 0
    since_ms: int = 0
    probe_at_ms: int | None = None
    probe_job: str = ""
    probe_token: int = 0


def told(outcome: str, code: str) -> str:
    """What a try tells about the receiver: works, fails, or neither.

    Connections that fail, time-outs, 5xx and answers that prove nothing say that it is down. A refusal of one order for
    good, and the wish for fewer or later requests, come from a receiver that is there, and say nothing about the next.
    """
    if outcome == "ok":
        return WORKS
    if outcome == "permanent" or code in _NOT_DOWN:
        return NEITHER
    return FAILS


def after_end(breaker: Breaker, end: Result, rules: Rules, now_ms: int) -> Breaker:
    """The breaker after this try; its outcome is ok, retry, permanent or unknown. With `rules.after` 0 it is closed."""
    if not rules.after:
        return breaker if breaker.state == CLOSED and not breaker.failed_in_row else Breaker(since_ms=now_ms)
    what = told(end.outcome, end.code)
    is_probe = breaker.state == PROBING and (end.id, end.token) == (breaker.probe_job, breaker.probe_token)
    if is_probe and what != WORKS:
        what = PROBE_FAILS if what == FAILS else PROBE_NEITHER
    return _moved(breaker, MOVES[breaker.state, what], rules, now_ms)


def _moved(breaker: Breaker, move: str, rules: Rules, now_ms: int) -> Breaker:
    if move == "reset":
        return replace(breaker, failed_in_row=0)
    if move == "close":
        return Breaker(since_ms=now_ms)
    if move == "count":
        row = breaker.failed_in_row + 1
        if row < rules.after:
            return replace(breaker, failed_in_row=row)
        return Breaker(OPEN, row, now_ms, now_ms + wait_ms(row, rules))
    if move == "reopen":
        row = breaker.failed_in_row + 1
        return Breaker(OPEN, row, breaker.since_ms, now_ms + wait_ms(row, rules))
    if move == "ask_next":
        return Breaker(OPEN, breaker.failed_in_row, breaker.since_ms, now_ms)
    return breaker


def wait_ms(failed_in_row: int, rules: Rules) -> int:
    """How long nothing is handed out after this failure: the rule's wait, doubled for each failed probe up to ten minutes
    (or the rule's own wait, when that is longer)."""
    doubled = rules.wait_ms << min(max(failed_in_row - rules.after, 0), 30)
    return max(rules.wait_ms, min(doubled, WAIT_CAP_MS))


def asks_now(breaker: Breaker, rules: Rules, now_ms: int) -> bool:
    """Whether an open breaker's wait is over. A clock that was set back makes nobody wait longer than the longest wait."""
    left_ms = (breaker.probe_at_ms or 0) - now_ms
    return left_ms <= 0 or left_ms > max(rules.wait_ms, WAIT_CAP_MS)


def lets_through(breaker: Breaker, rules: Rules, now_ms: int, *, probe_runs: bool) -> int | None:
    """How many orders may be handed out now: None for any number, 1 for a probe, 0 for none.

    `probe_runs`: the probe's order is still leased with its token; when it is not, its worker died or gave it back
    without an answer, and another order may be asked.
    """
    if not rules.after or breaker.state == CLOSED:
        return None
    if breaker.state == OPEN:
        return 1 if asks_now(breaker, rules, now_ms) else 0
    return 0 if probe_runs else 1


def probing(breaker: Breaker, job: str, token: int) -> Breaker:
    """The breaker while this order is on its way."""
    return replace(breaker, state=PROBING, probe_job=job, probe_token=token)
