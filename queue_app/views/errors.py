"""Refusals and failures as pages: one sentence, what to do next, no detail of the inside."""

import sys

import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_NO_CSRF_COOKIE
from django.shortcuts import render
from django.template.loader import render_to_string

log = structlog.get_logger(__name__)


def layout_of(request: HttpRequest) -> str:
    """The frame for this request: with the navigation only for a signed-in person."""
    user = getattr(request, "user", None)
    return "base.html" if user is not None and user.is_authenticated else "_bare.html"


def bad_request(_request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django's name
    """400. Rendered without the request: a forged host must not reach the session or the database."""
    return HttpResponse(render_to_string("400.html"), status=400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the exception's own sentence when it has one (services phrase it for people)."""
    sentence = str(exception) if exception.args else ""
    return render(request, "403.html", {"layout": layout_of(request), "sentence": sentence}, status=403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django's name
    """404."""
    return render(request, "404.html", {"layout": layout_of(request)}, status=404)


def cannot_work(error: Exception) -> HttpResponse:
    """503 for a database that cannot work now. Rendered without the request: nothing here may ask the database again."""
    log.error("database_refuses", code=type(error).__name__)
    connection.close()
    return HttpResponse(render_to_string("503.html"), status=503, headers={"Retry-After": "5"})


def server_error(_request: HttpRequest) -> HttpResponse:
    """500, or 503 where a database that cannot work now stopped the request before any view: sessions live there too.

    Nothing here asks the database, which may be what failed: no request, no person, no session.
    """
    error = sys.exception()
    if isinstance(error, (DatabaseError, InterfaceError)):
        return cannot_work(error)
    return HttpResponse(render_to_string("500.html"), status=500)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form whose token is missing or old (CSRF_FAILURE_VIEW): nothing was done, and how to go on."""
    context = {"layout": layout_of(request), "no_cookie": reason == REASON_NO_CSRF_COOKIE}
    return render(request, "403_csrf.html", context, status=403)
