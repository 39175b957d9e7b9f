"""What services refuse, as pages: the right status, and the refusal's own sentence in the person's language."""

from collections.abc import Callable

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext

from queue_app.policy.errors import (
    Conflict,
    Held,
    NotAllowed,
    NotDead,
    QueueClosed,
    QueueFull,
    SnackOpsError,
    UnknownJob,
)
from queue_app.policy.filters import FilterError
from queue_app.policy.plans import PlanMoved
from queue_app.views.errors import cannot_work, layout_of

STATUSES: tuple[tuple[type[SnackOpsError], int], ...] = (
    (NotAllowed, 403),
    (UnknownJob, 404),
    (Conflict, 409),
    (Held, 409),
    (NotDead, 409),
    (PlanMoved, 409),
    (QueueClosed, 409),
    (QueueFull, 409),
)


def sentence_of(error: SnackOpsError) -> str:
    """The refusal in the active language; of a filter, one sentence for each part that cannot be meant."""
    if isinstance(error, FilterError):
        return " ".join(gettext(problem.template) % problem.values for problem in error.problems)
    template = gettext(error.template) if error.template else ""
    return template % error.values if error.values else template


def status_of(error: SnackOpsError) -> int:
    """The HTTP status of a refusal; 400 for input that cannot be meant."""
    found = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    return found or (404 if isinstance(error, LookupError) else 400)


class RefusalMiddleware:
    """Turns a service's refusal that a view did not handle itself into a page, and a busy database into a 503."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass through."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The page for a refusal or a database that cannot work now; None leaves the exception to Django."""
        if isinstance(exception, SnackOpsError):
            status = status_of(exception)
            context = {"layout": layout_of(request), "sentence": sentence_of(exception), "status": status}
            template = {403: "403.html", 404: "404.html"}.get(status, "errors/refused.html")
            return render(request, template, context, status=status)
        if isinstance(exception, (DatabaseError, InterfaceError)):
            return cannot_work(exception)
        return None
