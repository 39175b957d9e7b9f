"""The hash of a link: fixed for ever, and different for every difference (DESIGN section 9)."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.chain import GENESIS, VERSION, Anchor, InvalidAnchor, Link, faults, link_hash, parse_anchor

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


PREV = "b" * 64
EVENT = Link("audit", 3, 5, RECORD, PREV, link_hash(PREV, RECORD), 1)
REDRIVE = Link(
    "redrives", 5, 5, {"job_id": "o1", "token": 7, **RECORD}, None,
    link_hash(PREV, {"job_id": "o1", "token": 7, **RECORD}), None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (EVENT, ()),
        (REDRIVE, ()),
        (replace(REDRIVE, prev="x", version=9), ()),  # a redrives row has neither
        (replace(EVENT, link=6), ("gap",)),
        (replace(EVENT, link=4), ("repeated",)),
        (replace(EVENT, link=3), ("order",)),
        (replace(EVENT, link=5.5), ("order",)),
        (replace(EVENT, link="5"), ("order",)),
        (replace(EVENT, link=None), ("order",)),
        (replace(EVENT, key=2), ("seq",)),
        (replace(EVENT, key=4), ("seq",)),
        (replace(EVENT, key="3"), ("seq",)),
        (replace(EVENT, prev=GENESIS), ("prev",)),
        (replace(EVENT, prev=None), ("prev",)),
        (replace(EVENT, version=2), ("version",)),
        (replace(EVENT, hash=PREV), ("hash",)),
        (replace(EVENT, hash=None), ("hash",)),
        (replace(EVENT, record={**RECORD, "note": "INC-8"}), ("hash",)),
        (replace(EVENT, record={**RECORD, "note": b"INC-7"}), ("hash",)),
        (replace(EVENT, record={**RECORD, "note": 1.5}, hash=None), ("hash",)),
        (replace(EVENT, link=7, key=9, prev="", version=0, hash=""), ("gap", "seq", "prev", "version", "hash")),
        (replace(REDRIVE, key=6), ("id",)),
        (replace(REDRIVE, key=6, link=6), ("gap",)),
        (replace(REDRIVE, key=4, link=4, hash=""), ("repeated", "hash")),
        (replace(REDRIVE, key=None, hash=""), ("id", "hash")),
    ],
)
def test_what_is_wrong_with_a_row_is_told_the_gravest_first(row, wrong):
    assert faults(row, link=4, seq=2, prev=PREV) == wrong


@pytest.mark.parametrize(("link", "wrong"), [(0, "order"), (-1, "order"), (2, "gap"), (None, "order")])
def test_before_the_first_row_nothing_can_be_repeated(link, wrong):
    first = Link("audit", 1, 1, RECORD, GENESIS, link_hash(GENESIS, RECORD), 1)
    assert faults(first, link=0, seq=0, prev=GENESIS) == ()
    assert faults(replace(first, link=link), link=0, seq=0, prev=GENESIS) == (wrong,)


def test_a_row_is_named_as_a_person_looks_for_it():
    assert EVENT.title == "audit seq 3 (link 5)"
    assert replace(EVENT, key="x", link=None).title == "audit seq 'x' (link None)"
    assert replace(REDRIVE, key=6).title == "redrives id 6 (order 'o1', token 7, link 5)"
    assert replace(REDRIVE, record={}, link=2.5).title == "redrives id 5 (order None, token None, link 2.5)"


HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize("text", [f"7:{HASH}", f"  7:{HASH} ", f"7:{HASH.upper()}", f"007:{HASH}"])
def test_an_anchor_is_read_as_it_is_printed(text):
    assert parse_anchor(text) == Anchor(7, HASH)
    assert str(Anchor(7, HASH)) == f"7:{HASH}"


WIDE = "\uff17:" + HASH


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "''"), ("7", "'7'"), (f"7:{HASH}\n", f"'7:{HASH[:38]}'..."), (f"x7:{HASH}", f"'x7:{HASH[:37]}'..."),
        (f"X7:{HASH}X", f"'X7:{HASH[:37]}'..."), (f"-7:{HASH}", f"'-7:{HASH[:37]}'..."),
        ("7:" + "g" * 64, f"'7:{'g' * 38}'..."),
        (f"7:{HASH}0", f"'7:{HASH[:38]}'..."), (f"{'1' * 19}:{HASH}", f"'{'1' * 19}:{HASH[:20]}'..."),
        (WIDE, f"'\\uff17:{HASH[:38]}'...; in half-width: 7:{HASH}"),
    ],
)  # fmt: skip
def test_text_that_is_no_anchor_is_refused_with_the_way_to_write_one(text, shown):
    with pytest.raises(InvalidAnchor) as refused:
        parse_anchor(text)
    assert refused.value.values == {"text": shown}
    assert str(refused.value) == (
        f"An anchor is written SEQ:HASH with 64 hex digits, as audit head prints it, not {shown}."
    )
