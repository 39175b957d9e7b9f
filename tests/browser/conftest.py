"""Chromium for the tests of pages: Debian's own, without any request to another host."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import BrowserContext, Page

FLAGS = [
    "--headless",
    "--no-sandbox",  # which a root user's Chromium cannot have
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Which browser, and how it starts. In CI its absence is a failure."""
    chromium = shutil.which("chromium")
    if not chromium:
        sentence = "Chromium is not installed: `apt-get install chromium fonts-noto-cjk`, then run the tests again."
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return {**browser_type_launch_args, "executable_path": chromium, "args": FLAGS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """A plain desktop; a test that means another says so."""
    return {**browser_context_args, "locale": "en-US", "timezone_id": "UTC", "viewport": {"width": 1280, "height": 900}}


@pytest.fixture
def complaints() -> list[str]:
    """What the browser said against the page; a test that provokes an error clears it. Must be empty at the end."""
    return []


@pytest.fixture
def page(page: Page, live_server: Any, complaints: list[str]) -> Iterator[Page]:
    """A page that must not complain (errors, warnings, the content policy) and must not ask another host."""
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((live_server.url, "data:", "blob:"))
            else complaints.append(f"asked {request.url}")
        ),
    )
    yield page
    assert complaints == []


@pytest.fixture
def sign_in(live_server: Any, context: BrowserContext) -> Callable[[User], None]:
    """`sign_in(user)`: the browser has that person's session from now on."""

    def give_cookie(user: User) -> None:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        cookie = client.cookies["sessionid"]
        context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": live_server.url}])

    return give_cookie


@pytest.fixture
def barriers() -> Callable[[Page], list[str]]:
    """`barriers(page)`: what axe finds that keeps people out, a line each."""

    def find(page: Page) -> list[str]:
        found = Axe().run(page).response["violations"]
        return [f"{entry['id']}: {entry['help']} ({node['target']})" for entry in found for node in entry["nodes"]]

    return find
