"""The frame in a real browser: keys, the person's menu, pausing, and a server that falls silent."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from queue_app.models import Preference

OPEN = "document.querySelector('dialog.keys').open"


@pytest.fixture
def home(page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None]) -> Page:
    """The overview, open in the browser of an operator."""
    sign_in(operator)
    page.goto(live_server.url + reverse("overview"))
    return page


def key_event(page: Page, key: str, **more: Any) -> None:
    """A key as a program or an input method sends it."""
    page.evaluate(
        "([key, more]) => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, ...more}))",
        [key, more],
    )


def test_a_question_mark_shows_the_keys_and_escape_takes_them_away(home: Page) -> None:
    home.keyboard.press("?")
    assert home.evaluate(OPEN)
    home.keyboard.press("Escape")
    assert not home.evaluate(OPEN)


def test_two_keys_go_to_a_page_and_the_slash_goes_to_its_filter(home: Page, live_server: Any) -> None:
    home.keyboard.press("g")
    home.keyboard.press("q")
    home.wait_for_url(live_server.url + reverse("quarantine_list"))
    home.keyboard.press("/")
    focused = home.locator("[data-filter]:focus")
    expect(focused).to_have_count(1)
    home.keyboard.type("?gox/")
    expect(focused).to_have_value("?gox/")
    assert not home.evaluate(OPEN)


@pytest.mark.parametrize(
    "more", [{"isComposing": True}, {"keyCode": 229}, {"ctrlKey": True}, {"metaKey": True}, {"altKey": True}]
)
def test_an_input_method_or_a_modifier_keeps_single_keys_quiet(home: Page, more: dict[str, Any]) -> None:
    key_event(home, "?", **more)
    assert not home.evaluate(OPEN)
    key_event(home, "?")
    assert home.evaluate(OPEN)


def test_single_keys_can_be_switched_off(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None]
) -> None:
    Preference.objects.create(user=operator, single_keys=False)
    sign_in(operator)
    page.goto(live_server.url + reverse("overview"))
    page.keyboard.press("?")
    assert not page.evaluate(OPEN)
    page.get_by_role("button", name="Keys").click()
    assert page.evaluate(OPEN)


def test_the_menu_closes_by_escape_and_gives_the_focus_back(home: Page) -> None:
    summary = home.locator("details.person summary")
    summary.press("Enter")
    link = home.get_by_role("link", name="Preferences")
    link.focus()
    link.press("Escape")
    expect(summary).to_be_focused()
    expect(link).to_be_hidden()


def test_paused_updates_ask_nothing_and_say_so(home: Page) -> None:
    asked: list[str] = []
    home.on("request", lambda request: asked.append(request.url) if "/live/" in request.url else None)
    pause = home.get_by_role("button", name="Pause updates")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    home.evaluate("htmx.trigger('[data-poll]', 'refresh')")
    assert asked == []
    with home.expect_request("**/live/**"):
        pause.click()
    expect(pause).to_have_attribute("aria-pressed", "false")


def test_old_figures_say_that_they_are_old_until_the_server_answers(home: Page, complaints: list[str]) -> None:
    note = home.locator("[data-stale]").first
    expect(note).to_be_hidden()
    home.route("**/live/**", lambda route: route.abort())
    home.evaluate("htmx.trigger('[data-poll]', 'refresh')")
    expect(note).to_be_visible()
    expect(home.locator("#announce")).to_contain_text("The server is silent")
    home.unroute("**/live/**")
    home.evaluate("htmx.trigger('[data-poll]', 'refresh')")
    expect(note).to_be_hidden()
    complaints.clear()  # the browser names the request that was cut


@pytest.mark.browser_context_args(timezone_id="Asia/Tokyo")
def test_the_browsers_zone_is_offered_and_taken(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None]
) -> None:
    sign_in(operator)
    page.goto(live_server.url + reverse("preferences"))
    page.get_by_role("button", name="Asia/Tokyo").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("footer")).to_contain_text("Asia/Tokyo (JST)")
