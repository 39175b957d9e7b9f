"""The orders of a redrive's list by what became of them: a page at a time, and as a file."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from queue_app.policy.cells import Column, Row
from queue_app.policy.errors import gettext_noop
from queue_app.policy.plans import InvalidPlan
from queue_app.reads import plans as reads
from queue_app.reads.plans import Detail, ItemLine
from queue_app.services import exports
from queue_app.services.exports import Content
from queue_app.store import database
from queue_app.templatetags.plan_words import SKIPS
from queue_app.views.downloads import answer
from queue_app.views.reading import reader_of

PAGE_SIZE = 50
NO_PART = gettext_noop("This part of the list does not exist.")
# part of the list -> states of its items and outcome, as reads.plans.plan_items takes them
PARTS: dict[str, dict[str, Any]] = {
    "": {},
    "waiting": {"states": ("waiting",)},
    "redriven": {"states": ("redriven",)},
    "skipped": {"states": ("skipped",)},
    "unended": {"outcome": "waiting"},
    "done": {"outcome": "done"},
    "dead_same": {"outcome": "dead_same"},
    "dead_other": {"outcome": "dead_other"},
}
COLUMNS = (
    Column("place", "number"),
    Column("id", "id"),
    Column("token", "number"),
    Column("reason"),
    Column("code"),
    Column("dead_since_ms", "number"),
    Column("state"),
    Column("skipped_because"),
    Column("outcome"),
    Column("trial_of_round", "number"),
    Column("redriven_at_ms", "number"),
    Column("skipped_at_ms", "number"),
    Column("ended_at_ms", "number"),
)


@require_safe
def redrive_items(request: HttpRequest, plan_id: int) -> HttpResponse:
    """The orders of its list, by what became of them."""
    reader_of(request)
    now_ms = database.now_ms()
    found = reads.detail(plan_id, now_ms)
    which, why = part_of(request.GET.get("which", ""), request.GET.get("why", ""))
    after, before = position_of(request.GET.get("after", "0")), request.GET.get("before")
    back = position_of(before) if before is not None else None
    rows = reads.plan_items(plan_id, after_pos=after, before_pos=back, limit=PAGE_SIZE + 1, why=why, **PARTS[which])
    more = len(rows) > PAGE_SIZE
    shown = rows[:PAGE_SIZE] if back is None else rows[-PAGE_SIZE:]
    context = {
        "d": found,
        "rows": shown,
        "after": shown[-1].pos if shown and (more or back is not None) else None,
        "before": shown[0].pos if shown and (more if back is not None else after > 0) else None,
        "which": which,
        "why": why or "",
        "as_of_ms": now_ms,
        "section": "redrive",
    }
    return render(request, "redrives/items.html", context)


@require_POST
def redrive_export(request: HttpRequest, plan_id: int) -> HttpResponseBase:
    """The orders of its list, or of a part of it, as a file; recorded before the first byte."""
    which, why = part_of(request.POST.get("which", ""), request.POST.get("why", ""))
    now_ms = database.now_ms()
    made = exports.export(
        request.user,
        "redrive",
        COLUMNS,
        lambda _actor: Content(_count(reads.detail(plan_id, now_ms), which, why), now_ms, _bites(plan_id, which, why)),
        filter=" ".join(part for part in (f"plan:{plan_id}", which, why or "") if part),
        form=request.POST.get("format", "csv"),
    )
    return answer(made)


def part_of(which: str, why: str) -> tuple[str, str | None]:
    """The part of the list, and of the skipped the reason. InvalidPlan when there is no such part."""
    if which not in PARTS or (why and (which != "skipped" or why not in SKIPS)):
        raise InvalidPlan(NO_PART)
    return which, why or None


def position_of(text: str) -> int:
    """A position of the list, or the number of a redrive, as an address has it. InvalidPlan when it is none."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InvalidPlan(NO_PART)
    return int(text)


def _count(found: Detail, which: str, why: str | None) -> int:
    line, results = found.line, found.results
    return {
        "": line.planned,
        "waiting": line.waiting,
        "redriven": line.redriven,
        "skipped": found.skips.get(why, 0) if why else line.skipped,
        "unended": results.waiting,
        "done": results.done,
        "dead_same": results.dead_same,
        "dead_other": results.dead_other,
    }[which]


def _bites(plan_id: int, which: str, why: str | None) -> Iterator[Sequence[Row]]:
    def read(after: ItemLine | None, limit: int) -> list[ItemLine]:
        return reads.plan_items(plan_id, after_pos=after.pos if after else 0, limit=limit, why=why, **PARTS[which])

    for bite in exports.in_bites(read):
        yield [
            (
                row.pos,
                row.job_id,
                row.token,
                row.reason,
                row.code,
                row.dead_since_ms,
                row.state,
                row.why,
                row.outcome,
                row.trial,
                row.redriven_at_ms,
                row.skipped_at_ms,
                row.ended_at_ms,
            )
            for row in bite
        ]
