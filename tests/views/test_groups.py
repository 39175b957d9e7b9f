"""Causes: all of them with their story, and the page of one from which a look is recorded in place."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.policy.filters import Filter
from queue_app.services import looks
from tests.conftest import Clock
from tests.reads.stories import declare, deliver, die, redrive
from tests.views.seen import rows_of, text_of

pytestmark = pytest.mark.django_db
REFUSED = ("snacks", "permanent", "http_422")


def page_of(client: Client, *group: str) -> str:
    """The words of a cause's page."""
    answer = client.get(reverse("group", args=group))
    assert answer.status_code == 200
    return text_of(answer.text)


def test_all_causes_stand_with_share_and_who_looked(clock: Clock, console: Client, operator: User) -> None:
    declare("drinks")
    die(clock, ["a1", "a2", "a3"])
    die(clock, ["b1"], "", at="drinks")
    looks.record(operator, "group", "INC-1", "fixed", group=REFUSED)
    clock.advance(10)
    die(clock, ["a4"])
    said = text_of(console.get(reverse("group_list")).text)
    assert "2 causes, 5 in quarantine · 2 need a look" in said
    assert "4 / 5 (80%)" in said
    assert "oda · INC-1 · fixed" in said
    assert "1 died since" in said
    assert "no code refused by receiver · drinks" in said
    assert said.index("4 / 5") < said.index("1 / 5")


def test_a_cause_tells_its_story(clock: Clock, console: Client, operator: User, team_lead: User) -> None:
    die(clock, ["a1", "a2", "a3"])
    said = page_of(console, *REFUSED)
    assert "In quarantine 3 exact" in said
    assert "Nobody has looked 3 you would be the first" in said
    looks.record(operator, "group", "INC-1", "cause_found", group=REFUSED, comment="half\nwidth")
    redrive("a1", team_lead)
    deliver("a1")
    said = page_of(console, *REFUSED)
    assert "Died since the last look 0 oda · INC-1" in said
    assert "cause found · INC-1" in said
    assert "1 delivered, 0 back for the same cause, 0 for another, 0 not ended" in said


def test_a_look_at_some_orders_of_a_cause_is_no_look_at_all_of_it_and_is_not_hidden(
    clock: Clock, console: Client, operator: User
) -> None:
    die(clock, ["a1", "a2", "b1"])
    looks.record(operator, "job", "INC-7", "looking", job_id="a1")
    clock.advance(10)
    said = page_of(console, *REFUSED)
    assert "Looked at only in part 3 oda · INC-7" in said
    assert "Nobody has looked at this cause yet." not in said
    assert "looked at only in part" in text_of(console.get("/").text)
    assert "looked at in part: oda · INC-7" in text_of(console.get(reverse("group_list")).text)
    looks.record(operator, "filter", "INC-8", "looking", filter=Filter(id_prefix="b"), as_of_ms=clock.now)
    clock.advance(10)
    assert "Looked at only in part 3 oda · INC-8" in page_of(console, *REFUSED)
    looks.record(operator, "group", "INC-9", "fixed", group=REFUSED)
    clock.advance(10)
    said = page_of(console, *REFUSED)
    assert "Died since the last look 0 oda · INC-9" in said
    assert "in part" not in text_of(console.get(reverse("group_list")).text)


def test_a_cause_without_a_code_and_one_that_is_over_have_their_pages(
    clock: Clock, console: Client, team_lead: User
) -> None:
    die(clock, ["a1"], "")
    assert "No code was given" in page_of(console, "snacks", "permanent", "-")
    redrive("a1", team_lead)
    deliver("a1")
    assert "No order is in quarantine for this cause now." in page_of(console, "snacks", "permanent", "-")


@pytest.mark.parametrize(
    "group", [("snacks", "permanent", "http_599"), ("nowhere", "permanent", "http_422"), ("snacks", "x", "-")]
)
def test_a_cause_that_never_was_is_not_found(clock: Clock, console: Client, group: tuple[str, str, str]) -> None:
    die(clock, ["a1"])
    assert console.get(reverse("group", args=group)).status_code == 404


def test_a_missing_role_reads_a_sentence_in_place_of_each_button(
    clock: Clock, console: Client, auditor_console: Client
) -> None:
    die(clock, ["a1"])
    assert 'name="note"' in console.get(reverse("group", args=REFUSED)).text
    said = page_of(auditor_console, *REFUSED)
    assert "Only operators and team leads ask for redrives." in said
    assert "Only operators and team leads record investigations." in said
    assert 'name="note"' not in auditor_console.get(reverse("group", args=REFUSED)).text


def test_two_people_at_one_cause_see_each_other(clock: Clock, console: Client, operator: User, team_lead: User) -> None:
    die(clock, ["a1"])
    lead = Client()
    lead.force_login(team_lead)
    fields = {"queue": "snacks", "reason": "permanent", "code": "http_422"}
    assert "form open" not in console.post(reverse("investigation_presence"), fields).text
    assert "oda has this form open too." in lead.post(reverse("investigation_presence"), fields).text
    assert "tom has this form open too." in console.post(reverse("investigation_presence"), fields).text
    assert "tom has this form open too." in page_of(console, *REFUSED)
    assert "looking now: oda, tom" in text_of(console.get(reverse("group_list")).text)
    clock.advance(61_000)
    assert "form open" not in page_of(console, *REFUSED)


def test_the_latest_orders_of_the_cause_are_shown(clock: Clock, console: Client) -> None:
    die(clock, [f"a{n}" for n in range(12)])
    die(clock, ["b1"], "http_410")
    assert rows_of(console.get(reverse("group", args=REFUSED)).text) == [f"a{n}" for n in range(11, 3, -1)]
