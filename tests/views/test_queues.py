"""The queues page: every policy in people's words, what is wrong in it as a sentence, and a lead's moves."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import AuditEvent, Queue
from tests.conftest import Clock
from tests.engine.rows import DAY, declare
from tests.views.pages import faults
from tests.views.seen import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(team_lead: User) -> Client:
    """A team lead's browser."""
    client = Client()
    client.force_login(team_lead)
    return client


def page(client: Client) -> str:
    """The words of the page, which breaks no rule of the house."""
    answer = client.get(reverse("queue_list"))
    assert answer.status_code == 200
    assert faults(answer.text) == []
    return text_of(answer.text)


def move(client: Client, step: str, note: str = "", name: str = "snacks", **more: Any) -> Any:
    return client.post(reverse("queue_move", args=[name]), {"move": step, "note": note, **more})


def test_the_defaults_are_told_in_whole_words(console: Client, clock: Clock) -> None:
    text = page(console)
    for part in (
        "takes new orders",
        "not kept: a failed order is passed over",
        "3 tries within 1 day",
        "1 s, doubled each time up to 5 min",
        "Time of a worker for an order 30 s",
        "Deliveries, all workers together no limit now 0/s",
        "left alone when 20 tries failed and nothing was answered for a minute, or more tries for a shorter time; "
        "asked again after 30 s",
        "Unfinished orders no limit now 0 waiting, 0 being delivered",
        "possible for 30 days, usually at 5/s",
        "The receiver knows an id for 90 days",
        "Delivered orders are kept for ever",
    ):
        assert part in text, part


def test_every_limit_is_told(console: Client, clock: Clock) -> None:
    declare(
        ordering="ordered",
        wait_base_ms=500,
        wait_budget_ms=60_000,
        delivery_rate_mj=2_500,
        breaker_after=0,
        max_unfinished=10_000,
        done_kept_ms=7 * DAY,
        accepting=False,
        paused=True,
        max_attempts=1,
    )
    text = page(console)
    for part in (
        "paused closed for new orders",
        "kept: an order waits for every earlier one of its key",
        "1 try within 1 day",
        "500 ms, doubled",
        "together at most 1 min",
        "at most 2.5/s",
        "never left alone",
        "at most 10,000, then new ones wait or are refused",
        "Delivered orders are kept for 7 days",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ({"lease_ms": 10_000}, "a second worker would send an order that the first is still sending"),
        ({"receiver_keeps_ms": 31 * DAY}, "The receiver knows an id for 31 days only"),
    ],
)
def test_what_would_send_an_order_twice_is_a_sentence(
    console: Client, clock: Clock, settings: Any, policy: dict[str, int], sentence: str
) -> None:
    settings.DELIVERY_TOTAL_MS = 10_000
    assert "No worker starts so." not in page(console)
    declare(**policy)
    assert sentence in page(console)


def test_a_lead_moves_a_queue_with_a_ticket_and_the_record_tells_it(lead: Client, clock: Clock) -> None:
    steps = {"pause": (True, True), "close": (False, True), "resume": (False, False), "reopen": (True, False)}
    for step, after in steps.items():
        answer = move(lead, step, "INC-7")
        assert answer["Location"] == reverse("queue_list") + "#queue-snacks"
        assert Queue.objects.values_list("accepting", "paused").get(pk="snacks") == after
    actions = AuditEvent.objects.filter(note="INC-7").order_by("seq").values_list("action", flat=True)
    assert list(actions) == ["pause_queue", "close_queue", "resume_queue", "reopen_queue"]


def test_without_a_ticket_it_works_too_and_the_second_click_says_that_it_stood_so(lead: Client, clock: Clock) -> None:
    assert "nothing is handed out until" in text_of(lead.get(move(lead, "pause")["Location"]).text)
    assert "Nothing had to be done: snacks stood so already." in text_of(lead.get(move(lead, "pause")["Location"]).text)
    assert AuditEvent.objects.filter(action="pause_queue").count() == 1


def test_a_ticket_that_cannot_be_meant_is_given_back_with_its_half_width_form(lead: Client, clock: Clock) -> None:
    answer = move(lead, "pause", "ＩＮＣ-7")
    assert answer.status_code == 422
    assert "INC-7" in text_of(answer.text)
    assert 'value="ＩＮＣ-7"' in answer.text
    assert not Queue.objects.get(pk="snacks").paused


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_others_read_a_sentence_and_are_refused(role: str, clock: Clock, request: pytest.FixtureRequest) -> None:
    client = Client()
    client.force_login(request.getfixturevalue(role))
    assert "Only team leads pause, resume, close or open a queue." in page(client)
    answer = move(client, "close", "INC-7")
    assert answer.status_code == 403
    assert Queue.objects.get(pk="snacks").accepting
    assert AuditEvent.objects.filter(action="refused", target="queue:snacks").count() == 1


@pytest.mark.parametrize(
    ("step", "name", "status"), [("", "snacks", 400), ("cancel' --", "snacks", 400), ("pause", "nobody", 404)]
)
def test_steps_and_queues_that_do_not_exist(lead: Client, clock: Clock, step: str, name: str, status: int) -> None:
    assert move(lead, step, name=name).status_code == status


def test_nobody_is_led_elsewhere(lead: Client, clock: Clock) -> None:
    assert move(lead, "pause", back="https://evil/")["Location"] == reverse("queue_list") + "#queue-snacks"


def test_an_installation_without_queues_says_so(console: Client, clock: Clock) -> None:
    Queue.objects.all().delete()
    assert "No queue is declared" in page(console)


def test_the_number_of_queries_does_not_grow(console: Client, clock: Clock) -> None:
    with CaptureQueriesContext(connection) as few:
        page(console)
    for number in range(30):
        declare(f"q{number}")
    with CaptureQueriesContext(connection) as many:
        page(console)
    assert len(many) == len(few)
