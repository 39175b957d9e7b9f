"""The page of one order: its steps with who and why, what a person can do or why not, and its contents by their own right."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from queue_app.models import AuditEvent
from queue_app.services import looks, queue
from tests.conftest import Clock
from tests.reads.stories import accept, deliver, die, redrive
from tests.redrive.story import ask
from tests.views.seen import rows_of, text_of

pytestmark = pytest.mark.django_db


def page_of(client: Client, job_id: str, query: str = "") -> str:
    """The words of an order's page."""
    answer = client.get(reverse("job", args=[job_id]) + query)
    assert answer.status_code == 200
    return text_of(answer.text)


def test_the_whole_life_is_told_with_who_and_why(
    clock: Clock, console: Client, operator: User, team_lead: User
) -> None:
    accept(["a1"])
    for _try in range(3):
        (lease,) = queue.claim("worker-1")
        queue.finish("a1", lease.token, "retry", code="http_503")
        clock.advance(10_000)
    looks.record(operator, "job", "INC-7", "cause_found", job_id="a1", comment="電源断 <b>")
    queue.redrive("a1", "INC-8", approved_by=team_lead, requested_by=operator)
    clock.advance(1)
    deliver("a1")
    said = page_of(console, "a1")
    for sentence in (
        "Accepted",
        "Try 1 failed http_503",
        "Try 3 failed http_503",
        "Put in quarantine : gave up after 3 tries http_503",
        "Looked at by oda cause found · ticket INC-7",
        "電源断 <b>",
        "Redriven with a new budget Asked for by oda, approved by tom, ticket INC-8",
        "Delivered at try 1",
        "Delivered: nothing more happens.",
        "It was delivered: there is nothing to redrive.",
    ):
        assert sentence.replace(" :", ":") in said.replace(" :", ":"), sentence


def test_a_step_that_is_not_allowed_says_why(
    clock: Clock, console: Client, auditor_console: Client, operator: User
) -> None:
    die(clock, ["a1"])
    assert "Ask for a redrive" in page_of(console, "a1")
    read_only = page_of(auditor_console, "a1")
    assert "Only operators and team leads ask for redrives." in read_only
    assert "Only operators and team leads record investigations." in read_only
    assert "Only people with a permission of its own may see what an order contains." in read_only
    plan = ask(operator)
    held = page_of(console, "a1")
    assert f"Redrive R-{plan.pk} holds this order" in held
    accept(["w1"])
    assert "It is on its way: only an order in quarantine can be redriven." in page_of(console, "w1")


def test_contents_are_shown_by_their_own_right_and_each_look_is_recorded(
    clock: Clock, console: Client, auditor: User, auditor_console: Client
) -> None:
    queue.enqueue("a1", 1, payload={"item": "<script>Izze</script>", "n": [1, True]})
    address = reverse("job_payload", args=["a1"])
    refused = console.post(address)
    assert refused.status_code == 403
    assert "Izze" not in refused.text
    auditor.user_permissions.add(Permission.objects.get(codename="view_payload"))
    assert "Izze" not in page_of(auditor_console, "a1")
    shown = auditor_console.post(address)
    assert "&lt;script&gt;Izze&lt;/script&gt;" in shown.text
    assert "[1,true]" in shown.text
    assert "This look is in the audit record." in shown.text
    recorded = AuditEvent.objects.filter(action__in=["payload_look", "refused"]).order_by("seq")
    assert [(event.action, event.name) for event in recorded] == [("refused", "oda"), ("payload_look", "ada")]
    assert auditor_console.get(address).status_code == 405


def test_previous_and_next_follow_the_list_that_one_came_from(clock: Clock, console: Client, team_lead: User) -> None:
    die(clock, ["a1", "a2", "a3"], "http_422")
    die(clock, ["b1"], "http_410")
    listed = console.get("/quarantine/", {"code": "http_422"}).text
    assert rows_of(listed) == ["a1", "a2", "a3"]
    link = listed.split('href="/orders/a2/')[1].split('"')[0].replace("&amp;", "&")
    redrive("a2", team_lead)  # it leaves the list meanwhile
    page = console.get(f"/orders/a2/{link}").text
    assert 'rel="prev" href="/orders/a1/?code=http_422&amp;cursor=' in page
    assert 'rel="next" href="/orders/a3/?code=http_422&amp;cursor=' in page
    last = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    end = console.get(last).text
    assert 'rel="next"' not in end
    assert 'rel="prev"' in end
    assert 'rel="next"' not in console.get("/orders/a2/", {"cursor": "garbage"}).text


def test_an_unknown_order_is_not_found(console: Client) -> None:
    answer = console.get("/orders/nobody/")
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
