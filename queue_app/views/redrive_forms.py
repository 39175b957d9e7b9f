"""The form that asks for a redrive: ticket, comment, and the pace, as a preset or field by field (DESIGN section 8).

What stands in a field wins over the preset; an empty field leaves it to the preset. The rules are those of policy.terms.
"""

import re
from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from queue_app.policy.orders import MAX_ATTEMPTS
from queue_app.policy.plans import InvalidPlan
from queue_app.policy.queues import QueuePolicy
from queue_app.policy.refusals import half_width, shown
from queue_app.policy.terms import (
    BUDGET_MS,
    DEAD_MS,
    MAX_CANARY,
    MAX_CAP,
    WAIT_MS,
    Steps,
    Terms,
    check_terms,
    parse_percent,
    parse_rate,
    parse_span,
    parse_whole,
    preset,
)
from queue_app.templatetags.plan_words import pace
from queue_app.templatetags.words import age
from queue_app.views.investigation_forms import CommentField, NoteField
from queue_app.views.typed import TypedField, refusal_at

PRESETS = ("careful", "normal")
TERMS = ("preset", "rate", "steps", "canary", "stop", "canary_wait", "cap", "max_dead", "max_attempts", "budget")
WORDS = ("note", "comment")

_STEP = re.compile(r"([0-9.]{1,10})[x\u00d7]([0-9]{1,6})")
_STEPS = re.compile(r"[0-9.x\u00d7, ]+")
_STEPS_SENTENCE = gettext_noop("Steps are written like 5x60, 20x300 (orders per second x seconds), not %(given)s.")


def parse_steps(text: str) -> Steps:
    """Steps as typed, `5x60, 20x300`: rates in orders per second and how many seconds each holds. InvalidPlan."""
    steps = []
    for part in text.split(","):
        match = _STEP.fullmatch(part.strip())
        if not match:
            offered = half_width(text, _STEPS) or ""
            raise InvalidPlan(_STEPS_SENTENCE, field="steps", offered=offered, given=shown(text))
        steps.append((parse_rate(match[1], "steps"), int(match[2])))
    return tuple(steps)


class RedriveForm(forms.Form):
    """Asks for a redrive. With `asking` False only the pace is looked at, for the figures before anybody asks.

    `terms` are what the form means; while a field cannot be read, those of the preset.
    """

    note = NoteField(help_text=_("Why: such as INC-2041. Half-width letters, digits and . _ : / - only."))
    comment = CommentField(
        help_text=_("Optional, in any language, up to 2,000 characters: why should it work this time?")
    )
    preset = forms.ChoiceField(label=_("Pace"), required=False, widget=forms.RadioSelect, initial="normal")
    rate = TypedField(_("Orders per second"), _("From 0.01 to 20000."), inputmode="decimal")
    steps = TypedField(
        _("Slow start"),
        _("Paces that lead up to it: 5x60, 20x300 is 5 per second for 60 s, then 20 per second for 300 s."),
        size=24,
    )
    canary = TypedField(_("Size of the trial"), _("So many orders go first; 0 is no trial."), inputmode="numeric")
    stop = TypedField(_("Halt when so many per cent come back"), _("From 0.1 to 100."), inputmode="decimal")
    canary_wait = TypedField(
        _("Longest wait for the trial's results"), _("Such as 90s or 2h; then it pauses. Empty: 10m.")
    )
    cap = TypedField(_("At most so many orders"), _("The oldest first. Empty: all."), inputmode="numeric")
    max_dead = TypedField(_("Not if in quarantine for longer than"), _("Such as 36h or 7d. Empty: no such limit."))
    max_attempts = TypedField(_("New tries of each order"), _("Empty: as many as it had."), inputmode="numeric")
    budget = TypedField(_("New time of each order"), "")

    def __init__(self, data: Any = None, *, policy: QueuePolicy, asking: bool = False) -> None:
        if data is not None and not data.get("preset"):
            data = data.copy()
            data["preset"] = "normal"
        super().__init__(data, initial={"preset": "normal"})
        self.asking = asking
        self.refused: set[str] = set()
        self.usual = {name: preset(name, policy.rate_mj) for name in PRESETS}
        self.terms = self.usual["normal"]
        choices: Any = self.fields["preset"]
        choices.choices = [(name, _preset_word(name, self.usual[name])) for name in PRESETS]
        self.fields["budget"].help_text = _("Such as 12h. Empty: the usual %(time)s of the queue.") % {
            "time": age(policy.budget_ms)
        }

    @property
    def paced(self) -> bool:
        """Whether a field of the pace is filled in or refused, so that it should be seen."""
        return any(self[name].errors or (self.is_bound and self[name].value()) for name in TERMS[1:])

    @property
    def problems(self) -> list[tuple[str, str]]:
        """(label, sentence) for each field of the pace that cannot be meant."""
        return [(str(self.fields[name].label), str(error)) for name in TERMS for error in self.errors.get(name, ())]

    def clean(self) -> dict[str, Any]:
        """Read the pace; note and comment count only when somebody asks."""
        if not self.asking:
            for name in WORDS:
                self.errors.pop(name, None)
        self._refuse_repeats()
        base = self.usual.get(self.cleaned_data.get("preset") or "normal", self.terms)
        self.terms = base
        values = {"rate_mj": self._read("rate", lambda text: parse_rate(text), base.rate_mj)}
        values["steps"] = self._read("steps", parse_steps, ())
        values["cap"] = self._read("cap", lambda text: parse_whole(text, "cap", 1, MAX_CAP))
        smallest = base.canary if values["cap"] is None else min(base.canary, values["cap"])
        values["canary"] = self._read("canary", lambda text: parse_whole(text, "canary", 0, MAX_CANARY), smallest)
        values["stop_permille"] = self._read("stop", lambda text: parse_percent(text), base.stop_permille)
        values["canary_wait_ms"] = self._span("canary_wait", WAIT_MS, base.canary_wait_ms)
        values["max_dead_ms"] = self._span("max_dead", DEAD_MS)
        values["max_attempts"] = self._read(
            "max_attempts", lambda text: parse_whole(text, "max_attempts", 1, MAX_ATTEMPTS)
        )
        values["budget_ms"] = self._span("budget", BUDGET_MS)
        if not any(self.errors.get(name) for name in TERMS):
            try:
                self.terms = check_terms(Terms(**values))
            except InvalidPlan as error:
                self.refuse(error)
        return self.cleaned_data

    def refuse(self, error: InvalidPlan) -> None:
        """Show a refusal at the field that it is about, with the half-width form where there is one."""
        self.refused.add(error.field)
        field = error.field if error.field in self.fields else None
        label = str(self.fields[field].label) if field else ""
        self.add_error(field, refusal_at(error, label, self.data.get(field, "") if field else ""))

    def _refuse_repeats(self) -> None:
        for name in (*TERMS, *WORDS):
            times = len(self.data.getlist(name)) if hasattr(self.data, "getlist") else 1
            if times > 1:
                self.add_error(name, gettext("This is given %(n)d times; give it once.") % {"n": times})

    def _read(self, name: str, read: Callable[[str], Any], usual: Any = None) -> Any:
        text = self.cleaned_data.get(name) or ""
        try:
            return read(text) if text else usual
        except InvalidPlan as error:
            self.refuse(error)
            return usual

    def _span(self, name: str, bounds: tuple[int, int], usual: int | None = None) -> Any:
        return self._read(name, lambda text: parse_span(text, name, bounds), usual)


def _preset_word(name: str, terms: Terms) -> str:
    values = {"pace": pace(terms.rate_mj), "trial": terms.canary, "stop": terms.stop_permille // 10}
    if name == "careful":
        return gettext("Careful: pace %(pace)s, a trial of %(trial)s orders, halts when %(stop)s%% come back") % values
    return gettext("Normal: pace %(pace)s, a trial of %(trial)s orders, halts when %(stop)s%% come back") % values
