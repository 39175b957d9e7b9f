"""Workers and queues in a real browser: by keys, in both themes, on a phone, and a lead's pause without a mouse."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from queue_app.models import Gate, Process, Queue
from queue_app.policy.queues import QueuePolicy
from queue_app.services import queue
from queue_app.store import database, queues

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def busy() -> None:
    """Three hosts at one limited queue, one of them lost; a receiver that is left alone; an order that blocks others."""
    now = database.now_ms()
    queues.set_limits("snacks", {"delivery_rate_mj": 5_000})
    queues.declare(QueuePolicy("tables", ordering="ordered", lease_ms=5_000, breaker_after=3))
    for number in range(3):
        queue.enqueue(f"s-{number}", 1)
        queue.enqueue(f"t-{number}", 1, queue="tables", order_key="k")
        seen = now - 60_000 if number == 2 else now + 600_000
        Process.objects.create(
            name=f"w{number}", kind="worker", queue="snacks", host=f"host-{number}", started_at_ms=now, seen_at_ms=seen
        )
    queue.claim("w0")
    (lease,) = queue.claim("w9", queue="tables")
    queue.finish(lease.id, lease.token, "permanent", code="http_422")
    Gate.objects.create(queue="tables", breaker="open", failed_in_row=4, since_ms=now, probe_at_ms=now + 600_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_busy_installation_keeps_nobody_out(
    page: Page,
    live_server: Any,
    team_lead: User,
    busy: None,
    sign_in: Callable[[User], None],
    barriers: Callable[[Page], list[str]],
    scheme: Any,
) -> None:
    sign_in(team_lead)
    page.emulate_media(color_scheme=scheme)
    found = {}
    for address in (reverse("process_list"), reverse("queue_list"), reverse("job", args=["t-0"]), reverse("overview")):
        page.goto(live_server.url + address)
        page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
        found[address] = barriers(page)
        page.set_viewport_size({"width": 320, "height": 700})
        if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            found[address].append("wider than 320 px")
        page.set_viewport_size({"width": 1280, "height": 900})
    assert {address: what for address, what in found.items() if what} == {}


def test_a_lead_goes_there_by_keys_pauses_a_queue_lets_a_worker_end_and_keeps_what_was_typed_while_figures_change(
    page: Page, live_server: Any, team_lead: User, busy: None, sign_in: Callable[[User], None]
) -> None:
    sign_in(team_lead)
    page.goto(live_server.url + reverse("overview"))
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.wait_for_url(live_server.url + reverse("queue_list"))
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url(live_server.url + reverse("process_list"))
    page.locator("details#queue-snacks summary").press("Enter")
    note = page.locator("details#queue-snacks").get_by_label("Ticket or reference")
    note.fill("INC-7")
    Process.objects.filter(name="w1").update(draining=True)
    page.evaluate("htmx.trigger('[data-poll]', 'refresh')")
    expect(page.get_by_text("takes nothing new", exact=True)).to_be_visible()
    expect(note).to_have_value("INC-7")
    page.locator("details#queue-snacks").get_by_role("button", name="Pause deliveries").press("Enter")
    expect(page.get_by_text("snacks: nothing is handed out until somebody resumes it.")).to_be_visible()
    assert Queue.objects.get(pk="snacks").paused
    page.get_by_role("link", name="Let w0 finish and end").press("Enter")
    worker = page.get_by_label("Worker", exact=True)
    expect(worker.locator("option:checked")).to_contain_text("w0")
    worker.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("w0 takes nothing new, finishes what it delivers, and ends.")).to_be_visible()
    assert Process.objects.get(pk="w0").draining


def test_a_lead_changes_a_queues_limits_by_keys_and_a_sentence_stands_beside_what_cannot_be_meant(
    page: Page, live_server: Any, team_lead: User, busy: None, sign_in: Callable[[User], None]
) -> None:
    sign_in(team_lead)
    page = page.context.new_page()  # Chromium itself complains of every 422, and the other page may not
    page.goto(live_server.url + reverse("queue_list"))
    page.locator("details#limits-snacks summary").press("Enter")
    form = page.get_by_role("form", name="Limits of snacks")
    form.get_by_label("Unfinished orders at most").fill("500")
    form.get_by_label("Keep delivered orders for").fill("1h")
    form.get_by_label("Keep delivered orders for").press("Enter")
    expect(form).to_contain_text("from 1 day to 3650 days, not '1h'.")
    expect(form.get_by_label("Keep delivered orders for")).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("Unfinished orders at most")).to_have_value("500")
    form.get_by_label("Keep delivered orders for").fill("30d")
    form.get_by_role("button", name="Change the limits").press("Enter")
    expect(page.get_by_text("snacks: the new limits hold for every worker within a second.")).to_be_visible()
    stands = Queue.objects.values_list("max_unfinished", "done_kept_ms", "delivery_rate_mj").get(pk="snacks")
    assert stands == (500, 30 * 86_400_000, 5_000)
