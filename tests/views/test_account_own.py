"""A person's own affairs: password, language, zone, colours, keys."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import Preference
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
NEW = "another fine staple"
CHANGE, OWN = reverse("password_change"), reverse("preferences")
GOOD = {"language": "ja", "time_zone": "Asia/Tokyo", "theme": "dark", "single_keys": "on"}


@pytest.fixture
def oda(client: Client, operator: User, as_user: Callable[[Client, User], Client]) -> Client:
    return as_user(client, operator)


def new_password(client: Client, old: str, one: str = NEW, two: str = NEW) -> object:
    return client.post(CHANGE, {"old_password": old, "new_password1": one, "new_password2": two})


def test_a_new_password_ends_all_other_sessions_and_renews_this_one(
    oda: Client, operator: User, as_user: Callable[[Client, User], Client]
) -> None:
    elsewhere = as_user(Client(), operator)
    before = oda.cookies["sessionid"].value
    assert new_password(oda, PASSWORD)["Location"] == OWN
    assert oda.cookies["sessionid"].value != before
    assert oda.get(OWN).status_code == 200
    assert elsewhere.get(OWN).status_code == 302
    assert User.objects.get(pk=operator.pk).check_password(NEW)


@pytest.mark.parametrize(
    ("old", "one", "two"),
    [
        ("wrong", NEW, NEW),
        (PASSWORD, NEW, "something else"),
        (PASSWORD, "short", "short"),
        (PASSWORD, "x" * 4097, "x" * 4097),
        ("x" * 4097, NEW, NEW),
        ("", NEW, NEW),
    ],
)
def test_a_password_stays_when_old_or_new_is_not_good(
    oda: Client, operator: User, old: str, one: str, two: str
) -> None:
    answer = new_password(oda, old, one, two)
    assert answer.context["form"].errors
    assert User.objects.get(pk=operator.pk).check_password(PASSWORD)


def test_the_old_password_cannot_be_guessed_in_an_open_session(oda: Client, operator: User) -> None:
    for _try in range(5):
        new_password(oda, "wrong")
    assert new_password(oda, PASSWORD).status_code == 429
    assert User.objects.get(pk=operator.pk).check_password(PASSWORD)


def test_preferences_are_kept_and_act_at_once(oda: Client, operator: User) -> None:
    assert oda.post(OWN, GOOD)["Location"] == OWN
    page = oda.get(OWN)
    text = page.content.decode()
    assert '<html lang="ja" data-theme="dark">' in text
    assert 'data-single-keys="on"' in text
    assert "Asia/Tokyo（JST）" in text
    assert "設定を保存しました。" in text
    assert page["Content-Language"] == "ja"
    assert oda.post(OWN, {"theme": "light"}).status_code == 302  # an empty box of a form is a choice, too
    row = Preference.objects.get(user=operator)
    assert (row.language, row.time_zone, row.theme, row.single_keys) == ("", "", "light", False)
    assert 'data-single-keys="off"' in oda.get(OWN).content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("language", "de"),
        ("language", "../ja"),
        ("time_zone", "Mars/Olympus"),
        ("time_zone", "../../etc/passwd"),
        ("time_zone", "Asia/Tokyo\0"),
        ("theme", ""),
        ("theme", "pink"),
        ("theme", "x" * 10_000),
    ],
)
def test_a_preference_that_is_not_offered_is_refused_with_the_rest_kept(oda: Client, field: str, value: str) -> None:
    answer = oda.post(OWN, {**GOOD, field: value})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert not Preference.objects.exists()


def test_somebody_else_cannot_be_named_in_a_form(oda: Client, operator: User, auditor: User) -> None:
    oda.post(OWN, {**GOOD, "user": str(auditor.pk), "user_id": str(auditor.pk)})
    assert list(Preference.objects.values_list("user_id", flat=True)) == [operator.pk]


def test_the_language_switch_keeps_the_other_preferences(oda: Client, operator: User) -> None:
    oda.post(OWN, GOOD)
    answer = oda.post(reverse("language"), {"language": "zh-hans", "next": OWN})
    assert answer["Location"] == OWN
    assert '<html lang="zh-Hans" data-theme="dark">' in oda.get(OWN).content.decode()


def test_a_signed_out_person_can_switch_the_language_of_the_sign_in_page(client: Client) -> None:
    client.post(reverse("language"), {"language": "ja", "next": reverse("sign_in")})
    page = client.get(reverse("sign_in")).content.decode()
    assert '<html lang="ja"' in page
    assert "サインイン" in page


def test_an_unknown_language_changes_nothing(oda: Client) -> None:
    oda.post(reverse("language"), {"language": "xx", "next": OWN})
    assert '<html lang="en"' in oda.get(OWN).content.decode()
    assert not Preference.objects.exists()


@pytest.mark.parametrize(
    ("next_", "goal"), [(OWN, OWN), ("//evil.example", reverse("overview")), ("", reverse("overview"))]
)
def test_the_colour_switch_comes_back_to_a_page_of_ours(oda: Client, next_: str, goal: str) -> None:
    answer = oda.post(reverse("theme"), {"theme": "light", "next": next_})
    assert (answer.status_code, answer["Location"]) == (302, goal)
    assert 'data-theme="light"' in oda.get(OWN).content.decode()


def test_an_unknown_colour_is_refused(oda: Client) -> None:
    assert oda.post(reverse("theme"), {"theme": "pink"}).status_code == 400
    assert not Preference.objects.exists()


def test_errors_and_hints_are_tied_to_their_fields(oda: Client) -> None:
    page = oda.post(OWN, {**GOOD, "time_zone": "Mars/Olympus"}).content.decode()
    assert 'aria-describedby="id_time_zone_helptext id_time_zone_error"' in page
    assert 'id="id_time_zone_helptext"' in page
    assert 'aria-invalid="true"' in page
