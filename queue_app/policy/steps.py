"""Which moves a person may make on a redrive just now, and in one sentence why not the others (DESIGN 8 and 9).

Pages show it; the services ask for each move again, inside their transaction.
"""

from collections.abc import Collection

from queue_app.policy import rights
from queue_app.policy.errors import NotAllowed, SnackOpsError, gettext_noop
from queue_app.policy.plans import BY_PERSON, PACED, not_now, resumable, target

MOVES = ("approve", "continue", "reject", "withdraw", "cancel", "pause", "resume", "slow", "stop")
_RIGHT = {"cancel": "stop"}
_DECISIONS = ("approve", "continue", "reject")
OWN = gettext_noop("Nobody decides on what they asked for themselves.")
NOT_OWN = gettext_noop("A redrive is withdrawn by the person who asked for it.")
LEADS_ONLY = gettext_noop("Only team leads may do this.")
NOT_AUDITORS = gettext_noop("Only operators and team leads may do this.")
PAUSED_BY_ITSELF = gettext_noop("It paused by itself, so a team lead decides whether it goes on.")


def steps(
    plan: int, state: str, why: str, *, own: bool, roles: Collection[str], solo: bool
) -> dict[str, SnackOpsError | None]:
    """Every move by name: None when the person may make it now, else the refusal that a service would give.

    `own`: the person asked for this redrive; `solo`: one person may decide alone (the setting).
    """
    return {move: _refusal(move, plan, state, why, own, roles, solo) for move in MOVES}


def _refusal(
    move: str, plan: int, state: str, why: str, own: bool, roles: Collection[str], solo: bool
) -> SnackOpsError | None:
    right = _RIGHT.get(move, move)
    if not rights.may(roles, right):
        return NotAllowed(LEADS_ONLY if rights.who_may(right) == (rights.TEAM_LEAD,) else NOT_AUDITORS)
    if not _legal(move, state, why):
        if move == "resume" and state == "paused" and why != BY_PERSON:
            return NotAllowed(PAUSED_BY_ITSELF)
        return not_now(move, plan, state)
    if move in _DECISIONS and own and not solo:
        return NotAllowed(OWN)
    if move == "withdraw" and not own:
        return NotAllowed(NOT_OWN)
    return None


def _legal(move: str, state: str, why: str) -> bool:
    if move == "resume":
        return resumable(state, why)
    if move == "slow":
        return state in PACED
    return target(state, move) is not None
