"""Every step of every role in every state, and the sentence that stands where one may not be taken."""

import pytest

from queue_app.policy.errors import NotAllowed
from queue_app.policy.plans import STATES, PlanMoved
from queue_app.policy.steps import MOVES, steps

OPERATOR, LEAD, AUDITOR = ("operator",), ("team_lead",), ("auditor",)
LEADS_ONLY = NotAllowed, "Only team leads may do this."
NOT_AUDITORS = NotAllowed, "Only operators and team leads may do this."
OWN = NotAllowed, "Nobody decides on what they asked for themselves."
NOT_OWN = NotAllowed, "A redrive is withdrawn by the person who asked for it."
BY_ITSELF = NotAllowed, "It paused by itself, so a team lead decides whether it goes on."
LEADS = ("approve", "continue", "reject")
WRONG_STATE = {
    "approve": "R-12 cannot be approved: it is {}.",
    "continue": "R-12 cannot go on by an approval: it is {}.",
    "reject": "R-12 cannot be rejected: it is {}.",
    "withdraw": "R-12 cannot be withdrawn: it is {}.",
    "cancel": "The making of R-12 cannot be cancelled: it is {}.",
    "pause": "R-12 cannot be paused: it is {}.",
    "resume": "R-12 cannot be resumed: it is {}, and only what a person paused can be.",
    "slow": "The pace of R-12 cannot be changed: it is {}.",
    "stop": "R-12 cannot be stopped: it is {}.",
}
# the steps that a state has, whoever asks
LEGAL = {
    "freezing": {"cancel"},
    "proposed": {"approve", "reject", "withdraw"},
    "approved": {"pause", "slow", "stop"},
    "running": {"pause", "slow", "stop"},
    "paused": {"continue", "resume", "slow", "stop"},
    "halted": {"continue", "stop"},
}
Told = tuple[type[Exception], str] | None


def found(state: str, why: str, roles: tuple[str, ...], *, own: bool, solo: bool) -> dict[str, Told]:
    refusals = steps(12, state, why, own=own, roles=roles, solo=solo)
    return {move: (type(refusal), str(refusal)) if refusal else None for move, refusal in refusals.items()}


def expected(state: str, why: str, roles: tuple[str, ...], *, own: bool, solo: bool) -> dict[str, Told]:
    """The same, from the tables above."""
    wanted: dict[str, Told] = {move: (PlanMoved, sentence.format(state)) for move, sentence in WRONG_STATE.items()}
    wanted |= dict.fromkeys(LEGAL.get(state, ()))
    if state == "paused" and why != "person":
        wanted["resume"] = BY_ITSELF
    if own and not solo:
        wanted |= {move: OWN for move in LEADS if wanted[move] is None}
    if not own and wanted["withdraw"] is None:
        wanted["withdraw"] = NOT_OWN
    if "team_lead" not in roles:
        wanted |= dict.fromkeys(LEADS, LEADS_ONLY)
        if "operator" not in roles:
            wanted |= {move: NOT_AUDITORS for move in wanted if move not in LEADS}
    return wanted


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("solo", [True, False])
def test_each_step_is_open_or_has_its_sentence(state: str, own: bool, solo: bool) -> None:
    for roles in (OPERATOR, LEAD, AUDITOR, (), (*OPERATOR, *AUDITOR), (*OPERATOR, *LEAD)):
        for why in ("", "person", "canary_silent", "canary_deaths", "breaker"):
            there = found(state, why, roles, own=own, solo=solo)
            assert there == expected(state, why, roles, own=own, solo=solo), (why, roles)
            assert tuple(there) == MOVES, "in the order that pages show them"
