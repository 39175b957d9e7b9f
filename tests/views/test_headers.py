"""What stands on every answer (ASVS 3.3, 3.4): of pages, refusals, failures, exports and static files."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as product
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from queue_app.models import AuditEvent
from queue_app.services import queue
from queue_app.views import errors, overview
from tests.conftest import PASSWORD, Clock
from tests.redrive import story
from tests.views.hostile import routes
from tests.views.pages import faults

pytestmark = pytest.mark.django_db
SIGN_IN, OVERVIEW = reverse("sign_in"), reverse("overview")
STYLE = "/static/snackops.css"
DIRECTIVES = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "object-src": "'none'",
}


@pytest.fixture
def tom(team_lead: User, clock: Clock) -> Client:
    """A team lead's browser, on a quarantine with one order and a redrive of it."""
    queue.enqueue("h-1", 7)
    (lease,) = queue.claim("w")
    queue.finish(lease.id, lease.token, "permanent", code="permanent")
    story.ask(team_lead)
    client = Client(raise_request_exception=False)
    client.force_login(team_lead)
    return client


def body(answer: Any) -> str:
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(content.decode(errors="replace"))


def failing(error: Exception) -> Callable[..., object]:
    def fail(*_given: object) -> object:
        raise error

    return fail


def locked_out(client: Client) -> Any:
    return [client.post(SIGN_IN, {"username": "x", "password": "wrong"}) for _try in range(6)][-1]


# what is asked -> (the status, how)
ANSWERS: dict[str, tuple[int, Callable[[Client], Any]]] = {
    "a page": (200, lambda tom: tom.get(OVERVIEW)),
    "a page without its body": (200, lambda tom: tom.head(OVERVIEW)),
    "the sign-in page": (200, lambda _: Client().get(SIGN_IN)),
    "signed out": (302, lambda _: Client().get(OVERVIEW)),
    "signed out, a fragment": (401, lambda _: Client().get(reverse("overview_live"), headers={"HX-Request": "true"})),
    "a forged host": (400, lambda tom: tom.get(OVERVIEW, headers={"Host": "evil.example"})),
    "a filter that cannot be meant": (400, lambda tom: tom.get(reverse("quarantine_list"), {"reason": "x"})),
    "no token": (403, lambda _: Client(enforce_csrf_checks=True).post(SIGN_IN, {"username": "x"})),
    "no such page": (404, lambda tom: tom.get("/no/such/page")),
    "no such order": (404, lambda tom: tom.get(reverse("job", args=["nowhere"]))),
    "a method that means nothing": (405, lambda tom: tom.delete(OVERVIEW)),
    "too many tries": (429, lambda _: locked_out(Client())),
    "alive": (200, lambda _: Client().get(reverse("livez"))),
    "an export as CSV": (200, lambda tom: tom.post(reverse("quarantine_export"), {"format": "csv"})),
    "an export as JSON lines": (200, lambda tom: tom.post(reverse("quarantine_export"), {"format": "jsonl"})),
    "the record's export": (200, lambda tom: tom.post(reverse("audit_export"), {"format": "csv"})),
    "a static file": (200, lambda _: Client().get(STYLE)),
    "a static file, compressed": (200, lambda _: Client().get(STYLE, headers={"Accept-Encoding": "gzip"})),
    "no such static file": (404, lambda _: Client().get("/static/nothing.css")),
}


def look_at(answer: Any) -> None:
    """The headers that no answer is without."""
    policy = dict(part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";") if part.strip())
    assert policy == DIRECTIVES
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "Server" not in answer
    assert "X-Powered-By" not in answer
    public = "public" in answer["Cache-Control"]
    assert public or answer["Cache-Control"] == "no-store"
    # for browsers older than frame-ancestors; a forged host (400) is refused further out
    if not public and answer.status_code != 400:
        assert answer["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("what", ANSWERS)
def test_the_policy_stands_on_every_answer(tom: Client, what: str) -> None:
    status, ask = ANSWERS[what]
    answer = ask(tom)
    assert answer.status_code == status
    look_at(answer)
    assert ("public" in answer["Cache-Control"]) == what.startswith("a static file")
    body(answer)


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("inside"), 500), (OperationalError("locked"), 503), (MemoryError(), 500)]
)
def test_the_policy_stands_on_failures_and_they_tell_nothing(
    tom: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    monkeypatch.setattr(overview, "figures", failing(error))
    monkeypatch.setattr(errors.connection, "close", lambda: None)  # the test's own transaction lives in it
    answer = tom.get(OVERVIEW)
    assert answer.status_code == status
    look_at(answer)
    text = body(answer)
    assert faults(text) == []
    assert not re.search("inside|locked|Traceback|Error", text)


def test_somebody_without_a_role_gets_the_policy_too(client: Client) -> None:
    client.force_login(User.objects.create_user("nobody", password=None))
    answer = client.get(OVERVIEW)
    assert answer.status_code == 403
    look_at(answer)
    assert faults(body(answer)) == []


def test_an_unchanged_static_file_keeps_the_policy(client: Client) -> None:
    first = client.get(STYLE)
    body(first)
    again = client.get(STYLE, headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    assert "frame-ancestors 'none'" in again["Content-Security-Policy"]
    assert again["X-Content-Type-Options"] == "nosniff"


# --- pages ------------------------------------------------------------------------------------------------------------
PARTS = {"job": "h-1", "queue": "snacks", "slug": "permanent"}
OWN = ("/sign-in/", "/account/preferences/", "/account/password/", "/no/such/page")


def addresses(plan: int, seq: int) -> list[str]:
    """Every route of the urlconf with arguments that exist here."""
    found = []
    for route in routes():
        parts = {**PARTS, "small": str(plan if route.startswith("redrives") else seq)}
        found.append("/" + re.sub(r"<(\w+):\w+>", lambda match, parts=parts: parts[match[1]], route))
    return [*found, *OWN]


@pytest.mark.parametrize("role", ["operator", "team_lead", "auditor", ""])
def test_no_page_holds_script_or_style_and_every_form_its_token(
    tom: Client, role: str, request: pytest.FixtureRequest
) -> None:
    client = Client()
    if role:
        client.force_login(request.getfixturevalue(role))
    plan, seq = story.Plan.objects.latest("pk").pk, AuditEvent.objects.latest("seq").seq
    broken, read = {}, 0
    for address in addresses(plan, seq):
        answer = client.get(address)
        text = body(answer)
        if "text/html" in answer.get("Content-Type", ""):
            read += answer.status_code == 200
            broken[address] = faults(text)
    assert {address: found for address, found in broken.items() if found} == {}
    assert read >= (10 if role else 1)


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<p style='color:red'>", "inline style in <p>"),
        ("<style>p {}</style>", "inline style in <style>"),
        ("<script>1</script>", "inline script"),
        ("<a onclick='x'>", "onclick in <a>"),
        ("<a href=' javascript:x'>", "script as the address in <a href>"),
        ("<script src='https://cdn.example/x.js'></script>", "<script> from another host"),
        ("<form method=post action=/x></form>", "a form without a token, to '/x'"),
        ("<form><input name=csrfmiddlewaretoken value=" + "t" * 64 + "></form>", "a token in an address, to ''"),
        ("<div hx-post=/x></div>", "<div hx-post> outside of every form sends no token"),
        ("<form></form><div hx-post=/x></div>", "<div hx-post> outside of every form sends no token"),
    ],
)
def test_a_planted_fault_is_found(html: str, fault: str) -> None:
    assert faults(html) == [fault]


# --- https --------------------------------------------------------------------------------------------------------------
SWITCHED = (
    *("SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS", "SECURE_HSTS_PRELOAD"),
    *("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME"),
    *("LANGUAGE_COOKIE_NAME", "LANGUAGE_COOKIE_SECURE"),
)


@pytest.fixture
def https(settings: Any, tmp_path: Path) -> None:
    """The settings as the switch SNACKOPS_HTTPS makes them in a process of its own."""
    code = f"import json; from snackops import settings as s; print(json.dumps([getattr(s, n) for n in {SWITCHED!r}]))"
    environ = {**os.environ, "SNACKOPS_HTTPS": "1", "SNACKOPS_DATA": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=product.BASE_DIR, env=environ, capture_output=True, text=True, check=True
    )
    for name, value in zip(SWITCHED, json.loads(told.stdout), strict=True):
        setattr(settings, name, value)


def test_with_https_plain_http_is_sent_on_and_browsers_remember_it(https: None) -> None:
    plain = Client().get(SIGN_IN)
    assert (plain.status_code, plain["Location"]) == (301, f"https://testserver{SIGN_IN}")
    for address in (SIGN_IN, "/no/such/page", STYLE, reverse("livez")):
        answer = Client().get(address, secure=True)
        assert answer["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
        body(answer)


def test_with_https_every_cookie_is_bound_to_this_host(https: None, operator: User) -> None:
    client = Client()
    client.get(SIGN_IN, secure=True)
    client.post(SIGN_IN, {"username": "oda", "password": PASSWORD}, secure=True)
    client.post(reverse("language"), {"language": "ja", "next": OVERVIEW}, secure=True)
    assert set(client.cookies) == {"__Host-sessionid", "__Host-csrftoken", "__Host-language"}
    for cookie in client.cookies.values():
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", ""), cookie.key
        assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax"), cookie.key
    assert client.get(OVERVIEW, secure=True).status_code == 200


def test_without_https_cookies_are_still_closed_to_scripts_and_other_sites(client: Client, operator: User) -> None:
    client.get(SIGN_IN)
    client.post(SIGN_IN, {"username": "oda", "password": PASSWORD})
    client.post(reverse("language"), {"language": "ja", "next": OVERVIEW})
    assert len(client.cookies) == 3
    for cookie in client.cookies.values():
        assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax"), cookie.key
