"""Filters under a name: kept for oneself or for all, and removed again."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from queue_app.policy.filters import parse
from queue_app.services import saved_filters
from queue_app.store import queues
from queue_app.views import filters
from queue_app.views.refusals import sentence_of


@require_POST
def saved_filter_new(request: HttpRequest) -> HttpResponse:
    """Keep the filter of the form under its name."""
    named = {name: request.POST.getlist(name) for name in filters.LABELS if name in request.POST}
    wanted = parse(named, queues=list(queues.policies()), zone=filters.zone_of())
    try:
        saved_filters.save(
            request.user,  # type: ignore[arg-type]
            request.POST.get("name", ""),
            wanted,
            for_all=request.POST.get("for_all") == "yes",
        )
    except saved_filters.InvalidName as error:
        messages.error(request, sentence_of(error))
    else:
        messages.success(request, _("The filter is kept."))
    query = urlencode(wanted.query())
    return redirect(f"{reverse('quarantine_list')}?{query}" if query else reverse("quarantine_list"))


@require_POST
def saved_filter_delete(request: HttpRequest, filter_id: int) -> HttpResponse:
    """Remove an own filter, or one for all."""
    try:
        saved_filters.delete(request.user, filter_id)  # type: ignore[arg-type]
    except saved_filters.UnknownFilter as error:
        messages.warning(request, sentence_of(error))
    else:
        messages.success(request, _("The filter is removed."))
    return redirect("quarantine_list")
