"""The quarantine as a file: exactly what the filter shows, as of one instant."""

from collections.abc import Iterator, Sequence

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_POST

from queue_app.policy.cells import Column, Row
from queue_app.policy.filters import Filter, parse
from queue_app.reads import dead
from queue_app.reads.dead import DeadRow
from queue_app.services import exports
from queue_app.services.exports import Content
from queue_app.store import database, queues
from queue_app.views import filters
from queue_app.views.downloads import answer

COUNT_BITE = 500
COLUMNS = (
    Column("id", "id"),
    Column("queue"),
    Column("reason"),
    Column("code"),
    Column("dead_since_ms", "number"),
    Column("attempts", "number"),
    Column("max_attempts", "number"),
    Column("quantity", "number"),
    Column("redriven", "number"),
    Column("order_key", "id"),
    Column("token", "number"),
)


@require_POST
def quarantine_export(request: HttpRequest) -> HttpResponseBase:
    """CSV or JSON lines of the filter in the form; recorded before the first byte."""
    named = {name: request.POST.getlist(name) for name in filters.LABELS if name in request.POST}
    wanted = parse(named, queues=list(queues.policies()), zone=filters.zone_of())
    as_of_ms = database.now_ms() + 1
    made = exports.export(
        request.user,
        "quarantine",
        COLUMNS,
        lambda _actor: Content(_rows(wanted, as_of_ms), as_of_ms, _bites(wanted, as_of_ms)),
        filter=wanted.canonical(),
        form=request.POST.get("format", "csv"),
    )
    return answer(made)


def _walk(wanted: Filter, as_of_ms: int, size: int) -> Iterator[Sequence[DeadRow]]:
    def read(after: DeadRow | None, limit: int) -> list[DeadRow]:
        position = after.position if after else None
        return dead.chunk(wanted, as_of_ms, position, limit, scan=exports.LOOK, rest=exports.rest)

    return exports.in_bites(read, size)


def _bites(wanted: Filter, as_of_ms: int) -> Iterator[Sequence[Row]]:
    for rows in _walk(wanted, as_of_ms, exports.BITE):
        yield [
            (
                row.id,
                row.queue,
                row.reason,
                row.code,
                row.changed_at_ms,
                row.attempts,
                row.max_attempts,
                row.quantity,
                row.redriven,
                row.order_key,
                row.token,
            )
            for row in rows
        ]


def _rows(wanted: Filter, as_of_ms: int) -> int:
    """The exact number of rows: the pages' count where it is exact, else counted row by row."""
    counted = dead.count(wanted, as_of_ms)
    return counted.n if counted.exact else sum(len(rows) for rows in _walk(wanted, as_of_ms, COUNT_BITE))
