"""Signing in and out, the password, and a person's own settings."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from axes.helpers import get_cool_off
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import translation
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST
from django.views.i18n import set_language

from queue_app import clock
from queue_app.reads.preferences import THEMES
from queue_app.services import sessions
from queue_app.services.people import actor_of
from queue_app.store import preferences as kept
from queue_app.templatetags.frame import address
from queue_app.views.account_forms import NewPasswordForm, PreferenceForm, SignInForm
from queue_app.views.throttle import client_address, waits_until


def home() -> str:
    """The page after signing in."""
    return address("overview") or address("preferences")


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """GET the form, POST name and password. Django changes the session's id; axes counts the failures."""

    http_method_names = ["get", "head", "post"]
    template_name = "account/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse a senseless method first: Django would send signed-in people on, whatever the method."""
        if (request.method or "").lower() not in self.http_method_names:
            return self.http_method_not_allowed(request)
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign in, and say so in the record."""
        response = super().form_valid(form)
        actor = actor_of(self.request.user, channel="console", proof="password")
        sessions.signed_in(actor, client_address(self.request))
        return response

    def get_default_redirect_url(self) -> str:
        """The overview."""
        return home()


class SignOut(LogoutView):
    """POST only; the session ends on the server."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign out whoever is signed in, and say so in the record."""
        actor = actor_of(request.user, channel="console", proof="session") if request.user.is_authenticated else None
        response = super().post(request, *args, **kwargs)
        if actor:
            sessions.signed_out(actor, client_address(request))
        return response


class ChangePassword(PasswordChangeView):
    """A new password; every other session of this person ends, this one goes on under a new id."""

    http_method_names = ["get", "head", "post"]
    template_name = "account/password.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("preferences")

    def get_form_kwargs(self) -> dict[str, Any]:
        """The form proves the old password through the throttled sign-in, which needs the request."""
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        """Change it together with its event in the record, and say what happened, also to the other sessions."""
        actor = actor_of(self.request.user, channel="console", proof="password")
        sessions.change_password(form.user, actor, form.cleaned_data["new_password1"])
        update_session_auth_hash(self.request, form.user)
        messages.success(self.request, _("Your password is changed. All your other sessions have ended."))
        return redirect(self.get_success_url())


def locked_out(request: HttpRequest, _response: HttpResponseBase | None, credentials: Any) -> HttpResponse:
    """429 after too many failures for one name from one address, or from the address over all names.

    Says when to try again, whether or not the name exists.
    """
    wait = get_cool_off(request) or timedelta(minutes=15)
    name = str((credentials or {}).get("username") or "")
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    seconds = max(1, int(((waits_until(request, name) or now + wait) - now).total_seconds()))
    context = {"again_at_ms": clock.now_ms() + seconds * 1000, "wait_ms": -(-seconds // 60) * 60_000}
    answer = render(request, "account/locked_out.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """See and change the own settings."""
    form = PreferenceForm(request.POST or None, initial=PreferenceForm.values_of(request))
    if request.method == "POST" and form.is_valid():
        kept.keep(_own_id(request), **form.cleaned_data)
        with translation.override(form.cleaned_data["language"] or translation.get_language()):
            messages.success(request, _("Preferences saved."))
        return redirect("preferences")
    status = 422 if form.errors else 200
    return render(request, "account/preferences.html", {"form": form}, status=status)


@login_not_required
@require_POST
def language(request: HttpRequest) -> HttpResponseBase:
    """The language switch: a cookie for everybody, and kept for a signed-in person."""
    response = set_language(request)
    chosen = request.POST.get("language", "")
    if request.user.is_authenticated and chosen in dict(PreferenceForm.LANGUAGES):
        kept.keep(_own_id(request), language=chosen)
    return response


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """The colour switch; an unknown theme is refused."""
    chosen = request.POST.get("theme", "")
    if chosen not in THEMES:
        return HttpResponse(status=400)
    kept.keep(_own_id(request), theme=chosen)
    return redirect(_back(request))


def _own_id(request: HttpRequest) -> int:
    """The id of the person; the gate lets only signed-in people come this far."""
    return cast("int", request.user.pk)


def _back(request: HttpRequest) -> str:
    """The page that a personal choice was made on, if it is ours; else the first page."""
    for goal in (request.POST.get("next", ""), request.headers.get("Referer", "")):
        if url_has_allowed_host_and_scheme(goal, {request.get_host()}, require_https=request.is_secure()):
            return goal
    return home()
