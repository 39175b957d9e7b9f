"""Notes are ASCII of one shape; comments are free text without controls."""

import pytest

from queue_app.policy.errors import InvalidNote
from queue_app.policy.notes import NOTE_OFFER, NOTE_SHAPE, check_comment, check_note

BAD_NOTES = [
    "", "a" * 65, "two words", " a", "a ", "ok\nINFO forged", "a\n", "\r", "a\tb", "a\0", "\x1b[31mred", "\u202ea",
    "a\u200b", "\u0430pproved", "=1+1", "<b>", "${jndi:x}", "%s", "{{7*7}}", "/etc", "..", "-a", "\u00e9", "\ud800", None, 5,
    b"a", [],
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_NOTES, ids=ascii)
def test_a_note_of_another_shape_is_refused_in_one_plain_sentence(value):
    with pytest.raises(InvalidNote) as caught:
        check_note(value)
    sentence = str(caught.value)
    assert sentence.isascii()
    assert sentence.isprintable()
    assert sentence.endswith(".")
    assert "half-width" not in sentence


@pytest.mark.parametrize("value", ["INC-1/2", "a", "0", "A" * 64, "a.b_c:d/e-f"])
def test_a_note_of_the_right_shape_is_taken_as_it_stands(value):
    assert check_note(value) == value


def test_a_note_in_full_width_is_refused_with_the_half_width_form_offered():
    with pytest.raises(InvalidNote, match=r"in half-width: INC-7/2\.$"):
        check_note("\uff29\uff2e\uff23\uff0d\uff17\uff0f\uff12")


@pytest.mark.parametrize("value", ["\uff11\u3000\uff12", "\uff0f\uff41", "\uff41" * 65, "\uff41\u00e9"])
def test_a_half_width_form_that_would_be_refused_too_is_not_offered(value):
    with pytest.raises(InvalidNote) as caught:
        check_note(value)
    assert "half-width" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("first\nsecond", "first\nsecond"),
        ("first\r\nsecond\r\n", "first\nsecond\n"),
        ("\u53d7\u4fe1\u5074\u3092\u76f4\u3057\u305f\u3002", "\u53d7\u4fe1\u5074\u3092\u76f4\u3057\u305f\u3002"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f373", None),
        ("x" * 2_000, None),
        ("\U0001f32e" * 2_000, None),
        ("\r\n" * 2_000, "\n" * 2_000),
        (" <b> {{7*7}} ", None),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_a_comment_in_any_language_is_kept_with_its_line_breaks(given, kept):
    assert check_comment(given) == (given if kept is None else kept)


@pytest.mark.parametrize(
    "value",
    ["secret\0", "secret\t", "secret\r", "secret\x1b[0m", "secret\x7f", "secret\x85", "secret\ud800", "secret\u202e",
     "secret" + "x" * 1_995, None, 5, b"secret"],
    ids=lambda value: ascii(value)[:24],
)  # fmt: skip
def test_a_comment_with_controls_or_too_long_is_refused_and_not_shown(value):
    with pytest.raises(InvalidNote) as caught:
        check_comment(value)
    assert "secret" not in str(caught.value)
    assert str(caught.value).isascii()


def refusal(call, given):
    with pytest.raises(InvalidNote) as caught:
        call(given)
    return caught.value.template, dict(caught.value.values)


CONTROL = "The comment holds a control character (U+%(code)s), which cannot be kept."
TOO_LONG = "The comment must be at most %(most)s characters, and this has %(length)s."


class Text(str):
    """No plain text: it could answer `==` as it likes."""


@pytest.mark.parametrize(
    ("call", "given", "template", "values"),
    [
        (check_note, "", "The note is missing.", {}),
        (check_note, "two words", NOTE_SHAPE, {"value": "'two words'"}),
        (check_note, 5, NOTE_SHAPE, {"value": "5"}),
        (check_note, Text("INC-7"), NOTE_SHAPE, {"value": "a value of type Text"}),
        (check_note, Text(""), NOTE_SHAPE, {"value": "a value of type Text"}),
        (check_note, "\uff29-7", NOTE_OFFER, {"value": "'\\uff29-7'", "offered": "I-7"}),
        (check_comment, 5, "The comment must be text.", {}),
        (check_comment, Text("a"), "The comment must be text.", {}),
        (check_comment, "x" * 12_345, TOO_LONG, {"most": "2,000", "length": "12,345"}),
        (check_comment, "x" * 2_001, TOO_LONG, {"most": "2,000", "length": "2,001"}),
        (check_comment, "a\tb\0", CONTROL, {"code": "0009"}),
        (check_comment, "\x9f", CONTROL, {"code": "009F"}),
        (check_comment, "\u202d", CONTROL, {"code": "202D"}),
        (check_comment, "a\rb", CONTROL, {"code": "000D"}),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_a_refusal_names_what_it_refuses_and_nothing_of_a_comment(call, given, template, values):
    assert refusal(call, given) == (template, values)
