"""`manage.py quarantine`: the overview's numbers on a terminal or as JSON, from the same code as the pages."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queue_app import conf
from queue_app.policy.figures import Figures, Ratio
from queue_app.policy.filters import Filter, FilterError, parse
from queue_app.policy.headlines import headline, needs
from queue_app.reads import dead
from queue_app.reads.dead import Count, DeadRow
from queue_app.reads.figures import figures
from queue_app.services import exports
from queue_app.store import database, queues

MAX_ROWS = 10_000
OPTIONS = {
    "queue": "a declared queue",
    "reason": "permanent, exhausted or deadline",
    "code": "short cause such as http_503; - for orders without one",
    "effect": "yes: the code says that the order may have had its effect",
    "died-from": "dead since this time or later: 2026-11-29T02:30 in the site's zone, or ms",
    "died-to": "dead since before this time",
    "min-age": "dead for at least 90m, 2h, 3d",
    "max-age": "dead for at most so long",
    "id": "beginning of the order's id",
    "attempts-min": "at least so many tries in the last budget",
    "attempts-max": "at most so many",
    "redriven": "yes or no: redriven before",
    "looked": "yes or no: investigated since it died",
}


class Command(BaseCommand):
    """Reads the numbers once and prints them; the exit status is 2 for a filter that cannot be meant."""

    help = "Show what is in quarantine and why, with the numbers of the overview; filters count and list orders."

    def add_arguments(self, parser: CommandParser) -> None:
        """The filter's fields have the names that they have in the console's addresses."""
        parser.add_argument("--json", action="store_true", help="one JSON object; instants are ms since 1970, UTC")
        parser.add_argument(
            "--list",
            type=int,
            default=0,
            metavar="N",
            help=f"also the N oldest orders that match, at most {MAX_ROWS:,}",
        )
        for name, text in OPTIONS.items():
            parser.add_argument(f"--{name}", action="append", default=[], help=text)

    def handle(self, *_: Any, **options: Any) -> None:
        """Print; be quiet when the reader at the other end (`| head`) has left."""
        if not 0 <= options["list"] <= MAX_ROWS:
            raise CommandError(f"--list is a number from 0 to {MAX_ROWS:,}.", returncode=2)
        wanted = _filter(options)
        now = database.now_ms()
        numbers = figures(now)
        # One millisecond more, so that what died in this very one is counted here as it is in the counters.
        count = dead.count(wanted, now + 1)
        rows = _rows(wanted, now + 1, options["list"]) if options["list"] else []
        lines = [_json(numbers, wanted, count, rows)] if options["json"] else _table(numbers, wanted, count, rows)
        try:
            for line in lines:
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:
            # What is still buffered would raise again when the interpreter flushes at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _rows(wanted: Filter, as_of_ms: int, limit: int) -> list[DeadRow]:
    """The oldest, in looks that keep nobody waiting."""
    return dead.chunk(wanted, as_of_ms, None, limit, scan=exports.LOOK, rest=exports.rest)


def _filter(options: dict[str, Any]) -> Filter:
    given = {name.replace("-", "_"): options[name.replace("-", "_")] for name in OPTIONS}
    try:
        return parse(
            {name: values for name, values in given.items() if values},
            queues=queues.policies(),
            zone=ZoneInfo(conf.site_time_zone()),
        )
    except FilterError as error:
        raise CommandError(str(error), returncode=2) from None


# --- JSON -----------------------------------------------------------------------------------------------------------


def _json(numbers: Figures, wanted: Filter, count: Count, rows: Sequence[DeadRow]) -> str:
    found = _plain(numbers) | {
        "as_of": _utc(numbers.as_of_ms),
        "headline": _plain(headline(numbers)),
        "needs": _plain(needs(numbers)),
        "unlooked": numbers.unlooked,
        "matching": {"filter": _plain(wanted), "n": count.n, "exact": count.exact},
        "rows": _plain(rows),
    }
    found["states"] |= {"pending": numbers.states.pending, "total": numbers.states.total}
    return json.dumps(found, sort_keys=True, indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, Filter):
        return json.loads(value.canonical())
    if isinstance(value, Ratio):
        return {"part": value.part, "whole": value.whole, "value": value.value}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# --- the table ------------------------------------------------------------------------------------------------------


def _table(numbers: Figures, wanted: Filter, count: Count, rows: Sequence[DeadRow]) -> Iterator[str]:
    now = numbers.as_of_ms
    yield f"As of {_utc(now)}"
    states = numbers.states
    yield (
        f"waiting {states.pending:,} (new {states.new:,}, retrying {states.retrying:,}, redriven {states.redriven:,})"
        f"   being delivered {states.leased:,}   delivered {states.done:,}   in quarantine {states.dead:,}"
    )
    if numbers.oldest:
        yield f"oldest in quarantine: {numbers.oldest.id}, {_age(now - numbers.oldest.since_ms)}"
    look = numbers.look
    looked = f"{look.by_name}, {_utc(look.at_ms)}, {look.note} ({look.finding})" if look else "nobody"
    yield f"last looked at by: {looked}; died since: {numbers.since_look:,}"
    yield ""
    yield from _columns(
        ("CAUSE", "COUNT", "SHARE", "LAST 5 MIN", "SINCE LOOK", "FIRST", "LAST"),
        (
            (
                f"{group.queue} {group.reason} {group.code or '-'}",
                f"{group.n:,}",
                _share(Ratio(group.n, states.dead)),
                f"{group.recent:,}",
                f"{group.since_look:,}",
                _age(now - group.first_at_ms),
                _age(now - group.last_at_ms),
            )
            for group in numbers.groups
        ),
    )
    yield ""
    yield from _columns(
        ("WINDOW", "DIED", "STILL THERE"),
        ((window.name, f"{window.died:,}", f"{window.still:,}") for window in numbers.windows),
    )
    yield ""
    results = numbers.results
    yield (
        f"redrives: {results.redriven:,} = waiting {results.waiting:,}, delivered {results.done:,}, "
        f"dead again {results.dead_same:,}, dead for another cause {results.dead_other:,}; "
        f"delivered of those that ended: {_share(results.success)}"
    )
    yield f"answers that nobody knows: {numbers.unknown.leased:,} being delivered, {numbers.unknown.dead:,} in quarantine"
    yield f"late finishes refused: {numbers.late_finishes:,}"
    if wanted.active or rows:
        yield ""
        yield f"matching {wanted.canonical()}: {count.n:,}{'' if count.exact else '+'}"
    if rows:
        yield from _columns(
            ("ID", "QUEUE", "REASON", "CODE", "TRIES", "DEAD FOR"),
            (
                (row.id, row.queue, row.reason, row.code or "-", str(row.attempts), _age(now - row.changed_at_ms))
                for row in rows
            ),
        )


def _columns(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as their longest cell; the first to the left, the others to the right."""
    lines = [head, *body]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


def _share(ratio: Ratio) -> str:
    return "none" if ratio.value is None else f"{ratio.value:.1%}"


def _age(span_ms: int) -> str:
    """The two largest units of a span; one in the future by a wrong clock is shown as such."""
    seconds = abs(span_ms) // 1_000
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    text = f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"
    return text if span_ms >= 0 else f"in {text}"


def _utc(at_ms: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
