"""Recording what was found, on an order, a cause or a filter; and all that was recorded."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import Investigation
from queue_app.services import looks
from tests.conftest import Clock
from tests.reads.stories import die, redrive
from tests.views.seen import text_of

pytestmark = pytest.mark.django_db
NEW = "/investigations/new/"
LIST = "/investigations/"


def form(clock: Clock, **fields: str) -> dict[str, str]:
    """The form as it is sent."""
    return {"note": "INC-1", "finding": "cause_found", "as_of": str(clock.now + 1), "comment": ""} | fields


@pytest.mark.parametrize(
    ("scope", "kind", "n", "back"),
    [
        ({"job": "a1"}, "job", 1, "/orders/a1/"),
        (
            {"queue": "snacks", "reason": "permanent", "code": "http_422"},
            "group",
            3,
            "/causes/snacks/permanent/http_422/",
        ),
        ({"queue": "snacks", "looked": "no"}, "filter", 4, "/quarantine/?queue=snacks&looked=no"),
        ({}, "filter", 4, "/quarantine/?"),
    ],
)
def test_each_scope_is_recorded_and_leads_back(
    clock: Clock, console: Client, scope: dict[str, str], kind: str, n: int, back: str
) -> None:
    die(clock, ["a1", "a2", "a3"])
    die(clock, ["b1"], "http_410")
    answer = console.post(NEW, form(clock, **scope))
    assert answer["Location"] == back
    look = Investigation.objects.get()
    assert (look.scope, look.count, look.note, look.finding) == (kind, n, "INC-1", "cause_found")
    word = "order" if n == 1 else "orders"
    assert f"Recorded INC-1: it counts for {n} {word}." in console.get(back).text


def test_what_died_after_the_page_was_drawn_is_not_covered(clock: Clock, console: Client) -> None:
    die(clock, ["a1"])
    sent = form(clock, queue="snacks", reason="permanent", code="http_422")
    clock.advance(10)
    die(clock, ["a2"])
    console.post(NEW, sent)
    assert Investigation.objects.get().count == 1
    assert "1 died since" in text_of(console.get("/causes/").text)


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        ("", "This field is required."),
        ("ＩＮＣ－２０４１", "INC-2041"),
        ("ok INFO forged", "note"),
        ("x" * 65, "note"),
        ("аpproved", "note"),
        ("=1+1", "note"),
        ("<b>", "note"),
    ],
)
def test_a_note_that_cannot_be_kept_is_refused_and_the_input_stays(
    clock: Clock, console: Client, note: str, sentence: str
) -> None:
    die(clock, ["a1"])
    answer = console.post(NEW, form(clock, job="a1", note=note, comment="見た <b>"))
    assert answer.status_code == 422
    assert sentence in answer.text.lower() or sentence in answer.text
    assert "見た &lt;b&gt;" in answer.text
    assert not Investigation.objects.exists()


def test_a_role_that_may_not_record_reads_a_sentence_and_is_refused(clock: Clock, auditor_console: Client) -> None:
    die(clock, ["a1"])
    assert "Only operators and team leads record investigations." in auditor_console.get(NEW, {"job": "a1"}).text
    answer = auditor_console.post(NEW, form(clock, job="a1"))
    assert answer.status_code == 403
    assert "Only operators and team leads may do this." in answer.text
    assert not Investigation.objects.exists()


def test_what_was_recorded_stays_through_a_redrive(clock: Clock, console: Client, team_lead: User) -> None:
    die(clock, ["a1"])
    console.post(NEW, form(clock, job="a1", comment="電源"))
    redrive("a1", team_lead)
    for address in (LIST, "/orders/a1/"):
        assert "電源" in console.get(address).text


def test_pages_of_the_list_meet_each_look_once(clock: Clock, console: Client, operator: User) -> None:
    die(clock, ["a1"])
    for n in range(120):
        looks.record(operator, "job", f"INC-{n}", "looking", job_id="a1")
    met, query = [], ""
    while True:
        page = console.get(LIST + query).text
        met += [part.split("<")[0] for part in page.split('<span class="id">')[1:] if part.startswith("INC-")]
        if 'rel="next"' not in page:
            break
        query = page.split('rel="next" href="')[1].split('"')[0]
    assert met == [f"INC-{n}" for n in range(119, -1, -1)]


@pytest.mark.parametrize("before", ["x", "-1", "1.0", "١", "9" * 19, "1%00"])
def test_a_page_that_does_not_exist_is_refused(console: Client, before: str) -> None:
    answer = console.get(f"{LIST}?before={before}")
    assert answer.status_code == 400
    assert "This page of the list does not exist." in answer.text


def test_nobody_has_recorded_anything_yet(console: Client) -> None:
    assert "Nobody has recorded anything yet" in console.get(reverse("investigation_list")).text
