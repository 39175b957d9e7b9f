"""Sentences of the screens that need a choice: one whole translatable sentence for each case."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_app.reads.life_steps import Step

# kind of step -> tone and icon
STEP_MARKS = {
    "accepted": ("quiet", "box"),
    "attempt": ("info", "send"),
    "retry": ("warn", "again"),
    "permanent": ("bad", "x"),
    "unknown": ("warn", "alert"),
    "lease_expired": ("warn", "clock"),
    "deadline_passed": ("warn", "clock"),
    "delivered": ("ok", "check"),
    "quarantined": ("bad", "stop"),
    "late_finish": ("warn", "alert"),
    "redriven": ("info", "again"),
    "investigated": ("info", "search"),
    "unblocked": ("info", "key"),
    "held": ("info", "lock"),
}
STEP_SENTENCES = {
    "accepted": gettext_lazy("Accepted"),
    "attempt": gettext_lazy("Try %(attempt)s: being delivered by %(worker)s"),
    "retry": gettext_lazy("Try %(attempt)s failed"),
    "permanent": gettext_lazy("Try %(attempt)s: refused by the receiver for good"),
    "lease_expired": gettext_lazy("Try %(attempt)s: its worker never answered. It may have been delivered"),
    "unknown": gettext_lazy("Try %(attempt)s: the answer proved nothing. It may have been delivered"),
    "deadline_passed": gettext_lazy("Its time was over before the next try"),
    "delivered": gettext_lazy("Delivered at try %(attempt)s"),
    "quarantined": gettext_lazy("Put in quarantine"),
    "late_finish": gettext_lazy("A late answer was refused: somebody else had taken over"),
    "redriven": gettext_lazy("Redriven with a new budget"),
    "investigated": gettext_lazy("Looked at by %(who)s"),
    "unblocked": gettext_lazy("%(who)s let the later orders of the key pass"),
    "held": gettext_lazy("Held by Redrive R-%(plan)s"),
}


def step_mark(step: Step) -> tuple[str, str]:
    """Tone and icon of a step; one that a newer version wrote has a plain mark."""
    return STEP_MARKS.get(step.kind, ("quiet", "note"))


def step_sentence(step: Step) -> str:
    """What happened at a step of an order's life; what a newer version wrote is shown as it is stored."""
    if step.kind not in STEP_SENTENCES:
        return step.kind
    values = {"attempt": step.attempt, "worker": step.worker, "who": step.by or _("a program"), "plan": step.batch}
    return str(STEP_SENTENCES[step.kind]) % values
