"""What people may write beside a decision: the ASCII note (ticket or reference) and the free comment."""

import re

from queue_app.policy.errors import InvalidNote, gettext_noop
from queue_app.policy.refusals import half_width, shown

MAX_COMMENT = 2_000

NOTE_SHAPE = gettext_noop(
    "The note must be 1 to 64 of A-Z a-z 0-9 . _ : / - and begin with a letter or digit, and this is %(value)s."
)
NOTE_OFFER = gettext_noop(
    "The note must be 1 to 64 of A-Z a-z 0-9 . _ : / - and begin with a letter or digit, "
    "and this is %(value)s; in half-width: %(offered)s."
)

_NOTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}")
# Controls but the newline, lone surrogates, and the two overrides that turn the reading direction round: no language
# needs them, and with them a comment can read as the opposite of what it says.
_REFUSED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202d\u202e]")


def check_note(value: object) -> str:
    """The note, or InvalidNote: 1 to 64 of `A-Za-z0-9._:/-`, beginning with a letter or digit (DESIGN section 8).

    Text typed with full-width characters is refused with its half-width form offered (DESIGN section 12).
    """
    if isinstance(value, str) and type(value) is str:
        if _NOTE.fullmatch(value):
            return value
        if value == "":
            raise InvalidNote(gettext_noop("The note is missing."))
        offered = half_width(value, _NOTE)
        if offered is not None:
            raise InvalidNote(NOTE_OFFER, value=shown(value), offered=offered)
    raise InvalidNote(NOTE_SHAPE, value=shown(value))


def check_comment(value: object) -> str:
    """The comment with its line breaks as newlines, or InvalidNote; empty is allowed (DESIGN section 12).

    Up to 2,000 characters (code points) of any language. Browsers send a line break as CR LF, which counts as one. The
    refusal never shows the comment.
    """
    if not isinstance(value, str) or type(value) is not str:
        raise InvalidNote(gettext_noop("The comment must be text."))
    text = value.replace("\r\n", "\n")
    if len(text) > MAX_COMMENT:
        raise InvalidNote(
            gettext_noop("The comment must be at most %(most)s characters, and this has %(length)s."),
            most=f"{MAX_COMMENT:,}",
            length=f"{len(text):,}",
        )
    if bad := _REFUSED.search(text):
        raise InvalidNote(
            gettext_noop("The comment holds a control character (U+%(code)s), which cannot be kept."),
            code=f"{ord(bad.group()):04X}",
        )
    return text
