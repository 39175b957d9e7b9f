"""The workers page: who runs on which host, what each holds, who is lost, one pace and one receiver for all."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import Gate, Process
from queue_app.policy.figures import SILENT_MS
from queue_app.services import queue
from tests.conftest import Clock
from tests.engine.rows import declare, put
from tests.views.pages import faults
from tests.views.seen import text_of

pytestmark = pytest.mark.django_db


def worker(name: str, clock: Clock, *, seen_ms_ago: int = 0, **more: Any) -> None:
    """A worker that said so long ago that it lives."""
    seen = clock.now - seen_ms_ago
    given = {"kind": "worker", "queue": "snacks", "host": "h1", "concurrency": 4, "rate_mj": 1_500, **more}
    Process.objects.create(name=name, started_at_ms=clock.now - 60_000, seen_at_ms=seen, **given)


def page(client: Client, name: str = "process_list", query: str = "") -> str:
    """The page's markup, which breaks no rule of the house."""
    answer = client.get(reverse(name) + query)
    assert answer.status_code == 200
    assert faults(answer.text) == []
    return answer.text


def test_an_empty_installation_says_how_to_begin(console: Client, clock: Clock) -> None:
    text = text_of(page(console))
    assert "Nobody has ever worked here" in text
    assert "manage.py worker --queue snacks" in text


def test_three_hosts_share_one_pace(console: Client, clock: Clock) -> None:
    declare(delivery_rate_mj=5_000)
    for number in range(3):
        worker(f"w{number}", clock, host=f"host{number}", ended_n=7, failed_n=number)
    text = text_of(page(console))
    assert "3 running, sharing the work on 3 hosts." in text
    assert "3 on 3 hosts 12 deliveries at once 4.5/s at most 5/s" in text
    assert "host host0" in text
    assert "1.5/s 4 at once 7 2 no success nothing" in text


def test_what_each_holds_is_counted_and_its_first_orders_named(console: Client, clock: Clock) -> None:
    worker("w1", clock)
    put(*(f"a-{n}" for n in range(5)), at=clock.now)
    put("b-1", at=clock.now)
    queue.claim("w1", limit=5)
    queue.claim("run-once", limit=1, lease_ms=1_000)
    clock.advance(1_000)
    markup = page(console)
    text = text_of(markup)
    assert "5 orders a-0 · token 1 · until" in text
    assert "a-3" not in text
    assert re.search(r"run-once worker never reported .*1 order b-1 · token 1 · time over at", text)
    assert f'href="{reverse("job", args=["a-0"])}"' in markup


@pytest.mark.parametrize(("ago", "state"), [(SILENT_MS - 1, "alive"), (SILENT_MS, "silent")])
def test_who_is_not_heard_of_is_lost_and_said_so(console: Client, clock: Clock, ago: int, state: str) -> None:
    worker("w1", clock, seen_ms_ago=ago)
    text = text_of(page(console))
    assert f"w1 worker · snacks · host h1 {state}" in text
    assert ("1 process fell silent without a word." in text) == (state == "silent")
    assert ("1 lost" in text) == (state == "silent")


def test_orders_without_anybody_to_deliver_them_are_the_headline(console: Client, clock: Clock) -> None:
    put("a-1", "a-2", at=clock.now)
    worker("w1", clock, stopped_at_ms=clock.now)
    text = text_of(page(console))
    assert "Orders wait, and nobody delivers them. snacks: 2 orders wait, and no worker of this queue is alive." in text
    declare(paused=True)
    assert "nobody delivers" not in text_of(page(console))


def test_a_receiver_that_is_left_alone_is_told_here_and_on_the_overview(console: Client, clock: Clock) -> None:
    worker("w1", clock)
    Gate.objects.create(
        queue="snacks", breaker="open", failed_in_row=21, since_ms=clock.now, probe_at_ms=clock.now + 90_000
    )
    text = text_of(page(console))
    assert "receiver left alone" in text
    assert re.search(r"left alone since [\d:]+ : 21 tries in a row failed one order asks again at [\d:]+", text)
    overview = text_of(page(console, "overview"))
    assert re.search(r"snacks: the receiver failed 21 tries in a row, and is left alone since [\d:]+", overview)
    clock.advance(90_000)
    assert "the next order that is due asks again" in text_of(page(console))
    Gate.objects.update(breaker="probing", probe_job="a-1", probe_token=1)
    assert "one order asks a-1" in text_of(page(console))
    declare(breaker_after=0)
    assert "left alone since" not in text_of(page(console)) + text_of(page(console, "overview"))


def test_an_unchanged_picture_is_not_sent_again(console: Client, clock: Clock) -> None:
    worker("w1", clock)
    seen = re.search(r"\?seen=([0-9a-f]+)", page(console))
    assert seen
    clock.advance(1_000)
    answer = console.get(reverse("process_live") + f"?seen={seen[1]}")
    assert answer["HX-Reswap"] == "none"
    assert "w1" not in answer.text
    assert "processes-as-of" in answer.text
    Process.objects.update(draining=True)
    assert "takes nothing new" in page(console, "process_live", f"?seen={seen[1]}")


def test_a_lead_finds_the_moves_here_and_others_a_sentence(console: Client, clock: Clock, team_lead: User) -> None:
    sentence = "Only team leads pause, resume, close or open a queue."
    assert sentence in text_of(page(console))
    lead = Client()
    lead.force_login(team_lead)
    assert sentence not in text_of(page(lead))
    answer = lead.post(reverse("queue_move", args=["snacks"]), {"move": "pause", "note": "", "back": "process_list"})
    assert answer["Location"] == reverse("process_list") + "#queue-snacks"


def test_the_number_of_queries_does_not_grow(console: Client, clock: Clock) -> None:
    worker("w0", clock)
    with CaptureQueriesContext(connection) as few:
        page(console)
    for number in range(1, 30):
        worker(f"w{number}", clock, seen_ms_ago=1_000 * number)
        declare(f"q{number}")
        put(f"a-{number}", at=clock.now)
        queue.claim(f"w{number}")
    with CaptureQueriesContext(connection) as many:
        page(console)
    assert len(many) == len(few)


def test_a_crowd_is_cut_and_that_is_said(console: Client, clock: Clock) -> None:
    Process.objects.bulk_create(
        Process(name=f"w{n:03}", kind="worker", started_at_ms=1, seen_at_ms=clock.now - n, stopped_at_ms=clock.now)
        for n in range(201)
    )
    text = text_of(page(console))
    assert "w199" in text
    assert "w200" not in text
    assert "Not all are shown" in text


@pytest.mark.parametrize("hostile", ['<script>alert("1")</script>', "{{ 7*7 }}", "%(x)s", "%s"])
def test_what_a_process_says_of_itself_is_text(console: Client, clock: Clock, hostile: str) -> None:
    worker(hostile, clock, host=hostile, detail=hostile[:48], kind=hostile[:12])
    assert "<script>alert" not in page(console)


@pytest.mark.parametrize(
    ("detail", "words"), [("disk_full", "the disk is full"), ("unreachable", "the database could not be reached")]
)
def test_a_worker_in_trouble_says_why_it_waits(console: Client, clock: Clock, detail: str, words: str) -> None:
    worker("w1", clock, detail=detail)
    for name in ("process_list", "overview"):
        assert words in text_of(page(console, name))
