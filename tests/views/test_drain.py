"""Letting one worker finish and end from the page of the workers."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import AuditEvent, Process
from queue_app.services import life_signs
from queue_app.services.life_signs import Work
from tests.conftest import Clock
from tests.views.pages import faults
from tests.views.seen import text_of

pytestmark = pytest.mark.django_db
PAGE, ADDRESS = "/workers/", "/workers/drain/"
SENTENCE = "Only team leads let a worker finish and end."


@pytest.fixture
def lead(team_lead: User, clock: Clock) -> Client:
    """The team lead's browser; three workers live and one ended."""
    for name in ("w1", "w2", "told", "ended"):
        life_signs.arrive(name, "worker", "snacks", Work("h1", 4))
    life_signs.arrive("r1", "redriver")
    Process.objects.filter(pk="told").update(draining=True)
    Process.objects.filter(pk="ended").update(stopped_at_ms=clock.now)
    client = Client()
    client.force_login(team_lead)
    return client


def offered(markup: str) -> list[str]:
    return re.findall(r'<option value="(\d+ [^"]+)"', markup)


def test_a_lead_chooses_one_that_lives_and_it_is_told_and_recorded(lead: Client, clock: Clock) -> None:
    markup = lead.get(PAGE).text
    assert faults(markup) == []
    assert offered(markup) == [f"{clock.now} w1", f"{clock.now} w2"]
    assert "selected" not in re.findall(r"<select.*?</select>", markup, re.DOTALL)[0].replace('value="" selected', "")
    answer = lead.post(ADDRESS, {"worker": f"{clock.now} w2", "note": "INC-7"})
    assert answer["Location"] == "/workers/"
    text = text_of(lead.get(PAGE).text)
    assert "w2 takes nothing new, finishes what it delivers, and ends." in text
    assert Process.objects.get(pk="w2").draining
    assert not Process.objects.get(pk="w1").draining
    event = AuditEvent.objects.get()
    assert (event.action, event.target, event.note, event.source) == ("drain_worker", "worker:w2", "INC-7", "console")
    record = text_of(lead.get(reverse("audit_list")).text)
    assert "tom let worker w2 finish and end" in record


def test_each_that_lives_leads_to_the_form_with_itself_chosen(lead: Client, clock: Clock) -> None:
    markup = lead.get(reverse("process_live")).text
    assert re.findall(r'href="/workers/\?worker=([^"]+)#drain"', markup) == ["w1", "w2"]
    assert "Let w1 finish and end" in markup
    chosen = lead.get(PAGE, {"worker": "w2"}).text
    assert f'<option value="{clock.now} w2" selected>' in chosen
    assert "selected>" in lead.get(PAGE, {"worker": "ended"}).text.partition(f'value="{clock.now} w1"')[0]


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_others_read_who_may(lead: Client, role: str, request: pytest.FixtureRequest, clock: Clock) -> None:
    client = Client()
    client.force_login(request.getfixturevalue(role))
    markup = client.get(PAGE).text
    assert SENTENCE in text_of(markup)
    assert SENTENCE not in text_of(lead.get(PAGE).text)
    assert ADDRESS not in markup
    assert "#drain" not in markup
    assert client.post(ADDRESS, {"worker": f"{clock.now} w1"}).status_code == 403
    assert AuditEvent.objects.get().action == "refused"
    assert not Process.objects.get(pk="w1").draining


def test_what_did_not_have_to_be_done_or_is_another_now_is_said(lead: Client, clock: Clock) -> None:
    for name, started, sentence in (
        ("told", clock.now, "Nothing had to be done: told was told so already."),
        ("ended", clock.now, "Nothing had to be done: ended has ended already."),
        ("w1", clock.now - 1, "w1 has begun anew since you looked: look again."),
    ):
        answer = lead.post(ADDRESS, {"worker": f"{started} {name}", "note": ""}, follow=True)
        assert sentence in text_of(answer.text)
    assert lead.post(ADDRESS, {"worker": f"{clock.now} w9"}).status_code == 404
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("worker", ["", " ", "w1", "x w1", "-1 w1", "1", "1 ", "٣ w1", "9" * 19 + " w1"])
def test_a_form_that_names_nobody_comes_back(lead: Client, clock: Clock, worker: str) -> None:
    answer = lead.post(ADDRESS, {"worker": worker, "note": "INC-7"})
    assert answer.status_code == 422
    assert faults(answer.text) == []
    assert "Choose the worker that is to end." in text_of(answer.text)
    assert 'value="INC-7"' in answer.text


def test_a_ticket_that_cannot_be_meant_comes_back_with_the_choice(lead: Client, clock: Clock) -> None:
    answer = lead.post(ADDRESS, {"worker": f"{clock.now} w2", "note": "ＩＮＣ－７"})
    assert answer.status_code == 422
    assert "INC-7" in text_of(answer.text)
    assert f'<option value="{clock.now} w2" selected>' in answer.text


def test_where_nobody_lives_there_is_nothing_to_choose(lead: Client, clock: Clock) -> None:
    Process.objects.update(stopped_at_ms=clock.now)
    markup = lead.get(PAGE).text
    assert "No worker is alive that could be told." in text_of(markup)
    assert ADDRESS not in markup


@pytest.mark.parametrize(
    ("language", "words"),
    [("ja", "ワーカーを区切りよく終了させる"), ("zh-hans", "让工作进程完成后结束")],
)
def test_it_is_said_in_the_persons_language(lead: Client, language: str, words: str) -> None:
    answer = lead.get(PAGE, headers={"Accept-Language": language})
    assert words in answer.text
