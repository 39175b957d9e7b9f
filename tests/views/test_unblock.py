"""An order in quarantine that keeps others of its key back: what waits, and a lead who lets it pass."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import Gate, Unblock
from queue_app.services import queue
from tests.conftest import Clock
from tests.engine.rows import declare, put
from tests.views.pages import faults
from tests.views.seen import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _blocked(clock: Clock) -> None:
    declare("tables", ordering="ordered")
    for number in range(8):
        put(f"a-{number}", at=clock.now, queue="tables", order_key="t4")
    put("alone", at=clock.now)
    for name in ("tables", "snacks"):
        (lease,) = queue.claim("w1", queue=name)
        queue.finish(lease.id, lease.token, "permanent", code="http_422")


@pytest.fixture
def lead(team_lead: User) -> Client:
    """A team lead's browser."""
    client = Client()
    client.force_login(team_lead)
    return client


def page(client: Client, job_id: str = "a-0") -> str:
    answer = client.get(reverse("job", args=[job_id]))
    assert faults(answer.text) == []
    return text_of(answer.text)


def send(client: Client, note: str = "INC-7", token: object = 1) -> object:
    return client.post(reverse("job_unblock", args=["a-0"]), {"note": note, "token": token})


def test_the_page_says_what_waits_and_an_operator_why_not(console: Client) -> None:
    text = page(console)
    assert "7 orders wait behind it" in text
    assert "a-1 · a-2 · a-3 · a-4 · a-5 …" in text
    assert "keeps the order of the key t4" in text
    assert "Only team leads let later orders pass." in text
    assert "wait behind" not in page(console, "alone")
    assert "It waits for an earlier order of the same key: a-0" in page(console, "a-1")


def test_a_lead_lets_them_pass(lead: Client, console: Client) -> None:
    answer = lead.post(reverse("job_unblock", args=["a-0"]), {"note": "INC-7", "token": 1}, follow=True)
    assert "a-0 is passed: the later orders of its key go on." in text_of(answer.text)
    assert "The later orders of its key pass it" in text_of(answer.text)
    assert [lease.id for lease in queue.claim("w1", queue="tables")] == ["a-1"]
    again = lead.post(reverse("job_unblock", args=["a-0"]), {"note": "INC-8", "token": 1}, follow=True)
    assert "tom was first: a-0 is passed." in text_of(again.text)
    assert "INC-7" in page(console)
    assert Unblock.objects.count() == 1


@pytest.mark.parametrize(
    ("note", "token", "status"),
    [
        ("", 1, 422),
        ("ＩＮＣ-7", 1, 422),
        ("INC-7", "", 422),
        ("INC-7", "x", 422),
        ("INC-7", 2**70, 422),
        ("INC-7", 9, 409),
    ],
)
def test_what_cannot_be_meant_changes_nothing(lead: Client, note: str, token: object, status: int) -> None:
    assert send(lead, note, token).status_code == status  # type: ignore[attr-defined]
    assert not Unblock.objects.exists()


def test_an_operator_is_refused_and_unknown_orders_are_not_there(console: Client, lead: Client) -> None:
    assert send(console).status_code == 403  # type: ignore[attr-defined]
    for form in ({"note": "INC-7", "token": 1}, {}):
        assert lead.post(reverse("job_unblock", args=["zz"]), form).status_code == 404


def test_an_order_whose_receiver_is_left_alone_says_so(console: Client, clock: Clock) -> None:
    put("next", at=clock.now)
    assert "The next free worker takes it." in page(console, "next")
    Gate.objects.create(queue="snacks", breaker="open", failed_in_row=20, since_ms=clock.now, probe_at_ms=clock.now + 9)
    assert "Its receiver is left alone since" in page(console, "next")
