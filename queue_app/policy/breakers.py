"""The breaker of a queue: when a receiver that fails everything is left alone, and how it is asked again.

Pure rules (DESIGN section 8 has the breaker of a redrive; this is the one of deliveries, over all workers and hosts).
closed: everything is handed out · open: nothing, until its wait is over · probing: one order is on its way.

Failing everything is a matter of number and of time. The tries of orders that share a cause fall due together, so some
dozens of failures may come at once from a receiver that takes the orders before and after; and one that is gone answers
nobody, however many ask. So the failures since its last answer count as much as the time since the first of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from queue_app.policy.attempts import Result

CLOSED, OPEN, PROBING = "closed", "open", "probing"
WAIT_CAP_MS = 600_000  # doubled waits end here: a receiver that came back is noticed within ten minutes
ASKED = 3  # so many orders ask in turn before the wait grows: one alone may fail for itself
SILENT_MS = 60_000  # the fewest failures that open it must have lasted so long; ten times as many a tenth of it

WORKS, ANSWERS, FAILS, NEITHER = "works", "answers", "fails", "neither"
PROBE_FAILS, PROBE_NEITHER = "probe_fails", "probe_neither"

# What ends together is heard as one: the first of these that is among them. Their order tells nothing.
_HEARD = (WORKS, PROBE_FAILS, PROBE_NEITHER, ANSWERS, FAILS, NEITHER)

# Asking for another try, but by a receiver that is there.
_THERE = frozenset({"http_425", "http_429"})

# (state, what the tries told) -> move. What was on its way when the breaker opened decides nothing, unless it succeeds.
MOVES: dict[tuple[str, str], str] = {
    (CLOSED, WORKS): "reset",
    (CLOSED, ANSWERS): "reset",
    (CLOSED, FAILS): "count",  # opens when enough failed for long enough
    (CLOSED, NEITHER): "stay",
    (OPEN, WORKS): "close",
    (OPEN, ANSWERS): "stay",
    (OPEN, FAILS): "stay",
    (OPEN, NEITHER): "stay",
    (PROBING, WORKS): "close",
    (PROBING, ANSWERS): "stay",
    (PROBING, FAILS): "stay",
    (PROBING, NEITHER): "stay",
    (PROBING, PROBE_FAILS): "reopen",  # the last of its turn: with the wait doubled
    (PROBING, PROBE_NEITHER): "ask_next",  # it told only about this one order: the next may be asked at once
}


@dataclass(frozen=True, slots=True)
class Rules:
    """`after`: the fewest failed tries without any answer that open it (0: it never opens), provided that they lasted
    SILENT_MS; more of them need less time. `wait_ms`: before the first probe."""

    after: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Breaker:
    """How the breaker stands. `failed_in_row`: failures since the last answer, failed probes too; `since_ms`: closed, or
    not closed, since then; `probe_at_ms`: while open, from then on one order may be handed out; `probe_job` and
    `probe_token`: while probing, which one; `silent_since_ms`: the first failure of the row; `probes_failed`: how many
    probes failed since it opened."""

    state: str = CLOSED
    failed_in_row: int = 0
    since_ms: int = 0
    probe_at_ms: int | None = None
    probe_job: str = ""
    probe_token: int = 0
    silent_since_ms: int | None = None
    probes_failed: int = 0


def told(outcome: str, code: str) -> str:
    """What a try tells about the receiver: works, answers, fails, or neither.

    Connections that fail, time-outs, 5xx and answers that prove nothing say that it is down. A refusal of one order for
    good, and the wish for fewer or later requests, come from a receiver that is there, and say nothing about the next.
    An order that never became a request tells nothing at all.
    """
    if outcome == "ok":
        return WORKS
    if code == "bad_order":
        return NEITHER
    if outcome == "permanent" or code in _THERE:
        return ANSWERS
    return FAILS


def fails_everything(failed: int, silent_ms: int, rules: Rules) -> bool:
    """Whether so many failures, the first of them so long ago and no answer since, open the breaker: at least
    `rules.after` over a minute, ten times as many over 6 s, sixty times as many over 1 s.

    So an outage at r failures a second costs about sqrt(60 * after * r) tries, and a crowd of failures that lasts a
    moment opens nothing.
    """
    return failed >= rules.after and failed * silent_ms >= rules.after * SILENT_MS


def after_ends(breaker: Breaker, ends: Sequence[Result], rules: Rules, now_ms: int) -> Breaker:
    """The breaker after these tries, which ended together in no order; each outcome is ok, retry, permanent or unknown.
    With `rules.after` 0 it is closed."""
    if not rules.after:
        return breaker if breaker.state == CLOSED and not breaker.failed_in_row else Breaker(since_ms=now_ms)
    heard = [_told_to(breaker, end) for end in ends]
    loudest = next((what for what in _HEARD if what in heard), NEITHER)
    return _moved(breaker, MOVES[breaker.state, loudest], heard.count(FAILS), rules, now_ms)


def _told_to(breaker: Breaker, end: Result) -> str:
    what = told(end.outcome, end.code)
    is_probe = breaker.state == PROBING and (end.id, end.token) == (breaker.probe_job, breaker.probe_token)
    if is_probe and what != WORKS:
        return PROBE_FAILS if what == FAILS else PROBE_NEITHER
    return what


def _moved(breaker: Breaker, move: str, failed: int, rules: Rules, now_ms: int) -> Breaker:
    if move == "reset":
        return replace(breaker, failed_in_row=0, silent_since_ms=None)
    if move == "close":
        return Breaker(since_ms=now_ms)
    if move == "count":
        return _counted(breaker, failed, rules, now_ms)
    if move == "reopen":
        row, probes = breaker.failed_in_row + 1, breaker.probes_failed + 1
        due = now_ms if probes % ASKED else now_ms + wait_ms(probes, rules)
        return replace(_asked(breaker, due), failed_in_row=row, probes_failed=probes)
    if move == "ask_next":
        return _asked(breaker, now_ms)
    return breaker


def _counted(breaker: Breaker, failed: int, rules: Rules, now_ms: int) -> Breaker:
    """The row with these failures. A clock that was set back begins its time anew and keeps its number."""
    row = breaker.failed_in_row + failed
    silent_since = now_ms if breaker.silent_since_ms is None else min(breaker.silent_since_ms, now_ms)
    counted = replace(breaker, failed_in_row=row, silent_since_ms=silent_since)
    if not fails_everything(row, now_ms - silent_since, rules):
        return counted
    return replace(_asked(counted, now_ms + wait_ms(0, rules)), since_ms=now_ms)


def _asked(breaker: Breaker, at_ms: int) -> Breaker:
    """Open, with one order asking from then on."""
    return replace(breaker, state=OPEN, probe_at_ms=at_ms, probe_job="", probe_token=0)


def wait_ms(probes_failed: int, rules: Rules) -> int:
    """How long nothing is handed out now: the rule's wait, doubled for each ASKED failed probes up to ten minutes (or the
    rule's own wait, when that is longer)."""
    doubled = rules.wait_ms << min(probes_failed // ASKED, 30)
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
