"""The browser itself works, and what it sees first is open to everybody."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page

from tests.conftest import PASSWORD


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_sign_in_page_keeps_nobody_out(
    page: Page, live_server: Any, barriers: Callable[[Page], list[str]], scheme: Any, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 700})
    page.goto(live_server.url + reverse("sign_in"))
    assert page.locator("input[name=username]").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []


def test_a_person_signs_in_by_keyboard(page: Page, live_server: Any, operator: User) -> None:
    page.goto(live_server.url + reverse("sign_in") + "?next=" + reverse("preferences"))
    page.locator("input[name=username]").fill(operator.username)
    page.locator("input[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(live_server.url + reverse("preferences"))


def test_a_session_can_be_given_to_the_browser(
    page: Page, live_server: Any, auditor: User, sign_in: Callable[[User], None]
) -> None:
    sign_in(auditor)
    page.goto(live_server.url + reverse("preferences"))
    assert page.url == live_server.url + reverse("preferences")


def test_a_complaint_of_the_browser_is_heard(page: Page, live_server: Any, complaints: list[str]) -> None:
    page.goto(live_server.url + reverse("sign_in"))
    page.evaluate("console.error('planted')")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.wait_for_function("document.body.hasAttribute('style')")
    assert complaints[0] == "planted"
    assert "Content Security Policy" in complaints[1]
    complaints.clear()
