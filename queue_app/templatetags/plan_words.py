"""People's words for a redrive: its life, why it stands still, why orders were skipped, and what to beware of."""

from collections.abc import Callable, Sequence
from typing import Protocol

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from queue_app.policy.approvals import Grant, Warned, recorded_sentences
from queue_app.policy.spans import Unit, two_units
from queue_app.policy.terms import rate_text
from queue_app.templatetags.words import age, names_of, number, reason_word

register = template.Library()


class Cause(Protocol):
    """A cause, as far as words need it."""

    @property
    def reason(self) -> str: ...
    @property
    def code(self) -> str: ...


# state -> (word, tone, icon)
STATES = {
    "freezing": (pgettext_lazy("redrive", "making its list"), "info", "clock"),
    "proposed": (pgettext_lazy("redrive", "waits for approval"), "warn", "key"),
    "approved": (pgettext_lazy("redrive", "approved, waits for its turn"), "info", "clock"),
    "running": (pgettext_lazy("redrive", "running"), "info", "play"),
    "paused": (pgettext_lazy("redrive", "paused"), "warn", "pause"),
    "halted": (pgettext_lazy("redrive", "halted by itself"), "bad", "alert"),
    "ended": (pgettext_lazy("redrive", "carried out"), "ok", "check"),
    "stopped": (pgettext_lazy("redrive", "stopped"), "quiet", "stop"),
    "rejected": (pgettext_lazy("redrive", "rejected"), "quiet", "x"),
    "withdrawn": (pgettext_lazy("redrive", "withdrawn"), "quiet", "x"),
    "expired": (pgettext_lazy("redrive", "ran out"), "quiet", "clock"),
    "cancelled": (pgettext_lazy("redrive", "cancelled"), "quiet", "x"),
}
WHYS = {
    ("paused", "person"): gettext_lazy("Somebody paused it. Whoever may pause can let it go on."),
    ("paused", "canary_silent"): gettext_lazy(
        "The trial's results did not come in time, so it paused by itself. A team lead decides whether it goes on."
    ),
    ("halted", "canary_deaths"): gettext_lazy(
        "Too many orders of the trial died again, so it halted by itself. The rest was not touched."
    ),
    ("halted", "breaker"): gettext_lazy(
        "Too many of the last orders died again, so it halted by itself. The rest was not touched."
    ),
    ("halted", "approval_ran_out"): gettext_lazy("Its approval ran out before it went on. A team lead decides anew."),
    ("cancelled", "empty"): gettext_lazy("No order of the selection could be put on its list."),
}
SKIPS = {
    "gone": gettext_lazy("no order has this id any more"),
    "left_out": gettext_lazy("left out by the approver"),
    "not_dead": gettext_lazy("not in quarantine any more"),
    "newer_token": gettext_lazy("died anew since the list was fixed"),
    "held": gettext_lazy("held by another redrive"),
    "beyond_horizon": gettext_lazy("dead for too long to be redriven"),
    "too_old": gettext_lazy("dead for longer than this redrive allows"),
    "locked": gettext_lazy("busy at every try"),
    "error": gettext_lazy("failed in itself at every try"),
}
TRIALS = {
    "none": gettext_lazy("No trial was asked for."),
    "sending": gettext_lazy("The trial is being sent."),
    "waiting": gettext_lazy("The trial is sent and waits for its results."),
    "passed": gettext_lazy("The trial passed."),
    "failed": gettext_lazy("The trial failed: too many died again."),
    "silent": gettext_lazy("The trial's results did not come in time."),
}
OUTCOMES = {
    "": pgettext_lazy("outcome", "not redriven yet"),
    "waiting": pgettext_lazy("outcome", "redriven, not ended yet"),
    "done": pgettext_lazy("outcome", "delivered"),
    "dead_same": pgettext_lazy("outcome", "back in quarantine for the same cause"),
    "dead_other": pgettext_lazy("outcome", "back in quarantine for another cause"),
}


@register.filter
def plan_state(state: str) -> str:
    """The state of a redrive in people's words."""
    return str(STATES[state][0]) if state in STATES else state


@register.filter
def plan_tone(state: str) -> str:
    """Its data-tone."""
    return STATES[state][1] if state in STATES else "quiet"


@register.filter
def plan_icon(state: str) -> str:
    """The icon beside its word."""
    return STATES[state][2] if state in STATES else "info"


@register.simple_tag
def plan_why(state: str, why: str) -> str:
    """Why it stands as it does, or ''."""
    return str(WHYS.get((state, why), ""))


@register.filter
def skip_word(why: str) -> str:
    """Why an order of the list was skipped."""
    return str(SKIPS.get(why, why))


@register.filter
def trial_word(state: str) -> str:
    """The trial in words."""
    return str(TRIALS.get(state, state))


@register.filter
def outcome_word(outcome: str) -> str:
    """What came of one redriven order."""
    return str(OUTCOMES.get(outcome, outcome))


@register.filter
def pace(rate_mj: int) -> str:
    """Thousandths of an order per second as `5/s` or `0.25/s`."""
    return _("%(rate)s/s") % {"rate": rate_text(rate_mj)}


@register.filter
def warning_sentence(warned: Warned) -> str:
    """One thing to beware of, as a sentence with its number."""
    n, shown = warned.n, number(warned.n)
    one_many = {
        "mixed": lambda: ngettext("%(n)s cause in one redrive.", "%(n)s different causes in one redrive.", n),
        "effect_possible": lambda: ngettext(
            "%(n)s may already have been delivered.", "%(n)s may already have been delivered.", n
        ),
        "redriven_before": lambda: ngettext(
            "%(n)s was redriven before and came back.", "%(n)s were redriven before and came back.", n
        ),
        "nobody_looked": lambda: ngettext(
            "Nobody has looked at the cause of %(n)s order.", "Nobody has looked at the causes of %(n)s orders.", n
        ),
        "ordered_queue": lambda: _("The queue keeps order: later orders of a key may wait for these."),
        "no_trial": lambda: _("There is no trial: all go at once at the pace."),
        "queue_paused": lambda: _("The queue is paused: nothing is delivered until a team lead resumes it."),
        "no_worker": lambda: _("No worker is alive: redriven orders would only wait."),
        "no_redriver": lambda: _("No redriver is alive: nothing is carried out until one runs."),
    }
    if warned.code == "stale":
        return _("The oldest is in quarantine for %(age)s: does anybody still want it?") % {"age": age(n)}
    return one_many[warned.code]() % {"n": shown} if warned.code in one_many else warned.code


_SPANS: dict[tuple[Unit, ...], Callable[..., str]] = {
    ("s",): lambda s: _("%(s)d s") % {"s": s},
    ("min",): lambda minutes: _("%(min)d min") % {"min": minutes},
    ("min", "s"): lambda minutes, s: _("%(min)d min %(s)d s") % {"min": minutes, "s": s},
    ("h",): lambda h: _("%(h)d h") % {"h": h},
    ("h", "min"): lambda h, minutes: _("%(h)d h %(min)d min") % {"h": h, "min": minutes},
    ("d",): lambda d: ngettext("%(d)d day", "%(d)d days", d) % {"d": d},
    ("d", "h"): lambda d, h: ngettext("%(d)d day %(h)d h", "%(d)d days %(h)d h", d) % {"d": d, "h": h},
}


@register.simple_tag(name="span_of")
@register.filter(name="span_of")
def span_of(span_ms: int) -> str:
    """How long something takes, in words: two units, rounded up (`policy.spans`)."""
    parts = two_units(span_ms)
    return _SPANS[tuple(unit for _n, unit in parts)](*(n for n, _unit in parts))


@register.filter
def cause_label(cause: Cause) -> str:
    """A cause in words and with its code: two reasons may have the same code."""
    return f"{reason_word(cause.reason)} · {cause.code}" if cause.code else reason_word(cause.reason)


@register.simple_tag
def steps_words(steps: Sequence[tuple[int, int]]) -> str:
    """The paces that lead up to the full one, each with how long it holds."""
    held = [(pace(rate_mj), span_of(seconds * 1_000)) for rate_mj, seconds in steps]
    return names_of([_("%(pace)s for %(time)s") % {"pace": at, "time": time} for at, time in held])


@register.simple_tag
def sentences_of(grant: Grant, who: str) -> tuple[str, ...]:
    """The sentences that a decision is recorded with, in the language of the page."""
    return recorded_sentences(grant, who, gettext=_, ngettext=ngettext, comma=pgettext("between names in a list", ", "))
