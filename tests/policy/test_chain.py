"""The hash of a link: fixed for ever, and different for every difference (DESIGN section 9)."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.chain import GENESIS, VERSION, link_hash

RECORD = {"seq": 1, "link": 2, "name": "Zoë", "solo": False, "batch": None, "note": "INC-7", "detail": '{"a":1}'}


def test_the_hash_of_a_record_never_changes():
    text = (
        GENESIS
        + "\n"
        + (
            '{"batch":null,"detail":"{\\"a\\":1}","link":2,"name":"Zo\\u00eb","note":"INC-7","seq":1,"solo":false,"version":1}'
        )
    )
    assert link_hash(GENESIS, RECORD) == hashlib.sha256(text.encode()).hexdigest()
    assert link_hash(GENESIS, RECORD) == "84f1ffbb0dce750022f31729c8fcb3eabcdaa56df07a9548e86a8473752717ed"
    assert (GENESIS, VERSION) == ("0" * 64, 1)


def test_whoever_checks_elsewhere_needs_only_json_and_sha256():
    text = json.dumps({**RECORD, "version": 1}, sort_keys=True, separators=(",", ":"))
    assert link_hash("ab", RECORD) == hashlib.sha256(f"ab\n{text}".encode("ascii")).hexdigest()


DIFFERENCES = [
    {"seq": 2}, {"seq": "1"}, {"link": 3}, {"name": "Zoe\u0308"}, {"solo": 0}, {"solo": True}, {"batch": 0}, {"batch": ""},
    {"note": "INC-8"}, {"detail": '{"a": 1}'}, {"extra": None},
]  # fmt: skip


@pytest.mark.parametrize("difference", DIFFERENCES, ids=str)
def test_every_difference_shows(difference):
    assert link_hash(GENESIS, {**RECORD, **difference}) != link_hash(GENESIS, RECORD)


def test_the_same_record_at_another_place_has_another_hash():
    first = link_hash(GENESIS, RECORD)
    assert link_hash(first, RECORD) != first


def test_the_order_of_the_columns_does_not_matter():
    assert link_hash(GENESIS, dict(reversed(RECORD.items()))) == link_hash(GENESIS, RECORD)


@pytest.mark.parametrize("value", [1.5, float("nan"), b"x", 2**64, "\ud800", "a\0b"], ids=ascii)
def test_what_has_no_certain_text_is_refused(value):
    with pytest.raises(ValueError):
        link_hash(GENESIS, {"value": value})


VALUES = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3), max_size=4
)
PLAIN = VALUES.filter(
    lambda record: not any("\0" in str(part) or _lone(str(part)) for part in (*record, *record.values()))
)


def _lone(text):
    return any("\ud800" <= character <= "\udfff" for character in text)


@given(one=PLAIN, other=PLAIN)
def test_two_records_share_a_hash_only_if_they_are_the_same(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (link_hash(GENESIS, one) == link_hash(GENESIS, other)) is same
