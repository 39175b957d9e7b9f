"""Working in the list: ticking by keyboard and mouse, and newer orders that are offered without moving what is read."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from queue_app import clock
from queue_app.services import queue
from tests.browser.night import bad_night

pytestmark = pytest.mark.django_db(transaction=True)


def open_list(page: Page, live_server: Any, query: str = "") -> None:
    """The list as the night left it."""
    bad_night()
    page.goto(live_server.url + reverse("quarantine_list") + query)


def test_rows_are_ticked_by_keyboard_and_asked_for(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None]
) -> None:
    sign_in(operator)
    open_list(page, live_server)
    count = page.locator("[data-checked-count]")
    expect(count).to_have_text("0")
    for key in ("j", "x", "j", "j", "x"):
        page.keyboard.press(key)
    expect(count).to_have_text("2")
    ticked = page.eval_on_selector_all("input[name=ids]:checked", "boxes => boxes.map(box => box.value)")
    page.get_by_role("button", name="Ask for a redrive of the ticked").click()
    page.wait_for_url(lambda url: urlsplit(url).path == reverse("redrive_new"))
    assert not urlsplit(page.url).query, "two hundred ids do not fit into an address"
    carried = page.eval_on_selector_all(
        "input[name=ids]", "fields => fields.flatMap(field => field.value.split(/[ ,]/))"
    )
    assert sorted(carried) == sorted(ticked)


def test_all_on_the_page_are_ticked_by_one_box(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None]
) -> None:
    sign_in(operator)
    open_list(page, live_server, "?size=25")
    page.get_by_label("Tick all on this page").click()
    expect(page.locator("[data-checked-count]")).to_have_text("25")
    page.locator("input[name=ids]").first.uncheck()
    expect(page.locator("[data-checked-count]")).to_have_text("24")
    assert page.get_by_label("Tick all on this page").evaluate("box => box.indeterminate")


def test_newer_orders_are_offered_and_the_rows_stay_where_they_are(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None]
) -> None:
    sign_in(operator)
    open_list(page, live_server)
    rows = page.locator("tbody th .id").all_inner_texts()
    page.locator("input[name=ids]").first.check()
    queue.enqueue("late", 1, now_ms=clock.now_ms())
    for _turn in range(2):  # the receiver failed so often that one order asks first
        for lease in queue.claim("w-2", limit=5, now_ms=clock.now_ms() + 60_000):
            queue.finish(lease.id, lease.token, "permanent", code="http_422")
    page.evaluate("htmx.trigger('#quarantine-newer', 'refresh')")
    offer = page.get_by_role("link", name="2 newer, show")  # the one that waited, too
    expect(offer).to_be_visible()
    assert page.locator("tbody th .id").all_inner_texts() == rows
    expect(page.locator("[data-checked-count]")).to_have_text("1")
    offer.click()
    expect(page.locator("tbody th .id").last).to_have_text("late")


def test_the_list_fits_320_px_with_its_boxes(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None], barriers: Callable[[Page], list[str]]
) -> None:
    sign_in(operator)
    page.set_viewport_size({"width": 320, "height": 700})
    open_list(page, live_server, "?size=25&looked=no&reason=exhausted&max_age=3d")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []
