"""What every answer has around it: nobody keeps it, it is small, and it speaks the person's language in the person's zone."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import Preference
from queue_app.views import account, errors
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
OWN, SIGN_IN = reverse("preferences"), reverse("sign_in")
STYLE = "/static/snackops.css"
FIRST_LOAD_LIMIT = 80_000  # bytes on the wire


@pytest.fixture
def oda(client: Client, operator: User, as_user: Callable[[Client, User], Client]) -> Client:
    return as_user(client, operator)


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


@pytest.mark.parametrize(
    ("path", "status"),
    [(SIGN_IN, 200), (OWN, 302), ("/no/such/page", 404), (reverse("sign_out"), 302), (reverse("livez"), 200)],
)
def test_nobody_keeps_an_answer_for_signed_out_people(client: Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Cache-Control"]) == (status, "no-store")


@pytest.mark.parametrize(
    ("path", "status"), [(OWN, 200), ("/no/such/page", 404), (reverse("sign_out"), 405), (SIGN_IN, 302)]
)
def test_nobody_keeps_an_answer_for_signed_in_people(oda: Client, path: str, status: int) -> None:
    answer = oda.get(path)
    assert (answer.status_code, answer["Cache-Control"]) == (status, "no-store")


@pytest.mark.parametrize("path", [SIGN_IN, OWN, "/no/such/page", STYLE, reverse("livez")])
def test_the_strict_policy_stands_on_every_answer(oda: Client, path: str) -> None:
    answer = oda.get(path)
    assert "script-src 'self';" in answer["Content-Security-Policy"]
    assert "style-src 'self';" in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    body(answer)
    answer.close()


def test_a_forged_host_gets_a_plain_400_that_asks_the_database_nothing(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(SIGN_IN, headers={"Host": "evil.example"})
    assert (answer.status_code, answer["Cache-Control"], len(queries)) == (400, "no-store", 0)
    assert b"This request cannot be read" in answer.content


# --- compression ----------------------------------------------------------------------------------------------------
def test_pages_and_static_files_travel_compressed(client: Client) -> None:
    for path in (SIGN_IN, STYLE):
        packed = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert packed["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in packed["Vary"]
        assert len(gzip.decompress(body(packed))) > 1000
        packed.close()


def test_a_file_that_did_not_change_is_not_sent_again_and_an_empty_answer_stays_empty(client: Client) -> None:
    wants = {"Accept-Encoding": "gzip"}
    first = client.get(STYLE, headers=wants)
    assert first["ETag"].startswith('W/"')
    first.close()
    again = client.get(STYLE, headers={**wants, "If-None-Match": first["ETag"]})
    assert (again.status_code, body(again)) == (304, b"")
    head = client.head(STYLE, headers=wants)
    assert (head.status_code, body(head), "Content-Encoding" in head) == (200, b"", False)


def test_the_first_load_of_the_largest_account_page_is_small(oda: Client) -> None:
    total = 0
    for path in (OWN, STYLE, "/static/snackops.js", "/static/icon.svg", "/static/django_htmx/htmx-2.min.js"):
        answer = oda.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        total += len(body(answer))
        answer.close()
    assert total < FIRST_LOAD_LIMIT / 2  # the other half belongs to the pages' own content


def test_the_script_of_our_own_is_small() -> None:
    assert (settings.BASE_DIR / "static" / "snackops.js").stat().st_size < 12_000


# --- signed-out fragments --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("current", "goal"),
    [
        ("http://testserver/account/preferences/?a=1", f"{SIGN_IN}?next=/account/preferences/%3Fa%3D1"),
        ("https://evil.example/x", SIGN_IN),
        ("", SIGN_IN),
    ],
)
def test_a_fragment_for_a_signed_out_person_is_a_401_that_leads_to_the_sign_in_page(
    client: Client, current: str, goal: str
) -> None:
    answer = client.get(OWN, headers={"HX-Request": "true", "HX-Current-URL": current})
    assert (answer.status_code, answer.content, answer["HX-Redirect"]) == (401, b"", goal)


# --- language and zone ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wish", "lang"),
    [
        ("ja", "ja"),
        ("zh-CN", "zh-Hans"),
        ("zh-Hans", "zh-Hans"),
        ("de", "en"),
        ("ar", "en"),
        ("tr", "en"),
        ("de-x-zzzz,*;q=9", "en"),
        ("\xff", "en"),
        ("ja;q=0.1,zh-hans;q=0.9", "zh-Hans"),
        ("", "en"),
    ],
)
def test_the_browsers_language_is_taken_when_we_have_it(client: Client, wish: str, lang: str) -> None:
    page = client.get(SIGN_IN, headers={"Accept-Language": wish})
    assert f'<html lang="{lang}"' in page.content.decode()


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Asia/Tokyo", "Asia/Tokyo (JST)"),
        ("America/Sao_Paulo", "America/Sao_Paulo (UTC-03)"),
        ("UTC", "Times are in UTC<"),
        ("", "Times are in UTC<"),
        ("Mars/Olympus", "Times are in UTC<"),
        ("../../etc/passwd", "Times are in UTC<"),
    ],
)
def test_times_are_in_the_persons_zone_and_the_page_names_it(
    oda: Client, operator: User, zone: str, shown: str
) -> None:
    Preference.objects.create(user=operator, time_zone=zone, language="xx")
    assert shown in oda.get(OWN).content.decode()


def test_one_persons_choice_does_not_leak_into_the_next_request(oda: Client, operator: User) -> None:
    Preference.objects.create(user=operator, time_zone="Asia/Tokyo", language="ja", theme="dark")
    assert b'lang="ja" data-theme="dark"' in oda.get(OWN).content
    assert b'lang="en" data-theme="auto"' in Client().get(SIGN_IN).content


def test_a_page_asks_the_database_a_fixed_number_of_times(oda: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        oda.get(OWN)
    assert len(queries) == 4  # session, person, preference, roles in the menu


# --- navigation --------------------------------------------------------------------------------------------------------
def test_the_navigation_leads_only_to_pages_that_exist(oda: Client) -> None:
    page = oda.get(OWN)
    for entry in page.context["sections"]:
        assert oda.get(entry["url"]).status_code == 200


def test_the_persons_menu_names_the_role_and_signs_out_by_post(oda: Client) -> None:
    page = oda.get(OWN).content.decode()
    assert "operator" in page
    assert f'<form method="post" action="{reverse("sign_out")}">' in page


# --- templates ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad", [" style=", "<style", " onclick=", " hx-on", '"js:', " onload=", "http://", "https://"])
def test_no_template_breaks_the_policy_or_names_another_host(bad: str) -> None:
    offenders = [str(path) for path in Path(settings.BASE_DIR, "templates").rglob("*.html") if bad in path.read_text()]
    assert offenders == []


# --- refusals -------------------------------------------------------------------------------------------------------------
def test_a_form_without_its_token_gets_a_friendly_403_and_nothing_happens(operator: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    for name in ("sign_out", "password_change", "preferences", "language", "theme"):
        answer = strict.post(reverse(name), {"theme": "dark", "language": "ja"})
        assert answer.status_code == 403
        assert b"Nothing was changed" in answer.content
    assert not Preference.objects.exists()
    assert strict.get(OWN).status_code == 200


def test_a_token_from_before_another_sign_in_gets_the_friendly_403() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.get(SIGN_IN)
    answer = strict.post(SIGN_IN, {"username": "oda", "password": PASSWORD, "csrfmiddlewaretoken": "x" * 64})
    assert answer.status_code == 403
    assert b"what you typed is still there" in answer.content


@pytest.mark.parametrize("sentence", ["Only a team lead can approve a redrive.", ""])
def test_a_missing_right_is_said_in_a_sentence(operator: User, sentence: str) -> None:
    request = _request_of(operator)
    answer = errors.permission_denied(request, PermissionDenied(sentence) if sentence else PermissionDenied())
    assert answer.status_code == 403
    assert (sentence or "Nothing was changed.") in answer.content.decode()


def test_a_hostile_sentence_stays_text(operator: User) -> None:
    answer = errors.permission_denied(_request_of(operator), PermissionDenied("<script>alert(1)</script>"))
    assert b"<script>alert" not in answer.content


def test_the_500_page_asks_the_database_nothing_and_tells_nothing_of_the_inside(
    oda: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_kwargs: object) -> HttpResponse:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(account, "render", broken)
    oda.raise_request_exception = False
    answer = oda.get(OWN)
    assert (answer.status_code, answer["Cache-Control"]) == (500, "no-store")
    assert b"This page could not be made" in answer.content
    assert b"secret" not in answer.content
    with CaptureQueriesContext(connection) as queries:
        errors.server_error(HttpRequest())
    assert len(queries) == 0


def _request_of(user: User) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    return request
