"""Words of the record: each action has its sentence, word and mark, and a sentence only gaps that are filled."""

import re

import pytest

from queue_app.policy import audit_actions, rights
from queue_app.policy.audit_actions import ACTIONS, ANEW, BY_ITSELF, CHANNELS, PROOFS, SENTENCES, TONES, TRIED, UNKNOWN

GAP = re.compile(r"%\((\w+)\)s")
ALL_SENTENCES = [*SENTENCES.items(), *BY_ITSELF.items(), *ANEW.items()]


@pytest.mark.parametrize(("action", "sentence"), ALL_SENTENCES)
def test_a_sentence_has_only_gaps_that_are_filled_and_no_full_stop(action: str, sentence: str) -> None:
    gaps = GAP.findall(sentence)
    assert set(gaps) <= {"who", "what"} | ({"tried"} if action == "refused" else set())
    assert len(gaps) == len(set(gaps)) == sentence.count("%")
    assert re.fullmatch(r"([A-Z]|%\().*[a-z)]s?", sentence)
    assert "  " not in sentence


def test_what_is_not_known_is_told_with_all_that_is_stored() -> None:
    assert set(GAP.findall(UNKNOWN)) == {"who", "action", "what"}


def test_what_happens_by_itself_or_anew_is_told_of_known_actions_and_names_nobody_who_did_not_act() -> None:
    assert set(BY_ITSELF) | set(ANEW) <= set(SENTENCES)
    assert not [action for action, sentence in BY_ITSELF.items() if "%(who)s" in sentence]
    assert [action for action, sentence in ANEW.items() if "%(who)s" in sentence] == ["plan.approve"]


def test_every_action_has_one_sentence_and_one_word_of_its_own() -> None:
    assert set(ACTIONS) == set(SENTENCES)
    assert len(set(SENTENCES.values()) - {SENTENCES["pause_queue"], SENTENCES["resume_queue"]}) == len(SENTENCES) - 4
    assert SENTENCES["pause_queue"] == SENTENCES["batch.pause"], "the target says which of the two"
    assert SENTENCES["resume_queue"] == SENTENCES["batch.resume"]
    assert len(set(ACTIONS.values())) == len(ACTIONS)


def test_every_right_that_can_be_refused_has_its_words() -> None:
    assert set(rights.ACTIONS) <= set(TRIED)


@pytest.mark.parametrize("name", ["TRIED", "ACTIONS", "CHANNELS", "PROOFS"])
def test_words_stand_inside_a_line(name: str) -> None:
    for word in getattr(audit_actions, name).values():
        assert re.fullmatch(r"[a-z][a-z ]*[a-z]", word), word


def test_marks_are_of_known_actions_and_tones() -> None:
    assert set(TONES) <= set(ACTIONS)
    assert {tone for tone, _ in TONES.values()} == {"bad", "ok", "info", "warn", "quiet"}


def test_every_way_in_and_every_proof_has_its_words() -> None:
    assert set(CHANNELS) == {"console", "cli", "code", "redriver", "worker"}
    assert set(PROOFS) == {"session", "password", "shell"}
