"""The list of the quarantine: a filter in the address, pages by position, one count."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from queue_app.policy.cursors import CursorError, page_request
from queue_app.policy.errors import gettext_noop
from queue_app.policy.filters import Filter, FilterError
from queue_app.reads import quarantine
from queue_app.reads.quarantine import Page
from queue_app.reads.saved_filters import named_filters
from queue_app.store import database, queues
from queue_app.views import filters
from queue_app.views.reading import reader_of
from queue_app.views.refusals import sentence_of

SIZES = (25, 50, 100, 200)


@require_safe
def quarantine_list(request: HttpRequest) -> HttpResponse:
    """One page of orders in quarantine; 400 with the input kept when the address cannot be meant."""
    actor = reader_of(request)
    context: dict[str, Any] = {
        "typed": filters.typed(request),
        "labels": filters.LABELS,
        "queues": list(queues.policies()),
        "may_plan": actor.may("plan"),
        "may_investigate": actor.may("investigate"),
        "section": "quarantine",
        "as_of_ms": database.now_ms(),
    }
    try:
        wanted = filters.filter_of(request)
        asked = page_request(dict(request.GET.lists()), wanted.digest())
    except FilterError as error:
        return render(request, "quarantine/list.html", context | {"problems": filters.problems(error)}, status=400)
    except CursorError as error:
        return render(request, "quarantine/list.html", context | {"problems": [("", sentence_of(error))]}, status=400)
    page = quarantine.page(wanted, asked, context["as_of_ms"])
    names = context["queues"]
    one_queue = wanted.queue or (names[0] if len(names) == 1 else None)
    return render(
        request,
        "quarantine/list.html",
        context
        | {
            "page": page,
            "as_of_ms": page.as_of_ms,
            "chips": filters.chips(wanted),
            "filter_query": urlencode(wanted.query()),
            "redrive_query": urlencode(replace(wanted, queue=one_queue).query()) if one_queue else "",
            "other_way_query": _query(page, sort="newest" if page.sort == "oldest" else "oldest"),
            "paged_query": _query(page),
            "sizes": [(size, size == page.size, _query(page, size=size)) for size in SIZES],
            "newer_query": _newer_query(page),
            "filter_pairs": wanted.query(),
            "named_filters": [
                (named, urlencode(named.filter.query()) if named.filter else "") for named in named_filters(actor.id)
            ],
            "may_save_for_all": actor.may("save_filter"),
            "rare_open": any(pair[0] in filters.RARE for pair in wanted.query()),
        },
    )


@require_safe
def quarantine_newer(request: HttpRequest) -> HttpResponse:
    """How many matching orders died since a list was opened, for polling: the list itself never moves under anybody.

    204 while the number (`seen`) is still what the page shows; 400 when the address cannot be meant.
    """
    reader_of(request)
    now_ms = database.now_ms()
    wanted = filters.filter_of(request, also=("seen",))
    asked = page_request(dict(request.GET.lists()), wanted.digest())
    as_of = request.GET.get("as_of") or str(now_ms + 1)
    if not (as_of.isascii() and as_of.isdigit() and len(as_of) <= 15):
        raise CursorError("as_of", gettext_noop("The instant of the list cannot be read; load the page again."))
    as_of_ms = min(int(as_of), now_ms + 1)
    newer = quarantine.newer(wanted, as_of_ms, now_ms)
    if request.GET.get("seen") == str(newer.n):
        return HttpResponse(status=204)
    query = _address(wanted, asked.sort, asked.size)
    context = {"newer": newer, "paged_query": query, "newer_query": f"{query}&as_of={as_of_ms}"}
    return render(request, "quarantine/_newer.html", context)


def _address(wanted: Filter, sort: str, size: int) -> str:
    """The list from its beginning, as the part of an address after the question mark."""
    return urlencode([*wanted.query(), ("sort", sort), ("size", str(size))])


def _query(page: Page, *, sort: str = "", size: int = 0) -> str:
    return _address(page.filter, sort or page.sort, size or page.size)


def _newer_query(page: Page) -> str:
    """What the fragment asks with; '' when nothing that dies later can match, so that nobody asks."""
    wanted = page.filter
    ended = wanted.died_to_ms is not None and wanted.died_to_ms <= page.as_of_ms
    return "" if ended or wanted.min_age_ms else f"{_query(page)}&as_of={page.as_of_ms}"
