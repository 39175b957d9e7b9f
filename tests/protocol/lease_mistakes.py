"""What somebody might write wrong in the lease protocol, and the rule that the explorer must see broken.

`locked`: with the row's lock of a transaction; without it the guards alone must hold, which is when a lost guard shows.
"""

from dataclasses import dataclass, replace

from queue_app.policy import decisions
from queue_app.policy.decisions import Spent
from tests.protocol.lease_world import PAST, RULES, Job, Rules

OWN = "a token that does not own the job changes nothing"
STAYS = "what is done stays done"
TWICE = "two workers hold one token"
BACK = "a token never goes back"
DUE = "a job that is due is handed out or buried"
EARLY = "nobody takes a job before it is due, or a lease before it ran out"
OFTEN = "a job is handed out as often as its budget says, not more"
GRAVE = "a burial has a token and evidence of its own"
GRAVEYARD = "what is dead leaves by a redrive only"
COUNTS = "an answer of the job's own token counts"
BOTH = "no token is both done and failed"
HOPELESS = "no end can be reached from here though every fault is over"
TOLD = "done means that the receiver said so"
RESTART = "only what is dead is redriven"


@dataclass(frozen=True)
class Mistake:
    """`rules` hold a planted mistake; `rule` is what the explorer says of it."""

    name: str
    rules: Rules
    rule: str


def _lease(job: Job, age: int, **other: int) -> Job:
    return RULES.lease(job, age)._replace(**other)


def _due_leased(job: Job, latest: int) -> bool:
    return job.state == "leased" and (job.lease or 0) <= latest


def _waits(job: Job, latest: int = 0) -> bool:
    return job.state == "pending" and job.available <= latest


def _burial_one_late(spent: Spent, *, now_ms: int) -> str | None:
    return decisions.burial(replace(spent, attempts=spent.attempts - 1), now_ms=now_ms)


def _decide_hides(outcome: str, *more: object, **named: object) -> decisions.Decision:
    return decisions.decide("ok" if outcome == "retry" else outcome, *more, **named)  # type: ignore[arg-type]


FREE = replace(RULES, locked=False)
MISTAKES = (
    Mistake("finish checks no token", replace(RULES, owns=lambda job, _: job.state == "leased"), OWN),
    Mistake("finish checks no state", replace(RULES, owns=lambda job, token: job.token == token), OWN),
    Mistake(
        "an answer after the lease's end is thrown away",
        replace(RULES, owns=lambda job, token: RULES.owns(job, token) and (job.lease or 0) > 0),
        COUNTS,
    ),
    Mistake(
        "the token starts anew at a redrive",
        replace(RULES, restart=lambda job, age: RULES.restart(job, age)._replace(token=0)),
        BACK,
    ),
    Mistake(
        "`<` for `<=` at the lease's end",
        replace(RULES, due=lambda job: _waits(job) or _due_leased(job, PAST)),
        DUE,
    ),
    Mistake(
        "a lease is taken one instant early", replace(RULES, due=lambda job: _waits(job) or _due_leased(job, 1)), EARLY
    ),
    Mistake(
        "`<` for `<=` at the instant of a retry",
        replace(RULES, due=lambda job: _waits(job, PAST) or _due_leased(job, 0)),
        DUE,
    ),
    Mistake("a lost lease is never taken over", replace(RULES, due=_waits), DUE),
    Mistake(
        "the dead are handed out again",
        replace(RULES, due=lambda job: RULES.due(job) or (job.state == "dead" and job.attempts < job.most)),
        EARLY,
    ),
    Mistake(
        "taking over spends no attempt",
        replace(RULES, lease=lambda job, age: _lease(job, age, attempts=job.attempts + (job.state == "pending"))),
        OFTEN,
    ),
    Mistake("an attempt is never counted", replace(RULES, lease=lambda job, age: _lease(job, age, attempts=1)), OFTEN),
    Mistake("one attempt too many", replace(RULES, burial=_burial_one_late), OFTEN),
    Mistake(
        "taking over keeps the token",
        replace(RULES, lease=lambda job, age: _lease(job, age, token=max(job.token, 1))),
        TWICE,
    ),
    Mistake(
        "a burial keeps the token",
        replace(RULES, bury=lambda job, reason: RULES.bury(job, reason)._replace(token=job.token)),
        GRAVE,
    ),
    Mistake(
        "exhausted jobs are let lie instead of buried",
        replace(RULES, due=lambda job: RULES.due(job) and job.attempts < job.most),
        DUE,
    ),
    Mistake(
        "the update of a claim takes what is pending only",
        replace(RULES, unmoved=lambda job, state, token: RULES.unmoved(job, state, token) and state == "pending"),
        HOPELESS,
    ),
    Mistake("the update of a claim checks nothing", replace(FREE, unmoved=lambda *_: True), STAYS),
    Mistake(
        "the update of a claim checks the state alone",
        replace(FREE, unmoved=lambda job, state, _: job.state == state),
        OFTEN,
    ),
    Mistake("the evidence of a lost lease is written before the guard", replace(FREE, lost_at_look=True), BOTH),
    Mistake(
        "a redrive checks no state",
        replace(FREE, may_restart=lambda job, token: job.token == token and job.state != "done"),
        RESTART,
    ),
    Mistake("a lost answer passes as delivered", replace(RULES, decide=_decide_hides), TOLD),
)
