"""The gate of an order: what passes, what is refused with which sentence, and that the sentence gives nothing away."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy.canonical import canonical_ascii, canonical_json
from queue_app.policy.errors import InvalidOrder
from queue_app.policy.orders import Order, check_code, check_id, check_order, check_owner, check_queue_name


class Text(str):
    """A subclass may lie about itself, so it is no text here."""


class Whole(int):
    """As above, for integers."""


class Hostile:
    """An object that must never be asked for its own text or equality."""

    def __repr__(self):
        raise AssertionError("a foreign repr was called")

    __str__ = __eq__ = __repr__
    __hash__ = None


BAD_IDS = [
    "", "a" * 65, " a", "a ", "a\n", "a\0b", "-a", "..", ".", "../x", "a/b", "a%2Fb", "a?x", "\u0430", "\uff41",
    "\u212a", "\uff71", "\u00e9", "e\u0301", "\u202ea", "a\u200b", "\ufeffa", "\U0001f32e", "\ud800", "a" * 10_000_000,
    "__proto__", "<script>", "'; --", "%", "_", "\u0661", 5, True, None, b"a", {}, [], 1.0, Text("a"), Hostile(),
]  # fmt: skip
BAD_QUANTITIES = [
    True, False, 1.0, 1e3, "1", "\uff11", "1_000", " 1", "+1", 0, -0, -1, 1_000_001, 2**31, 2**63, 2**64, 10**5000,
    -(10**5000), float("nan"), float("inf"), 1e400, Decimal(1), None, [], {}, Whole(1), b"1", Hostile(),
]  # fmt: skip


def refusal(call, *args, error=InvalidOrder, **named):
    with pytest.raises(error) as caught:
        call(*args, **named)
    sentence = str(caught.value)
    assert sentence.isascii()
    assert sentence.isprintable()
    assert len(sentence) < 600
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("value", BAD_IDS, ids=lambda value: type(value).__name__)
def test_an_id_that_is_not_plain_ascii_text_of_its_shape_is_refused(value):
    refusal(check_id, value)
    refusal(check_order, value, 1)


@pytest.mark.parametrize("value", ["0", "a", "A", "a" * 64, "a.b_c:d-e", "con", "o1-2"])
def test_an_id_of_the_right_shape_is_taken_as_it_stands(value):
    assert check_order(value, 1).id == value


@pytest.mark.parametrize("value", BAD_QUANTITIES, ids=lambda value: type(value).__name__)
def test_only_an_exact_integer_within_the_bounds_is_a_quantity(value):
    assert "quantity" in refusal(check_order, "a", value)


@pytest.mark.parametrize("value", [1, 7, 1_000_000])
def test_a_quantity_within_the_bounds_is_taken(value):
    assert check_order("a", value).quantity == value


@pytest.mark.parametrize(
    ("call", "good", "bad"),
    [
        (
            check_queue_name,
            ["snacks", "0", "a_b-c", "a" * 32],
            ["", "A", "-a", "a\n", "a" * 33, "a.b", None, "\uff41"],
        ),
        (check_owner, ["host.1:2@a-b_c", "a" * 128], ["", " a", "a\n", "a" * 129, "-a", "\u00e9", None, b"a"]),
        (check_code, ["", "http_503", "a" * 48], ["A", "a" * 49, "_a", "a\n", "http-503", None, 5, "\uff11"]),
    ],
)
def test_names_and_codes_have_one_shape_each(call, good, bad):
    assert [call(value) for value in good] == good
    for value in bad:
        refusal(call, value, error=ValueError)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("order_key", ["", "k", "a" * 64], [None, " ", "a b", "a" * 65, 5, "k\n"]),
        ("max_attempts", [None, 1, 100], [0, 101, True, 1.0, "3", -1]),
        ("deadline_ms", [None, 0, 253_402_300_799_999], [-1, 253_402_300_800_000, True, 1.0, "0", 10**20]),
    ],
)
def test_the_optional_values_are_checked_alike(name, good, bad):
    for value in good:
        assert getattr(check_order("a", 1, **{name: value}), name) == value
    for value in bad:
        assert name in refusal(check_order, "a", 1, **{name: value})


def test_an_order_is_whole_with_and_without_what_may_be_left_out():
    assert check_order("a", 1) == Order("a", "snacks", 1, "{}", "", None, None)
    named = {"queue": "drinks", "payload": {"x": 1}, "order_key": "k", "max_attempts": 3, "deadline_ms": 9}
    assert check_order("b", 1_000_000, **named) == Order("b", "drinks", 1_000_000, '{"x":1}', "k", 3, 9)


SHAPE = "of A-Z a-z 0-9 . _ : - and begin with a letter or digit, and this is"
QUEUE = "The queue must be 1 to 32 of a-z 0-9 _ - and begin with a letter or digit, and this is"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"id": None}, "The id is missing."),
        ({"id": ""}, "The id is missing."),
        ({"id": "a b"}, f"The id must be 1 to 64 {SHAPE} 'a b'."),
        ({"id": 5}, f"The id must be 1 to 64 {SHAPE} 5."),
        ({"id": "\uff41"}, f"The id must be 1 to 64 {SHAPE} '\\uff41'; in half-width: a."),
        ({"queue": "Snacks"}, f"{QUEUE} 'Snacks'."),
        ({"queue": None}, f"{QUEUE} None."),
        ({"queue": "\uff41"}, f"{QUEUE} '\\uff41'; in half-width: a."),
        ({"quantity": 0}, "The quantity must be a whole number from 1 to 1,000,000, and this is 0."),
        ({"max_attempts": 101}, "The max_attempts must be a whole number from 1 to 100, and this is 101."),
        (
            {"deadline_ms": -1},
            "The deadline_ms must be a whole number from 0 to 253,402,300,799,999, and this is -1.",
        ),
        ({"order_key": " "}, f"The order_key must be 1 to 64 {SHAPE} ' '."),
        ({"order_key": "\uff4b"}, f"The order_key must be 1 to 64 {SHAPE} '\\uff4b'; in half-width: k."),
        ({"order_key": None}, f"The order_key must be 1 to 64 {SHAPE} None."),
        ({"payload": []}, "The payload must be a JSON object."),
        ({"payload": {"x": "\0"}}, "The payload cannot be kept: it holds the character NUL."),
    ],
)
def test_a_refusal_names_what_is_wrong_and_what_would_be_right(named, why):
    assert refusal(check_order, **{"id": "a", "quantity": 1, **named}) == why


@pytest.mark.parametrize(
    ("call", "value", "why"),
    [
        (
            check_owner,
            "a b",
            "The worker's name must be 1 to 128 of A-Z a-z 0-9 . _ : @ - and begin with a letter or digit, "
            "and this is 'a b'.",
        ),
        (
            check_code,
            "A",
            "The code must be empty or 1 to 48 of a-z 0-9 _ and begin with a letter or digit, and this is 'A'.",
        ),
    ],
)
def test_names_of_workers_and_codes_are_refused_in_one_sentence(call, value, why):
    assert refusal(call, value, error=ValueError) == why


@pytest.mark.parametrize("call", [check_id, check_queue_name, check_owner, check_code])
def test_text_that_may_lie_about_itself_is_refused_unseen(call):
    assert "a value of type Text" in refusal(call, Text("a"), error=ValueError)


def nested(levels):
    """An object of that many levels, itself the first."""
    value = {}
    for _ in range(levels - 1):
        value = {"x": value}
    return value


def looped():
    value = {}
    value["x"] = value
    return value


def repeated():
    """Small in memory, 10 to the power of 50 values as text."""
    value = ["x"]
    for _ in range(50):
        value = [value] * 10
    return {"x": value}


@pytest.mark.parametrize(
    "payload",
    [
        [], "", "{}", 0, False, ["secret"],
        {"secret": "\0"}, {"se\0cret": 1}, {"secret": "\ud800"}, {"\ud800": "secret"},
        {"secret": float("nan")}, {"secret": float("-inf")}, {"secret": 2**64}, {"secret": -(2**63) - 1},
        {1: "secret"}, {None: "secret"}, {Text("secret"): 1}, {"secret": ("a",)}, {"secret": {"a"}}, {"secret": b"a"},
        {"secret": Decimal(1)}, {"secret": Text("a")}, {"secret": Whole(1)}, {"secret": Hostile()},
        {"secret": 10**5000}, nested(65), looped(), repeated(), {"secret": "x" * 10_000_000}, {"secret": [0] * 1_000_000},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_payload_without_a_canonical_text_is_refused_and_not_shown(payload):
    sentence = refusal(check_order, "a", 1, payload=payload)
    assert "payload" in sentence
    assert "secret" not in sentence


def test_very_deep_nesting_is_a_refusal_and_no_recursion_error():
    assert "64 levels" in refusal(check_order, "a", 1, payload=nested(100_000))


def test_no_payload_is_the_empty_object_and_64_levels_are_still_taken():
    assert check_order("a", 1).payload == check_order("a", 1, payload={}).payload == "{}"
    assert check_order("a", 1, payload=nested(64)).payload.count("{") == 64


@pytest.mark.parametrize("character", ["x", "\u00e9", "\u5bff", "\U0001f32e", '"', "\n"])
def test_the_payload_is_measured_in_bytes_of_the_text_that_is_stored(character):
    each = len(canonical_json({"x": character}).encode()) - len('{"x":""}')
    count, rest = divmod(16_384 - len('{"x":""}'), each)
    at_limit = {"x": character * count + "x" * rest}
    assert len(check_order("a", 1, payload=at_limit).payload.encode()) == 16_384
    assert "16,384 bytes" in refusal(check_order, "a", 1, payload={"x": at_limit["x"] + "x"})


def test_equal_numbers_of_different_kinds_are_different_bodies_and_key_order_is_not():
    texts = [check_order("a", 1, payload={"x": value}).payload for value in (1, 1.0, True, "1")]
    assert len(set(texts)) == 4
    assert canonical_json({"b": 1, "a": {"d": 2, "c": 3}}) == canonical_json({"a": {"c": 3, "d": 2}, "b": 1})
    assert canonical_json({"b": "\u00e9\n", "a": None}) == '{"a":null,"b":"\u00e9\\n"}'


def test_hostile_key_names_are_only_text():
    assert check_order("a", 1, payload={"__class__": "x"}).payload == '{"__class__":"x"}'


def test_a_record_is_ascii_and_takes_no_floats():
    assert canonical_ascii({"b": "\u00e9", "a": [1, True, None]}) == '{"a":[1,true,null],"b":"\\u00e9"}'
    for value in ({"a": 1.0}, {"a": "\ud800"}, {"a": "\0"}, {"a": (1,)}, {1: 1}, nested(65)):
        with pytest.raises(ValueError):
            canonical_ascii(value)


def test_text_in_full_width_is_refused_with_its_half_width_form_offered():
    assert refusal(check_id, "\uff4f\uff11\uff0d\uff12").endswith("in half-width: o1-2.")
    assert refusal(check_queue_name, "\uff53nacks").endswith("in half-width: snacks.")
    assert "in half-width" not in refusal(check_id, "\uff41 b")
    assert "in half-width" not in refusal(check_id, "\u212a")


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
)
KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
BODIES = st.dictionaries(
    KEYS, st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
)


@given(BODIES)
def test_the_canonical_text_says_the_same_and_is_its_own_canonical_text(body):
    text = canonical_json(body)
    again = json.loads(text)
    assert again == body
    assert canonical_json(again) == text
    assert canonical_json(dict(reversed(body.items()))) == text
