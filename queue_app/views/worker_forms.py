"""The form that lets one worker finish and end: which of those that live, and a ticket if there is one."""

from collections.abc import Sequence

from django import forms
from django.http.request import QueryDict
from django.utils.translation import gettext_lazy as _

from queue_app.reads.processes import ProcessLine
from queue_app.views.queue_forms import OptionalNoteField

MAX_DIGITS = 18  # of an instant


class WorkerDrainForm(forms.Form):
    """A worker is named with its start, so that nobody ends one that began anew under the same name."""

    worker = forms.CharField(
        label=_("Worker"), widget=forms.Select, error_messages={"required": _("Choose the worker that is to end.")}
    )
    note = OptionalNoteField()

    def __init__(self, given: QueryDict | None = None, *, lines: Sequence[ProcessLine] = (), wanted: str = "") -> None:
        """`lines` are offered, of them those that can be told; `wanted` is chosen already."""
        offered = [line for line in lines if can_be_told(line)]
        chosen = next((_value(line) for line in offered if line.name == wanted), "")
        super().__init__(given, auto_id="id-drain-%s", initial={"worker": chosen})
        names = [(_value(line), " · ".join(filter(None, (line.name, line.queue, line.host)))) for line in offered]
        self.fields["worker"].widget.choices = [("", _("Choose a worker")), *names]

    @property
    def choosable(self) -> bool:
        """Whether there is a worker to choose."""
        return len(self.fields["worker"].widget.choices) > 1

    def clean_worker(self) -> tuple[int, str]:
        """Start (ms) and name."""
        start, _blank, name = self.cleaned_data["worker"].partition(" ")
        if not (start.isascii() and start.isdigit() and len(start) <= MAX_DIGITS and name):
            raise forms.ValidationError(self.fields["worker"].error_messages["required"])
        return int(start), name


def can_be_told(line: ProcessLine) -> bool:
    """A worker that lives and was not told yet."""
    return line.kind == "worker" and line.state == "alive" and not line.draining


def _value(line: ProcessLine) -> str:
    return f"{line.started_at_ms} {line.name}"
