"""The list of the quarantine: a filter in the address, pages by position, one count."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from queue_app.policy.cursors import CursorError, page_request
from queue_app.policy.filters import FilterError
from queue_app.reads import quarantine
from queue_app.reads.saved_filters import named_filters
from queue_app.services.people import actor_of, require
from queue_app.store import database, queues
from queue_app.views import filters
from queue_app.views.refusals import sentence_of


@require_safe
def quarantine_list(request: HttpRequest) -> HttpResponse:
    """One page of orders in quarantine; 400 with the input kept when the address cannot be meant."""
    actor = actor_of(request.user)
    require(actor, "read")
    context: dict[str, Any] = {
        "typed": filters.typed(request),
        "labels": filters.LABELS,
        "queues": list(queues.policies()),
        "may_plan": actor.may("plan"),
        "may_investigate": actor.may("investigate"),
        "may_export": actor.may("export"),
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
    query = urlencode(wanted.query())
    return render(
        request,
        "quarantine/list.html",
        context
        | {
            "page": page,
            "as_of_ms": page.as_of_ms,
            "chips": filters.chips(wanted),
            "filter_query": query,
            "paged_query": urlencode([*wanted.query(), ("sort", page.sort), ("size", str(page.size))]),
            "filter_pairs": wanted.query(),
            "named_filters": [
                (named, urlencode(named.filter.query()) if named.filter else "") for named in named_filters(actor.id)
            ],
            "may_save_for_all": actor.may("save_filter"),
            "rare_open": any(pair[0] in filters.RARE for pair in wanted.query()),
        },
    )
