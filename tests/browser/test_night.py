"""The story of 3 a.m.: from the sign-in to a recorded investigation, with the mouse, by keyboard, without JavaScript."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from queue_app import clock
from queue_app.models import Investigation
from tests.browser.night import bad_night
from tests.conftest import PASSWORD
from tests.dead_rows import bury

pytestmark = pytest.mark.django_db(transaction=True)
CAUSE = ("snacks", "exhausted", "http_503")


@pytest.fixture
def night(transactional_db: None) -> None:
    """The bad night."""
    bad_night()


UPDATE = "htmx.trigger('#overview-live', 'refresh')"


def one_more_dies(place: int) -> None:
    """One more death of the cause; the rows are put there, for the queue leaves its failing receiver alone by now."""
    bury(1, now_ms=clock.now_ms(), groups=[CAUSE], first=place)


def recorded() -> Investigation:
    """The one investigation, of the whole cause."""
    look = Investigation.objects.get()
    assert (look.scope, look.note, look.finding, look.count) == ("group", "INC-2041", "cause_found", 40)
    return look


def test_with_the_mouse_in_four_steps(page: Page, live_server: Any, operator: User, night: None) -> None:
    page.goto(live_server.url + reverse("sign_in"))
    page.get_by_label("Name").fill(operator.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    headline = page.locator(".headline")
    expect(headline).to_contain_text("43 orders are in quarantine and need a person")
    expect(headline).to_contain_text("nobody has looked")
    headline.get_by_role("link", name="Open the largest cause").click()  # 1
    page.get_by_label("Ticket or reference").fill("INC-2041")  # 2
    page.get_by_label("Finding").select_option("cause_found")  # 3
    page.get_by_role("button", name="Record").click()  # 4
    expect(page.get_by_role("status").first).to_contain_text("it counts for 40 orders")
    recorded()
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".headline")).to_contain_text("nobody has looked at 3 of them")


def test_by_keyboard_alone(page: Page, live_server: Any, operator: User, night: None) -> None:
    page.goto(live_server.url + reverse("sign_in"))
    for field, text in (("username", operator.username), ("password", PASSWORD)):
        for _press in range(20):
            if page.evaluate("document.activeElement.name") == field:
                break
            page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.wait_for_url(live_server.url + reverse("overview"))
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url(live_server.url + reverse("group_list"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(live_server.url + reverse("group", args=CAUSE))
    for _press in range(40):
        if page.evaluate("document.activeElement.name") == "note":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("INC-2041")
    page.keyboard.press("Tab")
    page.keyboard.type("cause")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Recorded INC-2041")
    recorded()


def test_without_javascript(browser: Browser, live_server: Any, operator: User, night: None) -> None:
    context = browser.new_context(java_script_enabled=False, locale="en-US")
    page = context.new_page()
    page.goto(live_server.url + reverse("sign_in"))
    page.get_by_label("Name").fill(operator.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Open the largest cause").click()
    page.get_by_label("Ticket or reference").fill("ＩＮＣ－２０４１")
    page.get_by_label("Finding").select_option("cause_found")
    page.get_by_role("button", name="Record").click()
    expect(page.locator(".error")).to_contain_text("INC-2041")  # the half-width form is offered
    assert not Investigation.objects.exists()
    page.get_by_label("Ticket or reference").fill("INC-2041")
    page.get_by_role("button", name="Record").click()
    expect(page.locator("main")).to_contain_text("it counts for 40 orders")
    recorded()
    context.close()


def test_as_the_accessibility_tree_speaks_it(
    page: Page, live_server: Any, operator: User, night: None, sign_in: Callable[[User], None]
) -> None:
    sign_in(operator)
    page.goto(live_server.url + reverse("overview"))
    spoken = page.locator("main").aria_snapshot()
    heads = re.findall(r'heading "([^"]+)"', spoken)
    assert heads[:3] == ["Overview", "43 orders are in quarantine and need a person", "Needs a person now"]
    assert 'link "40"' in spoken
    assert re.search(r"http_503.*?40 / 43 \(93%\)", spoken, re.S)


def test_what_lives_keeps_focus_and_says_when_the_server_is_silent(
    page: Page,
    live_server: Any,
    operator: User,
    night: None,
    sign_in: Callable[[User], None],
    complaints: list[str],
) -> None:
    sign_in(operator)
    page.goto(live_server.url + reverse("overview"))
    page.locator("#flow-table summary").click()
    before = page.locator("#overview-as-of").inner_text()
    with page.expect_response(lambda answer: "/live/" in answer.url):
        page.wait_for_load_state()
    expect(page.locator("#overview-as-of")).not_to_have_text(before)

    cause = page.get_by_role("link", name="All causes")
    cause.focus()
    page.evaluate("scrollTo(0, 321)")
    page.wait_for_function("scrollY === 321")
    one_more_dies(1_000)
    page.evaluate(UPDATE)
    expect(page.locator("#headline")).to_contain_text("44 orders")
    expect(cause).to_be_focused()
    assert page.evaluate("scrollY") == 321
    assert page.locator("#flow-table").get_attribute("open") is not None
    expect(page.locator("#announce")).to_have_text("44 orders are in quarantine")

    page.evaluate("getSelection().selectAllChildren(document.querySelector('#headline'))")
    one_more_dies(2_000)
    with page.expect_response(lambda answer: "/live/" in answer.url):
        page.evaluate(UPDATE)
    assert page.evaluate("getSelection().toString()").startswith("44 orders")  # what somebody copies stays
    page.evaluate("getSelection().removeAllRanges()")
    page.evaluate(UPDATE)
    expect(page.locator("#headline")).to_contain_text("45 orders")
    expect(page.locator("#announce")).to_have_text("44 orders are in quarantine")  # said again after half a minute only
    page.route("**/live/**", lambda route: route.abort())
    expect(page.locator("[data-stale]").first).to_be_visible(timeout=15_000)
    complaints.clear()
