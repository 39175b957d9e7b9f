"""Signing in and out: what a guesser learns, how long somebody waits, where a signed-in person lands."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
SIGN_IN, HOME = reverse("sign_in"), reverse("preferences")


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all passwords hashed since the list was cleared."""
    seen: list[int] = []
    encode = MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        seen.append(len(password))
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    return seen


def try_in(client: Client, name: str, password: str, **more: str) -> object:
    return client.post(SIGN_IN, {"username": name, "password": password, **more})


def test_the_session_gets_a_new_id_at_sign_in_and_the_old_id_opens_nothing(client: Client, operator: User) -> None:
    session = client.session
    session["fixed"] = "by a stranger"
    session.save()
    before = client.cookies["sessionid"].value
    assert try_in(client, "oda", PASSWORD).status_code == 302
    assert client.cookies["sessionid"].value != before
    stranger = Client()
    stranger.cookies["sessionid"] = before
    assert stranger.get(HOME).status_code == 302


@pytest.mark.parametrize("name", ["nobody", "oda", "gone"])
def test_unknown_wrong_and_deactivated_get_one_answer_for_the_work_of_one_hash(
    client: Client, operator: User, hashes: list[int], name: str
) -> None:
    User.objects.create_user("gone", password=PASSWORD, is_active=False)
    hashes.clear()
    answer = try_in(client, name, PASSWORD if name == "gone" else "wrong")
    assert len(hashes) == 1
    assert answer.status_code == 200
    assert answer.context["form"].non_field_errors() == [
        "This name and password do not match. Upper and lower case matter."
    ]


@pytest.mark.parametrize(
    ("name", "password"),
    [("oda", "x" * 4097), ("oda", "x" * 1_000_000), ("n" * 151, PASSWORD), ("n" * 4096, PASSWORD), ("o\0da", PASSWORD)],
)
def test_what_is_too_long_or_holds_nul_is_refused_before_any_hash(
    client: Client, operator: User, hashes: list[int], name: str, password: str
) -> None:
    hashes.clear()
    answer = try_in(client, name, password)
    assert (answer.status_code, hashes) == (200, [])
    assert answer.context["form"].errors


def test_a_password_of_ten_megabytes_is_refused_unread(client: Client, operator: User, hashes: list[int]) -> None:
    hashes.clear()
    assert try_in(client, "oda", "x" * 10_000_000).status_code == 400
    assert hashes == []


@pytest.mark.parametrize("name", ["oda", "nobody"])
def test_after_five_failures_even_the_right_password_waits_and_the_page_says_until_when(
    client: Client, operator: User, name: str
) -> None:
    for _try in range(5):
        try_in(client, name, "wrong")
    answer = try_in(client, name, PASSWORD)
    assert answer.status_code == 429
    assert 800 < int(answer["Retry-After"]) <= 900
    assert b"Try again in 15 min" in answer.content
    assert "_auth_user_id" not in client.session


def test_the_wait_bars_neither_other_addresses_nor_other_names(client: Client, operator: User, auditor: User) -> None:
    for _try in range(6):
        try_in(client, "oda", "wrong")
    assert Client(REMOTE_ADDR="10.0.0.9").post(SIGN_IN, {"username": "oda", "password": PASSWORD}).status_code == 302
    assert try_in(Client(), "ada", PASSWORD).status_code == 302


def test_trying_early_does_not_lengthen_the_wait_and_after_it_sign_in_works(client: Client, operator: User) -> None:
    for _try in range(5):
        try_in(client, "oda", "wrong")
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14))
    assert 0 < int(try_in(client, "oda", PASSWORD)["Retry-After"]) <= 60
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15, seconds=1))
    assert try_in(client, "oda", PASSWORD).status_code == 302


def test_a_forged_forwarded_address_does_not_escape_the_wait(client: Client, operator: User) -> None:
    for number in range(5):
        client.post(SIGN_IN, {"username": "oda", "password": "wrong"}, headers={"X-Forwarded-For": f"10.0.0.{number}"})
    answer = client.post(SIGN_IN, {"username": "oda", "password": PASSWORD}, headers={"X-Forwarded-For": "10.9.9.9"})
    assert answer.status_code == 429


@pytest.mark.parametrize(
    "goal",
    [
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "///evil.example",
        "\t//evil.example",
        "javascript:alert(1)",
    ],
)
def test_next_never_leads_out_of_the_house(client: Client, operator: User, goal: str) -> None:
    answer = try_in(client, "oda", PASSWORD, next=goal)
    assert answer.status_code == 302
    assert answer["Location"] == reverse("overview")


def test_next_leads_to_the_page_that_was_asked_for(client: Client, operator: User) -> None:
    asked = client.get(f"{HOME}?a=1")
    assert asked["Location"] == f"{SIGN_IN}?next={HOME}%3Fa%3D1"
    assert client.get(asked["Location"]).context["next"] == f"{HOME}?a=1"
    assert try_in(client, "oda", PASSWORD, next=f"{HOME}?a=1")["Location"] == f"{HOME}?a=1"


def test_signing_out_ends_the_session_on_the_server(
    client: Client, operator: User, as_user: Callable[[Client, User], Client]
) -> None:
    as_user(client, operator)
    kept = client.cookies["sessionid"].value
    assert client.get(HOME).status_code == 200
    assert client.post(reverse("sign_out"))["Location"] == SIGN_IN
    assert not Session.objects.filter(session_key=kept).exists()
    client.cookies["sessionid"] = kept
    assert client.get(HOME).status_code == 302


def test_a_deactivated_person_is_out_at_the_next_request(
    client: Client, operator: User, as_user: Callable[[Client, User], Client]
) -> None:
    as_user(client, operator)
    assert client.get(HOME).status_code == 200
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert client.get(HOME).status_code == 302


def test_the_cookie_of_one_person_does_not_survive_the_sign_in_of_another(
    client: Client, operator: User, auditor: User
) -> None:
    try_in(client, "oda", PASSWORD)
    first = client.cookies["sessionid"].value
    client.post(reverse("sign_out"))
    try_in(client, "ada", PASSWORD)
    assert client.cookies["sessionid"].value != first
    assert client.session["_auth_user_id"] == str(auditor.pk)


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options", "trace"])
@pytest.mark.parametrize("name", ["sign_in", "sign_out", "password_change", "preferences", "language", "theme"])
def test_methods_that_mean_nothing_here_are_refused(
    client: Client, operator: User, as_user: Callable[[Client, User], Client], name: str, method: str
) -> None:
    as_user(client, operator)
    assert getattr(client, method)(reverse(name)).status_code == 405


@pytest.mark.parametrize("name", ["sign_out", "language", "theme"])
def test_reading_never_changes(
    client: Client, operator: User, as_user: Callable[[Client, User], Client], name: str
) -> None:
    as_user(client, operator)
    assert client.get(reverse(name)).status_code == 405
    assert client.head(reverse(name)).status_code == 405
    assert client.get(HOME).status_code == 200
