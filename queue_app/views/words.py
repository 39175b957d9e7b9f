"""Sentences of the screens that need a choice: one whole translatable sentence for each case."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_app.reads.life import Step

STEP_SENTENCES = {
    "accepted": gettext_lazy("Accepted"),
    "leased": gettext_lazy("Being delivered: try %(attempt)s, handed to %(worker)s"),
    "retry": gettext_lazy("Try %(attempt)s failed and was to be repeated"),
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
}


def step_sentence(step: Step) -> str:
    """What happened at a step of an order's life."""
    values = {"attempt": step.attempt, "worker": step.worker, "who": step.who or _("a program")}
    return str(STEP_SENTENCES[step.kind]) % values
