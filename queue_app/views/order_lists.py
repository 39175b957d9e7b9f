"""Orders outside the quarantine, and any order by its id."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from queue_app.policy.errors import InvalidOrder
from queue_app.policy.orders import check_id
from queue_app.reads import orders
from queue_app.store import database, queues
from queue_app.views.reading import reader_of
from queue_app.views.refusals import sentence_of

NAMES = ("state", "unknown", "queue", "id", "after")


@require_safe
def order_list(request: HttpRequest) -> HttpResponse:
    """One list of orders: `state`, of one `queue`; or those whose `id` begins so, whatever their state."""
    reader_of(request)
    asked = {name: request.GET.get(name, "") for name in NAMES}
    names = list(queues.policies())
    which, as_of_ms = _which(asked), database.now_ms()
    context: dict[str, Any] = {"asked": asked, "which": which, "as_of_ms": as_of_ms}
    if problem := _problem(request, asked, names):
        return render(request, "orders/list.html", context | {"problem": problem}, status=400)
    try:
        if asked["id"]:
            page = orders.beginning_with(asked["id"], after=asked["after"])
        else:
            shown = [asked["queue"]] if asked["queue"] else names
            page = orders.page(which, shown, as_of_ms, after=asked["after"])
    except orders.PlaceError as error:
        return render(request, "orders/list.html", context | {"problem": sentence_of(error)}, status=400)
    context["page"] = page
    context["next_query"] = urlencode({**{k: v for k, v in asked.items() if v}, "after": page.next or ""})
    return render(request, "orders/list.html", context)


def _which(asked: dict[str, str]) -> str:
    return "unknown" if asked["unknown"] else asked["state"] or "pending"


def _problem(request: HttpRequest, asked: dict[str, str], names: list[str]) -> str:
    """A sentence for what cannot be meant, or ''."""
    if any(len(request.GET.getlist(name)) > 1 for name in request.GET) or set(request.GET) - set(NAMES):
        return _("This address asks for something that the list of orders does not know.")
    if asked["state"] not in ("", "pending", "leased", "done") or asked["unknown"] not in ("", "yes"):
        return _("The list shows orders that wait, are being delivered, or are delivered.")
    if asked["queue"] and asked["queue"] not in names:
        return _("No queue has this name.")
    if asked["id"]:
        try:
            check_id(asked["id"])
        except InvalidOrder as error:
            return sentence_of(error)
    return ""
