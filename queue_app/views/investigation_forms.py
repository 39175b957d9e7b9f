"""The form of an investigation: ticket, finding, comment. The rules are those of policy.notes."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from queue_app.policy.errors import InvalidNote
from queue_app.policy.notes import check_comment, check_note
from queue_app.views.refusals import sentence_of

FINDINGS = (
    ("looking", _("still looking")),
    ("cause_found", _("cause found")),
    ("fixed", _("fixed")),
    ("not_fixable", _("cannot be fixed")),
)


class NoteField(forms.CharField):
    """A ticket or reference: half-width letters, digits and . _ : / - only; a full-width form is offered half-width."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", _("Ticket or reference"))
        options.setdefault("help_text", _("Such as INC-2041. Half-width letters, digits and . _ : / - only."))
        widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "maxlength": 64})
        super().__init__(max_length=200, strip=True, widget=widget, **options)

    def clean(self, value: Any) -> str:
        """The note, or ValidationError in the person's language."""
        text = str(super().clean(value))
        try:
            return check_note(text)
        except InvalidNote as error:
            raise forms.ValidationError(sentence_of(error)) from None


class CommentField(forms.CharField):
    """Up to 2,000 characters in any language."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", _("Comment"))
        options.setdefault("help_text", _("Optional, in any language, up to 2,000 characters: what did you see?"))
        super().__init__(required=False, strip=True, widget=forms.Textarea(attrs={"rows": 3}), **options)

    def clean(self, value: Any) -> str:
        """The comment, or ValidationError in the person's language."""
        try:
            return check_comment(str(super().clean(value)))
        except InvalidNote as error:
            raise forms.ValidationError(sentence_of(error)) from None


class InvestigationForm(forms.Form):
    """What somebody found out about an order, a cause or a filter."""

    note = NoteField()
    finding = forms.ChoiceField(label=_("Finding"), choices=FINDINGS, initial="looking")
    comment = CommentField()
    as_of = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=253_402_300_799_999)
