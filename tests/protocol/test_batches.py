"""The protocol of a batch holds in every state that it can reach, and each planted mistake is found."""

from dataclasses import replace
from functools import partial

import pytest

from queue_app.policy import canaries, plans
from tests.protocol import batches
from tests.protocol.batches import RULES, Plan
from tests.protocol.explorer import explore


def explored(rules):
    return explore(Plan(), partial(batches.steps, rules=rules), batches.broken, batches.ended)


def test_two_redrivers_an_operator_and_a_lead_break_no_rule(capsys):
    found = explored(RULES)
    with capsys.disabled():
        print(f"\n[batch protocol] {found.told()}")
    assert not found.rule, found.told()
    assert found.states > 500
    assert {plan.state for plan in found.reached} >= {
        "running",
        "paused",
        "halted",
        "ended",
        "stopped",
        "rejected",
        "withdrawn",
    }


def reopened(state, move):
    return "approved" if (state, move) == ("stopped", "pause") else plans.target(state, move)


def hasty(trial, now_ms):
    return "passed" if trial.died else canaries.judge(trial, now_ms)


def stuck(state, move):
    return None if move in ("continue", "stop") and state == "halted" else plans.target(state, move)


@pytest.mark.parametrize(
    ("name", "rules", "rule"),
    [
        (
            "a redriver acts on what it saw",
            replace(RULES, reads_again=False),
            "nothing is restarted but by a running batch",
        ),
        (
            "anything paused is resumed",
            replace(RULES, resumable=lambda state, _: state == "paused"),
            "what stopped by itself",
        ),
        ("a batch begins beside another", replace(RULES, waits_its_turn=False), "one batch of a queue runs at a time"),
        ("no trial", replace(RULES, trial_first=False), "after the trial nothing"),
        ("a failed trial passes", replace(RULES, judge=hasty), "a trial passes when its order was delivered"),
        ("a stopped batch is reopened", replace(RULES, target=reopened), "what is closed stays closed"),
        ("a halted batch cannot go on or end", replace(RULES, target=stuck), "no end can be reached"),
    ],
)
def test_a_planted_mistake_is_found(name, rules, rule):
    found = explored(rules)
    print(f"[{name}] {found.told()}")
    assert found.rule.startswith(rule)
    assert found.trace
