"""Every page in both themes and from 320 CSS px on keeps nobody out (axe, WCAG 2.2 AA)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page

from queue_app.models import Plan
from queue_app.policy.reconciling import KINDS
from queue_app.policy.selections import by_group
from queue_app.policy.terms import Terms
from queue_app.services import looks, plans, reconciling
from queue_app.store import database
from tests.browser.night import bad_night
from tests.views.test_reconciliations import result

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = "the number of the plan"
PAGES = [
    ("overview", ()),
    ("quarantine_list", ()),
    ("group_list", ()),
    ("group", ("snacks", "exhausted", "http_503")),
    ("investigation_list", ()),
    ("investigation_new", ()),
    ("job", ("n-7",)),
    ("redrive_list", ()),
    ("redrive_new", ()),
    ("redrive", (PLAN,)),
    ("redrive_items", (PLAN,)),
    ("redrive_decide", (PLAN,)),
    ("audit_list", ()),
    ("audit_event", (1,)),
    ("preferences", ()),
    ("password_change", ()),
    ("order_list", ()),
    ("process_list", ()),
    ("queue_list", ()),
    ("reconciliations", ()),
]
CAUSE = "queue=snacks&reason=exhausted&code=http_503"
SHAPES = [  # what a page looks like when it is asked for something else, or by somebody else: (name, arguments, query)
    ("overview", (), "window=1h"),
    ("quarantine_list", (), f"{CAUSE}&attempts_min=1"),
    ("quarantine_list", (), "id=nobody"),
    ("quarantine_list", (), "attempts_min=much"),
    ("order_list", (), "state=done"),
    ("order_list", (), "id=n"),
    ("investigation_new", (), CAUSE),
    ("redrive_new", (), CAUSE),
    ("redrive_list", (), "state=nonsense"),
    ("redrive_decide", (PLAN,), ""),
    ("redrive_items", (PLAN,), "outcome=waiting"),
    ("audit_list", (), "who=nobody"),
    ("job", ("not-known",), ""),
]


def address(name: str, arguments: tuple, query: str = "") -> str:
    """The address, with the number that the plan really got."""
    path = reverse(name, args=[Plan.objects.get().pk if part == PLAN else part for part in arguments])
    return f"{path}?{query}" if query else path


def night_with_a_plan(operator: User) -> None:
    """The bad night, and somebody asked for a redrive."""
    bad_night()
    plans.ask(operator, by_group("snacks", "exhausted", "http_503"), Terms(1_000), note="INC-2")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_keeps_nobody_out(
    page: Page,
    live_server: Any,
    operator: User,
    sign_in: Callable[[User], None],
    barriers: Callable[[Page], list[str]],
    scheme: Any,
) -> None:
    night_with_a_plan(operator)
    looks.record(operator, "group", "INC-1", "looking", group=("snacks", "permanent", "http_422"), comment="見た")
    reconciling.record(result(database.now_ms(), **{kind.word: 12_345 for kind in KINDS}))
    sign_in(operator)
    page.emulate_media(color_scheme=scheme)
    found = {}
    for name, arguments in PAGES:
        page.goto(live_server.url + address(name, arguments))
        found[name] = barriers(page)
        page.set_viewport_size({"width": 320, "height": 700})
        if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            found[name].append("wider than 320 px")
        page.set_viewport_size({"width": 1280, "height": 900})
    assert {name: what for name, what in found.items() if what} == {}


def test_what_a_lead_fills_in_and_what_goes_wrong_keep_nobody_out(
    page: Page,
    live_server: Any,
    operator: User,
    team_lead: User,
    sign_in: Callable[[User], None],
    barriers: Callable[[Page], list[str]],
    complaints: list[str],
) -> None:
    night_with_a_plan(operator)
    sign_in(team_lead)
    page.emulate_media(color_scheme="dark")
    found = {}
    for name, arguments, query in SHAPES:
        page.goto(live_server.url + address(name, arguments, query))
        found[name, query] = barriers(page)
        page.set_viewport_size({"width": 320, "height": 700})
        if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            found[name, query].append("wider than 320 px")
        page.set_viewport_size({"width": 3840, "height": 2160})
        if page.locator("main").evaluate("main => main.getBoundingClientRect().right > innerWidth"):
            found[name, query].append("beyond 4K")
        page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(live_server.url + reverse("overview"))
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    found["the keys", ""] = barriers(page)
    assert {what: barrier for what, barrier in found.items() if barrier} == {}
    assert all("status of 40" in said for said in complaints)  # the browser's own words for 400 and 404
    complaints.clear()


@pytest.mark.parametrize("language", ["ja", "zh-hans"])
def test_pages_speak_the_language_and_fit(
    page: Page, live_server: Any, operator: User, sign_in: Callable[[User], None], language: str
) -> None:
    night_with_a_plan(operator)
    sign_in(operator)
    page.context.add_cookies([{"name": "django_language", "value": language, "url": live_server.url}])
    for name, arguments in PAGES:
        page.goto(live_server.url + address(name, arguments))
        assert page.evaluate("document.documentElement.lang.toLowerCase()") == language, name
        page.set_viewport_size({"width": 320, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.set_viewport_size({"width": 1280, "height": 900})
