"""How a refused value is shown in the one sentence that refuses it.

A refused value may be hostile: huge, full of control characters, or an object whose `repr` misbehaves. Whatever is
shown is short and ASCII, so that a terminal, a log line and a page can print it as it stands.
"""

import re
import unicodedata

SHOWN_CHARACTERS = 40
_FULL_WIDTH = re.compile("[\uff01-\uff5e\u3000]")


def shown(value: object) -> str:
    """The value shortened to 40 characters and escaped to ASCII; never calls a foreign `repr`."""
    kind = type(value)
    if kind is str:
        text = str(value)
        return ascii(text[:SHOWN_CHARACTERS]) + ("..." if len(text) > SHOWN_CHARACTERS else "")
    if isinstance(value, int) and kind is int:
        # str() of an integer beyond 4,300 digits raises, and a shorter one may still fill a screen.
        return str(value) if value.bit_length() <= 64 else "an integer of more than 64 bits"
    if kind is bool or kind is float or value is None:
        return repr(value)
    return f"a value of type {ascii(kind.__name__)[1:-1][:SHOWN_CHARACTERS]}"


def half_width(text: str, allowed: re.Pattern[str]) -> str | None:
    """The half-width form of text with full-width characters, or None if it has none or the form is not `allowed`."""
    if len(text) > 200 or not _FULL_WIDTH.search(text):
        return None
    form = unicodedata.normalize("NFKC", text)
    return form if allowed.fullmatch(form) else None


def offer(text: str, allowed: re.Pattern[str]) -> str:
    """The end of a refusal: `; in half-width: INC-7` where there is such a form, else nothing (DESIGN section 12)."""
    form = half_width(text, allowed)
    return f"; in half-width: {form}" if form else ""
