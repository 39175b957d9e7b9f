"""Keeps signed-in sessions within their limits (services/session_limits.py)."""

from collections.abc import Callable

from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseBase

from queue_app.services import session_limits


class SessionLimits:
    """Prolongs the session of somebody who does something; ends one that never got its limits.

    Updates that a page asks for by itself (htmx) are no sign of a person: an open dashboard does not keep a session
    alive for ever.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Look at the session first, then answer."""
        if request.user.is_authenticated:
            if not session_limits.has_limits(request.session):
                logout(request)
            elif request.headers.get("HX-Request") != "true":
                session_limits.prolong(request.session)
        return self.get_response(request)
