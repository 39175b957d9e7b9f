"""The form of a decision on a redrive: ticket, what is made stricter, the typed number, and the password."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from queue_app.policy.approvals import Grant, Tightening, check_tightening
from queue_app.policy.errors import SnackOpsError
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.terms import MAX_CANARY, parse_rate, parse_whole, rate_text
from queue_app.reads.plans import Detail
from queue_app.templatetags.plan_words import cause_label, pace
from queue_app.templatetags.words import number
from queue_app.views.investigation_forms import CommentField, NoteField
from queue_app.views.refusals import sentence_of

SEPARATOR = "|"  # stands in no reason and no code
STRICTER = ("rate", "canary", "left_out")


class DecisionForm(forms.Form):
    """Approve or reject one round of a redrive. It carries back what the person saw: digest and round.

    Its first values are those that would be recorded. With `deciding` False only what would be recorded is looked at.
    """

    digest = forms.CharField(widget=forms.HiddenInput, max_length=64)
    round = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)
    note = NoteField(help_text=_("Why: such as CHG-77. Half-width letters, digits and . _ : / - only."))
    comment = CommentField(help_text=_("Optional, in any language, up to 2,000 characters: what did you check?"))
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

    def __init__(self, data: Any = None, *, detail: Detail, deciding: bool = True) -> None:
        super().__init__(
            data,
            initial={
                "digest": detail.digest,
                "round": detail.deciding_round,
                "rate": rate_text(detail.line.rate_mj),
                "canary": str(detail.next_canary),
            },
        )
        self.detail = detail
        self.deciding = deciding
        for name in ("rate", "canary", "typed"):
            self.fields[name].widget.attrs |= {"inputmode": "decimal", "autocomplete": "off"}
        self.fields["rate"].help_text = _("At most the %(pace)s asked for. Empty: the pace of now.") % {
            "pace": pace(detail.terms.rate_mj)
        }
        self.fields["canary"].help_text = _("Larger if you like, never smaller.")
        self.fields["typed"].help_text = _("%(n)s are at stake: type the number to approve.") % {
            "n": number(detail.at_stake)
        }
        choices: Any = self.fields["left_out"]
        choices.choices = [(f"{cause.reason}{SEPARATOR}{cause.code}", cause_label(cause)) for cause in detail.choices]

    def clean_rate(self) -> int | None:
        """Thousandths of an order per second; None, from an empty field alone, leaves the pace of now."""
        return self._number("rate", parse_rate)

    def clean_canary(self) -> int | None:
        """The size of the trial; None, from an empty field alone, leaves the one that the round has anyway."""
        return self._number("canary", lambda text: parse_whole(text, "canary", 0, MAX_CANARY))

    def clean(self) -> dict[str, Any]:
        """A wish that widens is refused here as the service would; while nobody decides yet, nothing else has to be right."""
        if not self.deciding:
            for name in set(self.errors) - {*STRICTER}:
                del self.errors[name]
        if self.data.get("decision") != "reject" and not set(self.errors) & {*STRICTER}:
            try:
                check_tightening(
                    self.tightening(),
                    asked_rate_mj=self.detail.terms.rate_mj,
                    asked_canary=self.detail.next_canary,
                    groups=[(cause.reason, cause.code) for cause in self.detail.choices],
                )
            except InvalidPlan as error:
                self.refuse(error)
        return self.cleaned_data

    def _number(self, name: str, read: Any) -> int | None:
        text = self.cleaned_data[name].strip()
        try:
            return int(read(text)) if text else None
        except InvalidPlan as error:
            raise forms.ValidationError(sentence_of(error)) from None

    def tightening(self) -> Tightening:
        """What the approver changes; what cannot be read leaves it as it is."""
        left_out = [tuple(text.split(SEPARATOR, 1)) for text in self.cleaned_data.get("left_out", ())]
        return Tightening(
            rate_mj=self.cleaned_data.get("rate"),
            canary=self.cleaned_data.get("canary"),
            left_out=tuple((reason, code) for reason, code in left_out),
        )

    def grant(self) -> Grant | None:
        """What would be recorded if the person approved now; None while what was typed cannot be meant."""
        if not self.is_bound:
            return self.detail.granted(Tightening())
        self.is_valid()
        return None if set(self.errors) & {*STRICTER} else self.detail.granted(self.tightening())

    def refuse(self, error: SnackOpsError) -> None:
        """Show a service's refusal at the field that it is about."""
        field = getattr(error, "field", "")
        self.add_error(field if field in self.fields else None, sentence_of(error))
