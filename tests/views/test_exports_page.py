"""The file of the list: what the filter shows, by a form, recorded, and refused with a sentence."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import AuditEvent
from tests.conftest import Clock
from tests.reads.stories import declare, die

pytestmark = pytest.mark.django_db
ADDRESS = "/quarantine/export/"


def test_the_form_of_the_list_carries_its_filter(clock: Clock, console: Client) -> None:
    declare("drinks")
    die(clock, ["s1", "s2"])
    die(clock, ["d1"], at="drinks")
    page = console.get("/quarantine/", {"queue": "drinks"}).text
    assert f'action="{ADDRESS}"' in page
    assert '<input type="hidden" name="queue" value="drinks">' in page
    answer = console.post(ADDRESS, {"queue": "drinks", "format": "jsonl"})
    head, *rows = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined,arg-type]
    assert head["rows"] == 1
    assert head["as_of_ms"] == clock.now + 1
    assert [row["id"] for row in rows] == ["d1"]
    event = AuditEvent.objects.get(action="export")
    assert (event.name, event.target) == ("oda", "export:quarantine")


def test_every_role_gets_the_file_and_somebody_without_one_does_not(
    clock: Clock, console: Client, auditor_console: Client
) -> None:
    die(clock, ["s1"])
    for client in (console, auditor_console):
        answer = client.post(ADDRESS, {"format": "csv"})
        assert answer["Content-Disposition"].startswith("attachment; filename=")
        assert answer["Cache-Control"] == "no-store"
        assert b"s1" in b"".join(answer.streaming_content)  # type: ignore[attr-defined,arg-type]
    nobody = Client()
    nobody.force_login(User.objects.create_user("nobody"))
    assert nobody.post(ADDRESS, {"format": "csv"}).status_code == 403


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "The reason is permanent, exhausted or deadline, not"),
        ("ja", "停止の理由は permanent、exhausted、deadline のいずれかです"),
        ("zh-hans", "停止原因只能是 permanent、exhausted 或 deadline"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused_in_the_persons_language(
    console: Client, language: str, sentence: str
) -> None:
    answer = console.post(ADDRESS, {"reason": "x"}, headers={"Accept-Language": language})
    assert answer.status_code == 400
    assert sentence in answer.text
    assert not AuditEvent.objects.filter(action="export").exists()


def test_filters_are_kept_under_a_name_for_oneself_or_for_all(
    clock: Clock, console: Client, auditor_console: Client
) -> None:
    address = reverse("saved_filter_new")
    kept = {"name": 'Night <b>"x"', "reason": "exhausted", "looked": "no"}
    assert console.post(address, kept)["Location"] == "/quarantine/?reason=exhausted&looked=no"
    assert auditor_console.post(address, {"name": "own", "reason": "deadline"}).status_code == 302
    mine = console.get("/quarantine/").text
    assert "Night &lt;b&gt;&quot;x&quot;" in mine
    assert 'href="/quarantine/?reason=exhausted&amp;looked=no"' in mine
    assert ">own<" not in mine
    console.post(address, {"name": "shift", "reason": "permanent", "for_all": "yes"})
    theirs = auditor_console.get("/quarantine/").text
    assert ">shift<" in theirs
    assert "for all, by oda" in theirs
    assert auditor_console.post(address, {"name": "x", "for_all": "yes"}).status_code == 403


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\x00b", "a\nb"])
def test_a_name_that_cannot_be_kept_is_refused_with_a_sentence(console: Client, name: str) -> None:
    answer = console.post(reverse("saved_filter_new"), {"name": name}, follow=True)
    assert answer.status_code == 200
    assert 'data-tone="bad"' in answer.text
    assert "Kept filters (" not in answer.text
