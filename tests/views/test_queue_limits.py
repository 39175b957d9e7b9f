"""The form of a queue's limits: typed as people write them, only what changed is changed, refusals are sentences."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import AuditEvent, Queue
from queue_app.policy.queues import LIMITS, QueuePolicy
from queue_app.views.limit_forms import SEEN, QueueLimitsForm
from tests.conftest import Clock
from tests.engine.rows import DAY, declare
from tests.views.pages import faults
from tests.views.seen import text_of

pytestmark = pytest.mark.django_db
FIELD = re.compile(r'<input type="(?:text|hidden)" name="([a-z_]+)"(?: value="([^"]*)")?')


@pytest.fixture
def lead(team_lead: User) -> Client:
    """A team lead's browser."""
    client = Client()
    client.force_login(team_lead)
    return client


def shown(client: Client, name: str = "snacks") -> dict[str, str]:
    """The form as the page offers it: every field with its text."""
    text = client.get(reverse("queue_list")).text
    assert faults(text) == []
    form = text[text.index(f'id="limits-{name}"') :]
    return {
        name: value
        for name, value in FIELD.findall(form[: form.index("</form>")])
        if name not in ("csrfmiddlewaretoken", "note")
    }


def send(client: Client, name: str = "snacks", **changes: str) -> Any:
    """The form as shown, with these fields typed anew."""
    return client.post(reverse("queue_limits", args=[name]), {**shown(client, name), **changes})


def limits(name: str = "snacks") -> dict[str, int | None]:
    """The stored limits."""
    return Queue.objects.filter(pk=name).values(*LIMITS).get()


def test_the_form_has_a_field_for_every_limit_and_shows_what_stands(lead: Client, clock: Clock) -> None:
    declare(delivery_rate_mj=2_500, max_unfinished=10_000, done_kept_ms=36 * 3_600_000, wait_budget_ms=500)
    found = shown(lead)
    stands = {
        "delivery_rate_mj": "2.5",
        "max_unfinished": "10000",
        "breaker_after": "20",
        "breaker_wait_ms": "30s",
        "wait_budget_ms": "500ms",
        "done_kept_ms": "36h",
        "receiver_keeps_ms": "90d",
    }
    assert set(stands) == set(LIMITS)
    assert found == stands | {SEEN + name: text for name, text in stands.items()}


def test_what_is_typed_is_changed_and_recorded_and_the_rest_stays(lead: Client, clock: Clock) -> None:
    answer = send(
        lead,
        delivery_rate_mj="0.25",
        max_unfinished="500",
        breaker_after="0",
        breaker_wait_ms="5m",
        wait_budget_ms="2h",
        done_kept_ms="30d",
        note="INC-7",
    )
    assert answer["Location"] == reverse("queue_list") + "#queue-snacks"
    assert limits() == {
        "delivery_rate_mj": 250,
        "max_unfinished": 500,
        "breaker_after": 0,
        "breaker_wait_ms": 300_000,
        "wait_budget_ms": 7_200_000,
        "done_kept_ms": 30 * DAY,
        "receiver_keeps_ms": 90 * DAY,
    }
    assert "snacks: the new limits hold for every worker within a second." in text_of(lead.get(answer["Location"]).text)
    event = AuditEvent.objects.get(action="limit_queue")
    assert (event.target, event.note, event.name, event.source) == ("queue:snacks", "INC-7", "tom", "console")
    assert "receiver_keeps_ms" not in json.loads(event.detail)


def test_an_empty_field_lifts_a_limit(lead: Client, clock: Clock) -> None:
    declare(delivery_rate_mj=2_500, max_unfinished=10, wait_budget_ms=60_000, done_kept_ms=DAY)
    assert send(lead, delivery_rate_mj="", max_unfinished="", wait_budget_ms="", done_kept_ms=" ").status_code == 302
    assert [limits()[name] for name, (_low, _high, optional) in LIMITS.items() if optional] == [None] * 4


def test_what_another_lead_changed_meanwhile_stays(lead: Client, clock: Clock) -> None:
    form = shown(lead)
    declare(max_unfinished=99)
    lead.post(reverse("queue_limits", args=["snacks"]), {**form, "breaker_after": "7"})
    assert (limits()["max_unfinished"], limits()["breaker_after"]) == (99, 7)


def test_a_field_that_is_not_sent_is_no_change(lead: Client, clock: Clock) -> None:
    declare(max_unfinished=99)
    assert lead.post(reverse("queue_limits", args=["snacks"]), {"breaker_after": "7"}).status_code == 302
    assert (limits()["max_unfinished"], limits()["breaker_after"]) == (99, 7)


def test_nothing_typed_is_nothing_done(lead: Client, clock: Clock) -> None:
    said = text_of(lead.get(send(lead)["Location"]).text)
    assert "Nothing had to be done: snacks stood so already." in said
    assert not AuditEvent.objects.filter(action="limit_queue").exists()


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("delivery_rate_mj", "0", "The rate is a number of orders per second from 0.01 to 20000"),
        ("delivery_rate_mj", "２.５", "In half-width: 2.5"),
        ("max_unfinished", "0", "Unfinished orders at most is a whole number from 1 to 1000000000, not "),
        ("max_unfinished", "9" * 30, "Unfinished orders at most is a whole number"),
        (
            "breaker_after",
            "",
            "Leave the receiver alone after so many failed tries is a whole number from 0 to 1000000",
        ),
        ("breaker_wait_ms", "", "A span is written like 90s, 10m, 2h or 7d, from 1 s to 1 day,"),
        ("breaker_wait_ms", "30", "A span is written like 90s"),
        ("wait_budget_ms", "0s", "from 1 s to 365 days"),
        ("done_kept_ms", "23h", "from 1 day to 3650 days"),
        ("done_kept_ms", "３０ｄ", "In half-width: 30d"),
        ("receiver_keeps_ms", "31d", "It must be more than 31 days, for so long an order may still be sent"),
        ("receiver_keeps_ms", "<b>\x00", "A span is written like 90s"),
        ("note", "ＩＮＣ-7", "INC-7"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence_and_the_input_is_kept(
    lead: Client, clock: Clock, field: str, typed: str, sentence: str
) -> None:
    before = limits()
    answer = send(lead, **{"max_unfinished": "77", field: typed})
    assert answer.status_code == 422
    assert faults(answer.text) == []
    assert sentence in text_of(answer.text)
    assert re.search(r'<details class="more" id="limits-snacks"\s+open>', answer.text)
    assert field == "max_unfinished" or 'name="max_unfinished" value="77"' in answer.text
    assert (limits(), AuditEvent.objects.filter(action="limit_queue").count()) == (before, 0)
    again = {"note": ""} if field == "note" else {field: shown(lead)[field]}
    seen = {name: value for name, value in FIELD.findall(answer.text) if name.startswith(SEEN)}
    assert (
        lead.post(reverse("queue_limits", args=["snacks"]), {**seen, **again, "max_unfinished": "78"}).status_code
        == 302
    )
    assert limits() == before | {"max_unfinished": 78}


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_others_see_no_form_and_their_try_is_refused_and_recorded(
    role: str, clock: Clock, request: pytest.FixtureRequest
) -> None:
    client = Client()
    client.force_login(request.getfixturevalue(role))
    text = client.get(reverse("queue_list")).text
    assert "limits-snacks" not in text
    assert "Limits are changed by a team lead" in text_of(text)
    assert client.post(reverse("queue_limits", args=["snacks"]), {"max_unfinished": "1"}).status_code == 403
    assert client.post(reverse("queue_limits", args=["snacks"]), {"max_unfinished": "none"}).status_code == 403
    assert limits()["max_unfinished"] is None
    assert AuditEvent.objects.filter(action="refused", target="queue:snacks").count() == 2


def test_a_queue_that_does_not_exist(lead: Client, clock: Clock) -> None:
    assert lead.post(reverse("queue_limits", args=["nobody"]), {"max_unfinished": "1"}).status_code == 404


def test_two_queues_have_forms_of_their_own(lead: Client, clock: Clock) -> None:
    declare("tables", breaker_after=3)
    send(lead, "tables", breaker_after="4")
    assert (limits()["breaker_after"], limits("tables")["breaker_after"]) == (20, 4)
    assert len({QueueLimitsForm(policy=QueuePolicy(name))["note"].id_for_label for name in ("snacks", "tables")}) == 2
