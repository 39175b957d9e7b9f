"""Who may do what (the table of DESIGN section 9). Rights come from groups; a superuser's implicit rights do not count."""

from collections.abc import Collection

OPERATOR, TEAM_LEAD, AUDITOR = "operator", "team_lead", "auditor"
ROLES = (OPERATOR, TEAM_LEAD, AUDITOR)

_ALL = frozenset(ROLES)
_WORK = frozenset({OPERATOR, TEAM_LEAD})
_LEAD = frozenset({TEAM_LEAD})

ACTIONS: dict[str, frozenset[str]] = {
    "read": _ALL,
    "export": _ALL,
    "read_refused": frozenset({TEAM_LEAD, AUDITOR}),
    "investigate": _WORK,
    "save_filter": _WORK,
    "plan": _WORK,
    "withdraw": _WORK,
    "pause": _WORK,
    "resume": _WORK,
    "slow": _WORK,
    "stop": _WORK,
    "approve": _LEAD,
    "reject": _LEAD,
    "continue": _LEAD,
    "unblock": _LEAD,
    "pause_queue": _LEAD,
    "close_queue": _LEAD,
    "limit_queue": _LEAD,
    "drain_worker": _LEAD,
}


def may(roles: Collection[str], action: str) -> bool:
    """Whether somebody with these roles may do the action. An unknown action is a KeyError: a mistake in the code."""
    return not ACTIONS[action].isdisjoint(roles)


def who_may(action: str) -> tuple[str, ...]:
    """The roles that may do the action, in the order operator, team_lead, auditor."""
    return tuple(role for role in ROLES if role in ACTIONS[action])
