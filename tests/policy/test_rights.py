"""Who may do what: the table of DESIGN section 9, written out a second time on purpose."""

import itertools

import pytest

from queue_app.policy import rights
from queue_app.policy.rights import ACTIONS, AUDITOR, OPERATOR, ROLES, TEAM_LEAD

ALL, WORK, LEAD = {OPERATOR, TEAM_LEAD, AUDITOR}, {OPERATOR, TEAM_LEAD}, {TEAM_LEAD}
TABLE = {
    "read": ALL,
    "export": ALL,
    "read_refused": {TEAM_LEAD, AUDITOR},
    "investigate": WORK,
    "save_filter": WORK,
    "plan": WORK,
    "withdraw": WORK,
    "pause": WORK,
    "resume": WORK,
    "slow": WORK,
    "stop": WORK,
    "approve": LEAD,
    "reject": LEAD,
    "continue": LEAD,
    "unblock": LEAD,
    "pause_queue": LEAD,
    "close_queue": LEAD,
    "limit_queue": LEAD,
    "drain_worker": LEAD,
}


def test_the_roles_have_the_names_of_the_contract():
    assert ROLES == ("operator", "team_lead", "auditor")


def test_the_table_names_every_action():
    assert set(ACTIONS) == set(TABLE)


@pytest.mark.parametrize("action", TABLE)
def test_each_combination_of_roles_may_what_one_of_them_may(action):
    for size in range(len(ROLES) + 1):
        for roles in itertools.combinations(ROLES, size):
            assert rights.may(roles, action) is bool(TABLE[action] & set(roles)), roles


def test_nobody_and_strangers_may_nothing():
    for action in TABLE:
        assert not rights.may((), action)
        assert not rights.may(("superuser", "Operator", "team lead", "admin"), action)


@pytest.mark.parametrize("action", ["aprove", "", "delete", "APPROVE"])
def test_an_unknown_action_is_a_mistake_in_the_code_not_a_no(action):
    with pytest.raises(KeyError):
        rights.may(ROLES, action)
    with pytest.raises(KeyError):
        rights.who_may(action)


@pytest.mark.parametrize("action", TABLE)
def test_who_may_is_told_in_one_fixed_order(action):
    assert rights.who_may(action) == tuple(role for role in ROLES if role in TABLE[action])


def test_an_auditor_can_change_nothing():
    assert {action for action in TABLE if rights.may((AUDITOR,), action)} == {"read", "export", "read_refused"}
