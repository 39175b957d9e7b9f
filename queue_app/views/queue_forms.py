"""The forms of moves of a queue and its orders: a ticket, which an emergency may leave out."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from queue_app.views.investigation_forms import NoteField


class OptionalNoteField(NoteField):
    """A ticket or reference that may be left empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, label=_("Ticket or reference, if there is one"), **options)

    def clean(self, value: Any) -> str:
        """'' or the note, or ValidationError in the person's language."""
        return super().clean(value) if str(value or "").strip() else ""


class QueueMoveForm(forms.Form):
    """Why a queue is paused, resumed, closed or opened."""

    note = OptionalNoteField()


class UnblockForm(forms.Form):
    """Why the later orders of a key may pass this one, and the token at which the person saw it in quarantine."""

    note = NoteField()
    token = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**63 - 1)
