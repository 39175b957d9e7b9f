"""The form of a queue's limits: what a team lead may change while everything runs (policy.queues.LIMITS), as people type it.

It carries back what stood in each field when the page was made. Only a field that differs from that is a change, so what
somebody else has changed meanwhile stays.
"""

from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from queue_app.policy.plans import InvalidPlan
from queue_app.policy.queues import LIMITS, InvalidLimit, QueuePolicy, with_limits
from queue_app.policy.terms import parse_rate, parse_span, parse_whole, rate_text
from queue_app.templatetags.plan_words import span_of
from queue_app.views.queue_forms import OptionalNoteField
from queue_app.views.refusals import sentence_of
from queue_app.views.typed import TypedField, refusal_at

SEEN = "seen_"  # before a field's name: what stood in it
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


def span_typed(ms: int) -> str:
    """A span as `parse_span` reads it, in the largest unit that says it exactly: 36h, 90s. Below a second: 500ms."""
    unit, size = next((unit, size) for unit, size in _UNITS if not ms % size)
    return f"{ms // size}{unit}"


def _whole(text: str, field: str) -> int:
    low, high, _optional = LIMITS[field]
    return parse_whole(text, field, low, high)


def _rate(text: str, field: str) -> int:
    return parse_rate(text, field)


def _span(text: str, field: str) -> int:
    low, high, _optional = LIMITS[field]
    return parse_span(text, field, (max(low, 1_000), high))


_READ: dict[str, tuple[Callable[[str, str], int], Callable[[int], str]]] = {
    "delivery_rate_mj": (_rate, rate_text),
    "max_unfinished": (_whole, str),
    "breaker_after": (_whole, str),
    "breaker_wait_ms": (_span, span_typed),
    "wait_budget_ms": (_span, span_typed),
    "done_kept_ms": (_span, span_typed),
    "receiver_keeps_ms": (_span, span_typed),
}


class QueueLimitsForm(forms.Form):
    """The limits of one queue, and why they are changed; `changes` are what the person means."""

    delivery_rate_mj = TypedField(
        _("Orders per second, all workers together"),
        _("From 0.01 to 20000, such as 2.5. Empty: no limit."),
        inputmode="decimal",
    )
    max_unfinished = TypedField(
        _("Unfinished orders at most"),
        _("Above it new orders wait or are refused. Empty: no limit."),
        inputmode="numeric",
    )
    breaker_after = TypedField(
        _("Leave the receiver alone after so many failed tries"),
        _("If nothing was answered for a minute; ten times as many need 6 seconds only. 0: never."),
        inputmode="numeric",
    )
    breaker_wait_ms = TypedField(
        _("Then ask it again after"), _("Such as 30s or 5m; each time in vain doubles it, up to ten minutes.")
    )
    wait_budget_ms = TypedField(
        _("All waits between the tries of an order together"), _("Such as 30m. Empty: no limit.")
    )
    done_kept_ms = TypedField(_("Keep delivered orders for"), _("Such as 30d, at least a day. Empty: for ever."))
    receiver_keeps_ms = TypedField(
        _("The receiver knows an id for"), _("Such as 90d: longer than an order may still be sent.")
    )
    note = OptionalNoteField()

    def __init__(self, data: Any = None, *, policy: QueuePolicy) -> None:
        stands = {name: _text(name, getattr(policy, name)) for name in _READ}
        super().__init__(data, initial=stands, auto_id=f"limits-{policy.name}-%s")
        self.policy = policy
        self.changes: dict[str, int | None] = {}
        self._seen = {name: stands[name] if data is None else data.get(SEEN + name, stands[name]) for name in _READ}

    @property
    def seen(self) -> list[tuple[str, str]]:
        """(name, text) of the hidden fields that carry back what stood in each field."""
        return [(SEEN + name, text) for name, text in self._seen.items()]

    def clean(self) -> dict[str, Any]:
        """Read what differs from what was seen, and say at once what the service would refuse."""
        for name, (read, _write) in _READ.items():
            text = self.cleaned_data.get(name) or ""
            if name not in self.data or text == self._seen[name]:
                continue
            try:
                self.changes[name] = self._read(name, text, read)
            except InvalidPlan as error:
                self.add_error(name, refusal_at(error, str(self.fields[name].label), self.data[name]))
        try:
            with_limits(self.policy, self.changes)
        except InvalidLimit as error:
            self.refuse(error)
        return self.cleaned_data

    def _read(self, name: str, text: str, read: Callable[[str, str], int]) -> int | None:
        _low, _high, optional = LIMITS[name]
        return None if optional and not text else read(text, name)

    def refuse(self, error: InvalidLimit) -> None:
        """Show the service's refusal at the limit that it is about."""
        field = error.field if error.field in self.fields else None
        longest = self.policy.redrive_horizon_ms + self.policy.budget_ms
        if field == "receiver_keeps_ms":
            sentence = gettext(
                "It must be more than %(longest)s, for so long an order may still be sent: otherwise the receiver takes it "
                "for a new one."
            ) % {"longest": span_of(longest)}
        else:
            sentence = sentence_of(error)
        self.add_error(field, sentence)


def _text(name: str, value: int | None) -> str:
    _read, write = _READ[name]
    return "" if value is None else write(value)
