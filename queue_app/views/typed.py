"""Fields for what people type in half-width text, and the sentence beside one that cannot be meant (DESIGN section 12)."""

from typing import Any

from django import forms
from django.utils.translation import gettext

from queue_app.policy.plans import InvalidPlan
from queue_app.templatetags.plan_words import span_of
from queue_app.views.refusals import sentence_of


class TypedField(forms.CharField):
    """One line of half-width text that may be left empty."""

    def __init__(self, label: Any, help_text: Any, *, inputmode: str = "text", size: int = 12) -> None:
        attrs = {"autocomplete": "off", "spellcheck": "false", "inputmode": inputmode, "size": size}
        super().__init__(label=label, help_text=help_text, required=False, widget=forms.TextInput(attrs=attrs))


def refusal_at(error: InvalidPlan, label: str, typed: str) -> str:
    """A refusal for the field of this label, in the active language, with the half-width form where there is one."""
    values: dict[str, Any] = {**error.values, "field": label}
    if "low_ms" in values:
        values |= {"low": span_of(values["low_ms"]), "high": span_of(values["high_ms"])}
    if error.offered and label:  # full-width digits and letters, which a page can show as they were typed
        values["given"] = typed
    sentence = gettext(error.template) % values if error.template else sentence_of(error)
    if not error.offered:
        return sentence
    return gettext("%(sentence)s In half-width: %(offered)s") % {"sentence": sentence, "offered": error.offered}
