"""The life of a plan and its batch (DESIGN section 8): one table of legal moves and who may make each.

For people a plan and its batch are one thing, Redrive R-12. A move that is not in the table does not exist.
"""

from dataclasses import dataclass

from queue_app.policy.errors import SnackOpsError, gettext_noop

OPEN = ("freezing", "proposed", "approved", "running", "paused", "halted")
CLOSED = ("ended", "stopped", "rejected", "withdrawn", "expired", "cancelled")
STATES = (*OPEN, *CLOSED)
CARRIED = ("freezing", "approved", "running")  # a redriver has something to do for them

REDRIVER = "redriver"  # the moves that no person makes: they follow from time, results and progress
EXPIRY_MS = 86_400_000  # undecided, or approved and not begun, for so long: it runs out
TRIES = 3  # an item that fails in itself so often is skipped

# why a batch is paused or halted
BY_PERSON = "person"
TRIAL_SILENT = "canary_silent"
TRIAL_FAILED = "canary_deaths"
BREAKER = "breaker"
EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Move:
    """Where a move leads, and who may make it: the right of `policy.rights` that a person needs, or REDRIVER."""

    to: str
    who: str


MOVES: dict[tuple[str, str], Move] = {
    ("freezing", "propose"): Move("proposed", REDRIVER),
    ("freezing", "find_none"): Move("cancelled", REDRIVER),
    ("freezing", "cancel"): Move("cancelled", "withdraw"),
    ("freezing", "expire"): Move("expired", REDRIVER),
    ("proposed", "approve"): Move("approved", "approve"),
    ("proposed", "reject"): Move("rejected", "reject"),
    ("proposed", "withdraw"): Move("withdrawn", "withdraw"),
    ("proposed", "expire"): Move("expired", REDRIVER),
    ("approved", "begin"): Move("running", REDRIVER),
    ("approved", "pause"): Move("paused", "pause"),
    ("approved", "stop"): Move("stopped", "stop"),
    ("approved", "expire"): Move("expired", REDRIVER),  # it never began
    ("approved", "lapse"): Move("halted", REDRIVER),  # it had begun before this round, so it keeps what it did
    ("running", "pause"): Move("paused", "pause"),
    ("running", "fall_silent"): Move("paused", REDRIVER),
    ("running", "halt"): Move("halted", REDRIVER),
    ("running", "stop"): Move("stopped", "stop"),
    ("running", "end"): Move("ended", REDRIVER),
    ("paused", "resume"): Move("approved", "resume"),  # it takes its turn again, at once if the queue is free
    ("paused", "continue"): Move(
        "approved", "continue"
    ),  # a new round: after a silent trial, or up to the rate asked for
    ("paused", "halt"): Move("halted", REDRIVER),  # the results came after all, and they are bad
    ("paused", "stop"): Move("stopped", "stop"),
    ("halted", "continue"): Move("approved", "continue"),
    ("halted", "stop"): Move("stopped", "stop"),
}
PACED = ("approved", "running", "paused")  # the rate may be changed in these states, up to the approved one


class UnknownPlan(SnackOpsError, LookupError):
    """No redrive has this number."""


class InvalidPlan(SnackOpsError, ValueError):
    """What was asked for or decided cannot be meant; `field` names what is wrong, `offered` its half-width form."""

    def __init__(self, template: str, *, field: str = "", offered: str = "", **values: object) -> None:
        super().__init__(template, field=field, **values)
        self.field = field
        self.offered = offered


class PlanMoved(SnackOpsError):
    """The redrive is not (any more) what the person saw: other state, round, list or number. Nothing was changed."""


class NothingToRedrive(InvalidPlan):
    """The selection holds no order that could be frozen."""


def target(state: str, move: str) -> str | None:
    """The state that the move leads to, or None when it is not legal in this state."""
    found = MOVES.get((state, move))
    return found.to if found else None


def deciding_move(state: str) -> str | None:
    """The move by which a lead lets a redrive go on from here: approve, continue (a new round), or None."""
    if state == "proposed":
        return "approve"
    if state in ("halted", "paused"):
        return "continue"
    return None


def resumable(state: str, why: str) -> bool:
    """Whether an operator may resume: only what a person paused."""
    return state == "paused" and why == BY_PERSON


NOT_NOW = {
    "approve": gettext_noop("R-%(plan)s cannot be approved: it is %(state)s."),
    "continue": gettext_noop("R-%(plan)s cannot go on by an approval: it is %(state)s."),
    "reject": gettext_noop("R-%(plan)s cannot be rejected: it is %(state)s."),
    "withdraw": gettext_noop("R-%(plan)s cannot be withdrawn: it is %(state)s."),
    "cancel": gettext_noop("The making of R-%(plan)s cannot be cancelled: it is %(state)s."),
    "pause": gettext_noop("R-%(plan)s cannot be paused: it is %(state)s."),
    "resume": gettext_noop("R-%(plan)s cannot be resumed: it is %(state)s, and only what a person paused can be."),
    "slow": gettext_noop("The pace of R-%(plan)s cannot be changed: it is %(state)s."),
    "stop": gettext_noop("R-%(plan)s cannot be stopped: it is %(state)s."),
}


def not_now(move: str, plan: int, state: str) -> PlanMoved:
    """The answer to a person whose move is not legal in this state."""
    return PlanMoved(NOT_NOW[move], plan=plan, state=state)
