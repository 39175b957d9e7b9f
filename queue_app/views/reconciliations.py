"""What the last comparisons with the receiver's list found."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from queue_app.policy.reconciling import FORGOTTEN, IN_FLIGHT, KINDS
from queue_app.reads.comparisons import Comparison, latest
from queue_app.store import database
from queue_app.views.reading import reader_of

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of difference: its words, how many orders, and the ids kept of it. `linked`: they have a page here."""

    label: str
    meaning: str
    n: int
    ids: tuple[str, ...]
    linked: bool


@require_safe
def reconciliations(request: HttpRequest) -> HttpResponse:
    """The last comparison in full, and the ones before it in a line each."""
    reader_of(request)
    found = latest(SHOWN)
    last = found[0] if found else None
    context = {
        "found": found,
        "last": last,
        "rows": _rows(last) if last else [],
        "in_flight": last.passing.get(IN_FLIGHT, 0) if last else 0,
        "forgotten": last.passing.get(FORGOTTEN, 0) if last else 0,
        "delivered": last.here.get("done", 0) + last.here.get("pruned", 0) if last else 0,
        "as_of_ms": database.now_ms(),
        "section": "overview",
    }
    return render(request, "reconciliations/list.html", context)


def _rows(last: Comparison) -> list[Row]:
    """In the order of gravity; a kind that this version does not know is shown as it is stored."""
    words = {kind.word: kind for kind in KINDS}
    rows = []
    for word in [*words, *sorted(set(last.kinds) - set(words))]:
        if n := last.kinds.get(word, 0):
            kind = words.get(word)
            ids = tuple(job_id for one, job_id in last.examples if one == word)
            label, meaning = (kind.label, kind.meaning) if kind else (word, "")
            rows.append(Row(label, meaning, n, ids, linked=word != "unknown_here"))
    return rows
