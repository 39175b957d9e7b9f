"""What surrounds every page: compression, no-store, the person's language and zone, and the gate for signed-out people."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import resolve_url
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from queue_app.reads.preferences import OwnSettings, own_settings

Answer = Callable[[HttpRequest], HttpResponseBase]
ZONES = frozenset(name for name in available_timezones() if "/" in name and not name.startswith("Etc/")) | {"UTC"}


class CompressMiddleware(GZipMiddleware):
    """Compresses whole answers, pages and static files alike.

    A 304 and an answer to HEAD have no body: compressing "nothing" would send twenty bytes that no client expects.
    Compression makes an ETag weak, and WhiteNoise compares tags as plain text, so the weak mark of a returning tag is
    taken off; for If-None-Match the comparison is a weak one anyway (RFC 9110, 13.1.2).
    """

    def process_request(self, request: HttpRequest) -> None:
        """Take the weak mark off a returning tag."""
        tag = request.META.get("HTTP_IF_NONE_MATCH", "")
        if tag.startswith('W/"') and tag.count('"') == 2:
            request.META["HTTP_IF_NONE_MATCH"] = tag[2:]

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress a complete answer with a body; leave every other one as it is."""
        if request.method == "HEAD" or response.status_code in {204, 206, 304}:
            patch_vary_headers(response, ("Accept-Encoding",))
            return response
        return super().process_response(request, response)


class NoStoreMiddleware:
    """Pages, fragments, exports and errors are kept by nobody; static files bring a Cache-Control of their own."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer, and forbid keeping the answer."""
        response = self.get_response(request)
        if "public" not in response.get("Cache-Control", ""):
            response["Cache-Control"] = "no-store"
        return response


class SignInGate(LoginRequiredMiddleware):
    """Pages need a signed-in person. A fragment asked for by htmx is sent away whole, not filled with a sign-in page."""

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponseBase:  # type: ignore[override]
        """401 with HX-Redirect to the sign-in page for htmx; for others the redirect."""
        if request.headers.get("HX-Request") != "true":
            return super().handle_no_permission(request, view_func)
        goal = f"{resolve_url(self.get_login_url(view_func))}?{_back_to_page(request)}".rstrip("?")
        return HttpResponse(status=401, headers={"HX-Redirect": goal})


def _back_to_page(request: HttpRequest) -> str:
    """`next=` of the page that shows the fragment (htmx tells it), never of the fragment itself; '' if it is foreign."""
    page = request.headers.get("HX-Current-URL", "")
    if not url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return ""
    parts = urlsplit(page)
    query = QueryDict(mutable=True)
    query[REDIRECT_FIELD_NAME] = parts.path + (f"?{parts.query}" if parts.query else "")
    return query.urlencode(safe="/")


class PreferenceMiddleware:
    """Sets `request.preference` and speaks the person's language in the person's zone.

    Without a choice, the language is the one that LocaleMiddleware found and the zone is the site's. The language stays
    on after the answer, because LocaleMiddleware (which stands outside) names it in Content-Language.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer in the person's language and zone."""
        user = request.user
        chosen = own_settings(user.pk) if user.is_authenticated else OwnSettings()
        request.preference = chosen  # type: ignore[attr-defined]
        if chosen.language and translation.check_for_language(chosen.language):
            translation.activate(chosen.language)
            request.LANGUAGE_CODE = translation.get_language() or chosen.language
        with timezone.override(ZoneInfo(chosen.time_zone) if chosen.time_zone in ZONES else None):
            return self.get_response(request)
