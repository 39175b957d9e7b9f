"""The table of moves, read back as sentences about lives."""

import pytest

from queue_app.policy import rights
from queue_app.policy.plans import (
    CLOSED,
    MOVES,
    NOT_NOW,
    OPEN,
    REDRIVER,
    STATES,
    InvalidPlan,
    PlanMoved,
    deciding_move,
    not_now,
    resumable,
    target,
)
from queue_app.policy.steps import MOVES as SHOWN
from queue_app.policy.steps import steps

BY_TIME_AND_RESULTS = {
    ("freezing", "propose"): "proposed",
    ("freezing", "find_none"): "cancelled",
    ("freezing", "expire"): "expired",
    ("proposed", "expire"): "expired",
    ("approved", "begin"): "running",
    ("approved", "expire"): "expired",
    ("approved", "lapse"): "halted",
    ("running", "fall_silent"): "paused",
    ("running", "halt"): "halted",
    ("running", "end"): "ended",
    ("paused", "halt"): "halted",
}
BY_PEOPLE = {
    ("freezing", "cancel"): ("cancelled", "withdraw"),
    ("proposed", "approve"): ("approved", "approve"),
    ("proposed", "reject"): ("rejected", "reject"),
    ("proposed", "withdraw"): ("withdrawn", "withdraw"),
    ("approved", "pause"): ("paused", "pause"),
    ("approved", "stop"): ("stopped", "stop"),
    ("running", "pause"): ("paused", "pause"),
    ("running", "stop"): ("stopped", "stop"),
    ("paused", "resume"): ("approved", "resume"),
    ("paused", "continue"): ("approved", "continue"),
    ("paused", "stop"): ("stopped", "stop"),
    ("halted", "continue"): ("approved", "continue"),
    ("halted", "stop"): ("stopped", "stop"),
}


def test_the_moves_are_these_and_no_others():
    """Written out a second time on purpose: DESIGN section 8."""
    assert {key: move.to for key, move in MOVES.items() if move.who == REDRIVER} == BY_TIME_AND_RESULTS
    assert {key: (move.to, move.who) for key, move in MOVES.items() if move.who != REDRIVER} == BY_PEOPLE


def test_every_state_is_open_or_closed_and_nothing_leaves_a_closed_one():
    assert not set(OPEN) & set(CLOSED)
    assert {state for state, _ in MOVES} == set(OPEN)
    assert {move.to for move in MOVES.values()} <= set(STATES)


def test_every_state_but_the_first_is_reached_and_every_open_one_can_be_closed():
    assert {move.to for move in MOVES.values()} == set(STATES) - {"freezing"}
    ends = {state: {move.to for (source, _name), move in MOVES.items() if source == state} for state in OPEN}
    for state in OPEN:
        seen, todo = set(), {state}
        while todo:
            seen |= todo
            todo = set().union(*(ends.get(s, set()) for s in todo)) - seen
        assert seen & set(CLOSED), state


def test_nothing_runs_but_after_an_approval():
    assert {state for (state, _), move in MOVES.items() if move.to == "running"} == {"approved"}
    leads = {(state, name): move.who for (state, name), move in MOVES.items() if move.to == "approved"}
    assert leads == {
        ("proposed", "approve"): "approve",
        ("paused", "resume"): "resume",
        ("paused", "continue"): "continue",
        ("halted", "continue"): "continue",
    }


def test_every_move_of_a_person_has_a_right_and_a_sentence():
    for (_, name), move in MOVES.items():
        if move.who != REDRIVER:
            assert move.who in rights.ACTIONS
            assert str(not_now(name, 12, "ended")).startswith(("R-12", "The making of R-12"))
    assert set(NOT_NOW) == set(SHOWN)


@pytest.mark.parametrize("move", NOT_NOW)
def test_a_move_that_is_not_legal_now_is_told_with_number_and_state(move):
    error = not_now(move, 12, "ended")
    assert type(error) is PlanMoved
    assert (error.template, error.values) == (NOT_NOW[move], {"plan": 12, "state": "ended"})


def test_what_cannot_be_meant_names_its_field_and_the_half_width_form():
    plain = InvalidPlan("It is wrong.")
    assert (str(plain), plain.field, plain.offered, plain.values) == ("It is wrong.", "", "", {"field": ""})
    full = InvalidPlan("%(field)s is not %(n)s.", field="Cap", offered="5", n=7)
    assert (str(full), full.field, full.offered) == ("Cap is not 7.", "Cap", "5")
    assert full.values == {"field": "Cap", "n": 7}


@pytest.mark.parametrize(
    ("state", "move", "to"),
    [
        ("proposed", "approve", "approved"),
        ("ended", "stop", None),
        ("running", "approve", None),
        ("halted", "resume", None),
        ("", "", None),
    ],
)
def test_a_move_leads_where_the_table_says(state, move, to):
    assert target(state, move) == to


@pytest.mark.parametrize(
    ("state", "move"),
    [("proposed", "approve"), ("halted", "continue"), ("paused", "continue"), ("running", None), ("ended", None)],
)
def test_how_a_lead_lets_it_go_on(state, move):
    assert deciding_move(state) == move


@pytest.mark.parametrize(
    ("state", "why", "yes"),
    [("paused", "person", True), ("paused", "canary_silent", False), ("halted", "person", False)],
)
def test_only_what_a_person_paused_is_resumed(state, why, yes):
    assert resumable(state, why) is yes


OPERATOR, LEAD, AUDITOR = ("operator",), ("team_lead",), ("auditor",)


@pytest.mark.parametrize(
    ("state", "why", "own", "roles", "may"),
    [
        ("proposed", "", False, LEAD, {"approve", "reject"}),
        ("proposed", "", True, LEAD, {"withdraw"}),
        ("proposed", "", True, OPERATOR, {"withdraw"}),
        ("proposed", "", False, OPERATOR, set()),
        ("proposed", "", False, AUDITOR, set()),
        ("freezing", "", False, OPERATOR, {"cancel"}),
        ("approved", "", True, OPERATOR, {"pause", "slow", "stop"}),
        ("running", "", True, OPERATOR, {"pause", "slow", "stop"}),
        ("running", "", False, AUDITOR, set()),
        ("paused", "person", True, OPERATOR, {"resume", "slow", "stop"}),
        ("paused", "canary_silent", True, OPERATOR, {"slow", "stop"}),
        ("paused", "canary_silent", False, LEAD, {"continue", "slow", "stop"}),
        ("halted", "canary_deaths", False, LEAD, {"continue", "stop"}),
        ("halted", "canary_deaths", True, LEAD, {"stop"}),
        ("ended", "", False, LEAD, set()),
    ],
)
def test_what_a_person_may_do_now(state, why, own, roles, may):
    found = steps(12, state, why, own=own, roles=roles, solo=False)
    assert {move for move, refusal in found.items() if refusal is None} == may
    assert all(str(refusal) for refusal in found.values() if refusal is not None)


def test_under_solo_approval_one_decides_alone():
    assert steps(1, "proposed", "", own=True, roles=LEAD, solo=True)["approve"] is None
