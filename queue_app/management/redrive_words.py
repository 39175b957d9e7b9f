"""Redrives as text on a terminal and as JSON: plain ASCII English, numbers grouped, instants in UTC."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from queue_app.policy.approvals import recorded_sentences
from queue_app.policy.figures import Results
from queue_app.policy.spans import span_text
from queue_app.policy.terms import rate_text
from queue_app.reads.plans import Detail, Line
from queue_app.reads.previews import Preview
from queue_app.services.receipts import Receipt

WARNING_WORDS = {
    "mixed": "{n:,} different causes are mixed.",
    "stale": "The oldest has been in quarantine for {days} days.",
    "ordered_queue": "This queue keeps order within a key; a redrive goes oldest first, its trial out of turn.",
    "effect_possible": "{n:,} may already have been delivered.",
    "redriven_before": "{n:,} were redriven before and came back.",
    "nobody_looked": "Nobody has looked at the cause of {n:,} of them.",
    "no_trial": "There is no trial.",
    "queue_paused": "The queue is paused: nothing is delivered.",
    "no_worker": "No worker of this queue is alive.",
    "no_redriver": "No redriver is alive: nothing will move.",
}
DAY_MS = 86_400_000


def as_json(value: object) -> str:
    """A value of reads or services as one JSON object with sorted names; instants are ms since 1970, UTC."""
    return json.dumps(_plain(value), sort_keys=True, indent=2)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def instant(at_ms: int) -> str:
    """UTC to the second."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def of_receipt(receipt: Receipt) -> Iterator[str]:
    """What a change came to."""
    if receipt.first:
        yield f"R-{receipt.plan} is {receipt.state}."
        if receipt.grant:
            yield " ".join(recorded_sentences(receipt.grant, receipt.by))
    else:
        by = f" by {receipt.by}" if receipt.by else ""
        yield f"R-{receipt.plan} is {receipt.state}: this was done already{by}, {instant(receipt.at_ms)}."


def of_preview(preview: Preview) -> Iterator[str]:
    """What would be frozen."""
    more = "" if preview.n.exact else "+"
    yield f"{preview.n.n:,}{more} orders of {preview.queue} are selected as of {instant(preview.as_of_ms)}."
    for cause in preview.causes:
        yield f"  {cause.n:>9,}  {cause.reason} {cause.code or '-'}, oldest {instant(cause.oldest_ms)}{_before(cause.before)}"
    for n, words in (
        (preview.beyond_horizon, "are beyond the redrive horizon and left out"),
        (preview.too_old, "are dead for longer than allowed and left out"),
    ):
        if n:
            yield f"  {n:>9,}  {words}"
    for plan, n in preview.held.items():
        yield f"  {n:>9,}  are held by R-{plan} and left out"
    takes = span_text(preview.duration_ms)
    yield f"{preview.eligible:,} orders take {takes} at this pace, until {instant(preview.ends_at_ms)}."
    yield from of_warnings(preview.warnings)


def _before(results: Results) -> str:
    if not results.redriven:
        return ""
    return f"; redriven before{_came_of(results)}"


def _came_of(results: Results) -> str:
    if not results.redriven:
        return ""
    return (
        f": {results.done:,} delivered, {results.dead_same:,} dead again for the same reason, "
        f"{results.dead_other:,} for another, {results.waiting:,} open"
    )


def of_warnings(warnings: Sequence[Any]) -> Iterator[str]:
    """One sentence for each warning."""
    for warned in warnings:
        yield "! " + WARNING_WORDS[warned.code].format(n=warned.n, days=warned.n // DAY_MS)


def of_detail(detail: Detail) -> Iterator[str]:
    """One redrive in full."""
    line = detail.line
    yield f"R-{line.id}  {line.state}{f' ({line.why})' if line.why else ''}  queue {line.queue}  note {line.note}"
    yield f"asked for by {line.requested_name}, {instant(line.created_at_ms)}{'  SOLO APPROVAL' if line.solo else ''}"
    if line.state == "freezing":
        yield f"the list is being made: {detail.looked_at:,} of about {detail.expected:,} orders looked at"
    yield (
        f"planned {line.planned:,} = waiting {line.waiting:,} + redriven {line.redriven:,} + skipped {line.skipped:,}"
    )
    for why, n in sorted(detail.skips.items()):
        yield f"  {n:>9,}  skipped: {why}"
    results = detail.results
    yield (
        f"delivered {results.done:,}  dead again for the same reason {results.dead_same:,}, "
        f"for another {results.dead_other:,}  no end yet {results.waiting:,}"
    )
    for cause in detail.causes:
        mark = "  LEFT OUT" if cause.left_out else ""
        yield f"  {cause.planned:>9,}  {cause.reason} {cause.code or '-'}, oldest {instant(cause.oldest_ms)}{mark}"
        yield f"             {cause.redriven:,} redriven, {cause.skipped:,} skipped{_came_of(cause.results)}"
        if cause.before.redriven:
            yield f"             earlier redrives{_came_of(cause.before)}"
    yield from _terms(detail)
    for made in detail.decisions:
        yield (
            f"round {made.round}: {made.decision} by {made.by_name}, {instant(made.at_ms)}, note {made.note}, "
            f"{rate_text(made.rate_mj)} orders/s, trial of {made.canary:,}{', solo' if made.solo else ''}"
        )
    if line.open:
        yield from of_warnings(detail.warnings)
    yield f"list {detail.digest}"


def _terms(detail: Detail) -> Iterator[str]:
    trial = detail.trial
    line = detail.line
    yield (
        f"pace {rate_text(line.rate_mj)} orders/s (asked {rate_text(detail.terms.rate_mj)}); "
        f"trial {trial.state}: {trial.sent:,} of {trial.size:,} tried, {trial.done:,} delivered, {trial.died:,} dead again; "
        f"stops at {detail.terms.stop_permille / 10:g} % dead"
    )
    if line.open and line.waiting:
        yield f"what waits takes {span_text(detail.left_ms)} at this pace"
    if detail.turn_after is not None:
        yield f"it waits for R-{detail.turn_after} of the same queue"


def of_lines(lines: Sequence[Line]) -> Iterator[str]:
    """Redrives as a table."""
    yield f"{'R':>7}  {'STATE':<10} {'QUEUE':<16} {'PLANNED':>9} {'REDRIVEN':>9} {'SKIPPED':>8} {'DELIVERED':>9}  NOTE"
    for line in lines:
        yield (
            f"{f'R-{line.id}':>7}  {line.state:<10} {line.queue:<16} {line.planned:>9,} {line.redriven:>9,} "
            f"{line.skipped:>8,} {line.results.done:>9,}  {line.note}"
        )
