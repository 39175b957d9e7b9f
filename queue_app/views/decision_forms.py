"""The form of a decision on a redrive: ticket, what is made stricter, the typed number, and the password."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from queue_app.policy.approvals import Tightening
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.terms import MAX_CANARY, parse_rate, parse_whole, rate_text
from queue_app.reads.plans import Detail
from queue_app.views.investigation_forms import CommentField, NoteField
from queue_app.views.refusals import sentence_of

SEPARATOR = "|"  # stands in no reason and no code


class DecisionForm(forms.Form):
    """Approve or reject one round of a redrive. It carries back what the person saw: digest and round."""

    digest = forms.CharField(widget=forms.HiddenInput, max_length=64)
    round = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)
    note = NoteField(help_text=_("Why: such as CHG-77. Half-width letters, digits and . _ : / - only."))
    comment = CommentField()
    rate = forms.CharField(label=_("Pace, orders per second"), required=False, max_length=16)
    canary = forms.CharField(label=_("Size of the trial"), required=False, max_length=8)
    left_out = forms.MultipleChoiceField(
        label=_("Leave out"), required=False, widget=forms.CheckboxSelectMultiple, choices=()
    )
    typed = forms.CharField(label=_("Type the number of orders"), required=False, max_length=24)
    password = forms.CharField(
        label=_("Your password, again"),
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        help_text=_("It proves that it is you who decides; it is valid for this one decision."),
    )

    def __init__(self, data: Any = None, *, detail: Detail) -> None:
        super().__init__(
            data,
            initial={
                "digest": detail.digest,
                "round": detail.deciding_round,
                "rate": rate_text(detail.terms.rate_mj),
                "canary": str(detail.canary),
            },
        )
        self.detail = detail
        for name in ("rate", "canary", "typed"):
            self.fields[name].widget.attrs |= {"inputmode": "decimal", "autocomplete": "off"}
        self.fields["rate"].help_text = _("Slower if you like, never faster.")
        self.fields["canary"].help_text = _("Larger if you like, never smaller.")
        choices: Any = self.fields["left_out"]
        choices.choices = [(f"{cause.reason}{SEPARATOR}{cause.code}", cause.code) for cause in detail.causes]

    def clean_rate(self) -> int | None:
        """Thousandths of an order per second; None leaves it as asked."""
        return self._number("rate", parse_rate)

    def clean_canary(self) -> int | None:
        """The size of the trial; None leaves it as asked."""
        return self._number("canary", lambda text: parse_whole(text, "canary", 0, MAX_CANARY))

    def _number(self, name: str, read: Any) -> int | None:
        text = self.cleaned_data[name].strip()
        try:
            value = int(read(text)) if text else None
        except InvalidPlan as error:
            raise forms.ValidationError(sentence_of(error)) from None
        asked = {"rate": self.detail.terms.rate_mj, "canary": self.detail.canary}[name]
        return None if value == asked else value

    def tightening(self) -> Tightening:
        """What the approver changes."""
        left_out = [tuple(text.split(SEPARATOR, 1)) for text in self.cleaned_data["left_out"]]
        return Tightening(
            rate_mj=self.cleaned_data["rate"],
            canary=self.cleaned_data["canary"],
            left_out=tuple((reason, code) for reason, code in left_out),
        )

    def refuse(self, error: SnackOpsError) -> None:
        """Show a service's refusal at the field that it is about."""
        field = getattr(error, "field", "")
        self.add_error(field if field in self.fields else None, sentence_of(error))
