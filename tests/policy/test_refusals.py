"""How refused values are shown: short, in ASCII, and never through a foreign `repr`."""

import re

import pytest

from queue_app.policy.refusals import half_width, offer, shown

WORD = re.compile("[a-z]{1,300}")


class Hostile(int):
    """One whose own texts must not be asked for."""

    def __repr__(self) -> str:
        raise AssertionError("asked")

    __str__ = __repr__


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a'b", '"a\'b"'),
        ("é\n", "'\\xe9\\n'"),
        ("x" * 40, "'" + "x" * 40 + "'"),
        ("x" * 41, "'" + "x" * 40 + "'..."),
        ("", "''"),
        (True, "True"),
        (1.5, "1.5"),
        (-7, "-7"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "an integer of more than 64 bits"),
        (-(10**5_000), "an integer of more than 64 bits"),
        (b"a", "a value of type bytes"),
        ([], "a value of type list"),
        (Hostile(5), "a value of type Hostile"),
        (type("Ａ" * 50, (), {})(), "a value of type " + "\\uff21" * 6 + "\\uff2"[:4]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_shown_short_and_in_ascii(value: object, text: str) -> None:
    assert shown(value) == text


def test_none_is_shown_as_what_it_is() -> None:
    assert shown(None) == "None"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("ａbc", "abc"),
        ("abc", None),
        ("ａ\u3000b", None),
        ("ａ1", None),
        ("ａ" * 200, "a" * 200),
        ("ａ" * 201, None),
        ("", None),
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_a_half_width_form_is_offered_where_it_would_be_taken(text: str, form: str | None) -> None:
    assert half_width(text, WORD) == form
    assert offer(text, WORD) == (f"; in half-width: {form}" if form else "")
