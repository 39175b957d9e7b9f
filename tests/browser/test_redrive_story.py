"""A redrive in the browser with two people: the trial fails, it halts by itself, the repair, a new round, the end."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from queue_app.delivery.redriver import Redriver
from queue_app.models import Job, Plan, Queue, Redrive
from queue_app.policy.selections import by_group
from queue_app.policy.terms import Terms
from queue_app.services import batches, queue
from tests.browser.night import bad_night
from tests.conftest import PASSWORD
from tests.redrive.story import approve, ask

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def work_through(outcome: str, code: str = "") -> int:
    """Deliver everything that is due."""
    n = 0
    while leases := queue.claim("w-2", limit=100):
        queue.finish_many([queue.Result(lease.id, lease.token, outcome, code) for lease in leases])
        n += len(leases)
    return n


def redriver_and_worker(outcome: str, code: str, state: str) -> Plan:
    """Redriver and worker side by side until the plan stands so."""
    redriver = Redriver("redriver-test")
    for _round in range(20_000):
        redriver.once()
        work_through(outcome, code)
        plan = Plan.objects.get()
        if plan.state == state:
            return plan
    raise AssertionError(f"never {state}: {plan.state} {plan.why}")


def quick_bad_night() -> None:
    """The bad night, in a queue whose usual pace does not make a test wait."""
    bad_night()
    Queue.objects.update(rate_mj=1_000_000)


def ask_in_browser(page: Page, live_server: Any) -> None:
    """From the cause's page to a plan that waits."""
    page.goto(live_server.url + reverse("group", args=["snacks", "exhausted", "http_503"]))
    page.get_by_role("link", name="Ask for a redrive").click()
    page.get_by_label("Ticket or reference").fill("INC-2041")
    page.get_by_role("main").locator("button[type=submit], button.button-primary").last.click()
    expect(page.locator(".headline")).to_contain_text("40 orders, waits for approval")


def decide_in_browser(page: Page, live_server: Any, note: str, password: str = PASSWORD) -> None:
    """The lead's form, filled in and sent."""
    plan = Plan.objects.get()
    page.goto(live_server.url + reverse("redrive_decide", args=[plan.pk]))
    page.get_by_label("Ticket or reference").fill(note)
    typed = page.get_by_label("Type the number of orders")
    if typed.count():
        typed.fill(str(plan.planned - plan.redriven - plan.skipped))
    page.get_by_label("Your password, again").fill(password)
    page.get_by_role("button", name="Approve").click()


def the_story(operators: Page, leads: Page, live_server: Any) -> None:
    ask_in_browser(operators, live_server)
    plan = Plan.objects.get()
    expect(operators.get_by_role("link", name="Decide")).to_have_count(0)
    decide_in_browser(leads, live_server, "CHG-1", password="wrong")
    expect(leads.locator("main")).to_contain_text("The password is not right.")
    assert Plan.objects.get().state == "proposed"
    assert leads.get_by_label("Ticket or reference").input_value() == "CHG-1"
    decide_in_browser(leads, live_server, "CHG-1")
    expect(leads.locator(".headline")).to_contain_text("approved, waits for its turn")
    # the receiver still refuses: the trial dies and the rest is never touched
    redriver_and_worker("permanent", "http_503", "halted")
    trial = Redrive.objects.count()
    assert trial == plan.canary
    leads.goto(live_server.url + reverse("redrive", args=[plan.pk]))
    expect(leads.locator(".headline")).to_contain_text("halted by itself")
    expect(leads.locator("main")).to_contain_text("Too many orders of the trial died again")
    # repaired: a new round with a new trial carries on
    leads.get_by_role("link", name="Decide whether it goes on").click()
    decide_in_browser(leads, live_server, "CHG-2")
    redriver_and_worker("ok", "", "ended")
    leads.goto(live_server.url + reverse("redrive", args=[plan.pk]))
    expect(leads.locator(".headline")).to_contain_text("carried out")
    plan.refresh_from_db()
    assert plan.planned == plan.redriven + plan.skipped == 40
    assert Redrive.objects.count() == plan.redriven
    assert Job.objects.filter(state="dead", code="http_503", id__startswith="n-").count() == trial
    story = leads.get_by_role("region", name="Who did what")
    for step in ("oda asked for", "tom approved", "halted by itself", "let Redrive", "ended: every order had its turn"):
        expect(story).to_contain_text(step)
    for ticket in ("INC-2041", "CHG-1", "CHG-2"):
        expect(story).to_contain_text(ticket)


def test_with_two_people_signed_in(
    page: Page, browser: Browser, live_server: Any, operator: User, team_lead: User, sign_in: Callable[[User], None]
) -> None:
    quick_bad_night()
    sign_in(operator)
    context = browser.new_context(locale="en-US")
    leads = context.new_page()
    leads.goto(live_server.url + reverse("sign_in"))
    leads.get_by_label("Name").fill(team_lead.username)
    leads.get_by_label("Password").fill(PASSWORD)
    leads.get_by_role("main").get_by_role("button", name="Sign in").click()
    the_story(page, leads, live_server)
    context.close()


def test_without_javascript(browser: Browser, live_server: Any, operator: User, team_lead: User) -> None:
    quick_bad_night()
    pages = []
    for user in (operator, team_lead):
        context = browser.new_context(java_script_enabled=False, locale="en-US")
        page = context.new_page()
        page.goto(live_server.url + reverse("sign_in"))
        page.get_by_label("Name").fill(user.username)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        pages.append(page)
    operators, leads = pages
    the_story(operators, leads, live_server)
    for page in pages:
        page.context.close()


def tab_to(page: Page, reached: str) -> None:
    """Tab until the focused element fits the expression over `e`; a bound, so that a trap is found."""
    for _press in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(f"(e => Boolean({reached}))(document.activeElement)"):
            return
    raise AssertionError(f"never reached by Tab: {reached}")


def test_by_keyboard_alone(
    page: Page, browser: Browser, live_server: Any, operator: User, team_lead: User, sign_in: Callable[[User], None]
) -> None:
    quick_bad_night()
    sign_in(operator)
    page.goto(live_server.url + reverse("group_list"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/causes/snacks/exhausted/http_503/")
    tab_to(page, "e.textContent.includes('Ask for a redrive')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/redrives/new/**")
    tab_to(page, "e.name === 'note'")
    page.keyboard.type("INC-2041")
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_contain_text("40 orders, waits for approval")
    plan = Plan.objects.get()
    context = browser.new_context(locale="en-US")
    leads = context.new_page()
    leads.goto(live_server.url + reverse("sign_in") + "?next=" + reverse("redrive_list"))
    leads.get_by_label("Name").focus()
    leads.keyboard.type(team_lead.username)
    leads.keyboard.press("Tab")
    leads.keyboard.type(PASSWORD)
    leads.keyboard.press("Enter")
    leads.wait_for_url(live_server.url + reverse("redrive_list"))
    tab_to(leads, f"e.tagName === 'A' && e.pathname === '{reverse('redrive', args=[plan.pk])}'")
    leads.keyboard.press("Enter")
    leads.wait_for_url(f"**{reverse('redrive', args=[plan.pk])}")
    decide_by_keyboard(leads, "Decide", "CHG-1", "40")
    expect(leads.locator(".headline")).to_contain_text("approved, waits for its turn")
    redriver_and_worker("permanent", "http_503", "halted")
    leads.reload()
    expect(leads.locator(".headline")).to_contain_text("halted by itself")
    decide_by_keyboard(leads, "Decide whether it goes on", "CHG-2", "30")
    expect(leads.locator(".headline")).to_contain_text("approved, waits for its turn")
    redriver_and_worker("ok", "", "ended")
    leads.reload()
    expect(leads.locator(".headline")).to_contain_text("carried out")
    context.close()


def decide_by_keyboard(page: Page, link: str, note: str, typed: str) -> None:
    """From the redrive's page through the form, without a pointer."""
    tab_to(page, f"e.textContent.trim() === '{link}'")
    page.keyboard.press("Enter")
    page.wait_for_url("**/decide/")
    tab_to(page, "e.name === 'note'")
    page.keyboard.type(note)
    if page.get_by_label("Type the number of orders").count():
        tab_to(page, "e.name === 'typed'")
        page.keyboard.type(typed)
    tab_to(page, "e.name === 'password'")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")


def test_two_people_make_it_stricter_slow_it_down_pause_and_stop_it(
    page: Page, browser: Browser, live_server: Any, operator: User, team_lead: User, sign_in: Callable[[User], None]
) -> None:
    quick_bad_night()
    sign_in(team_lead)
    plan = ask(operator, by_group("snacks", "exhausted", "http_503"), Terms(20_000, canary=2))
    page.goto(live_server.url + reverse("redrive_decide", args=[plan.pk]))
    expect(page.locator("#sentence")).to_contain_text("40 orders at up to 20/s, with a trial of 2 first.")
    page.get_by_text("Make it stricter").click()
    page.get_by_label("Pace, orders per second").fill("2.5")
    page.get_by_label("Size of the trial").focus()
    expect(page.locator("#sentence")).to_contain_text("40 orders at up to 2.5/s, with a trial of 2 first.")
    page.get_by_label("Ticket or reference").fill("CHG-1")
    page.get_by_label("Type the number of orders").fill("40")
    page.get_by_label("Your password, again").fill(PASSWORD)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".messages")).to_contain_text("tom approves R-")
    assert Plan.objects.get().approved_rate_mj == 2_500
    context = browser.new_context(locale="en-US")
    context.add_cookies([{"name": "sessionid", "value": session_of(operator), "url": live_server.url}])
    operators = context.new_page()
    operators.goto(live_server.url + reverse("redrive", args=[plan.pk]))
    operators.get_by_label("Orders per second").fill("0.5")
    operators.get_by_role("button", name="Change the pace").click()
    expect(operators.get_by_role("region", name="Who did what")).to_contain_text("from 2.5/s to 0.5/s")
    operators.get_by_role("button", name="Pause", exact=True).click()
    expect(operators.locator(".headline")).to_contain_text("oda paused")
    expect(page.locator(".headline")).to_contain_text("oda paused")  # the lead's page followed by itself
    page.get_by_text("Stop for good").first.click()
    page.get_by_role("button", name="Stop for good").click()
    expect(page.locator(".headline")).to_contain_text("tom stopped")
    expect(operators.locator(".headline")).to_contain_text("tom stopped")
    assert (Plan.objects.get().state, Redrive.objects.count()) == ("stopped", 0)
    context.close()


def at_a_running_redrive(
    page: Page, live_server: Any, operator: User, team_lead: User, sign_in: Callable[[User], None]
) -> Plan:
    """The operator looks at a redrive that the lead has approved."""
    quick_bad_night()
    plan = ask(operator, by_group("snacks", "exhausted", "http_503"), Terms(20_000, canary=2))
    approve(team_lead, plan)
    sign_in(operator)
    page.goto(live_server.url + reverse("redrive", args=[plan.pk]))
    return plan


def test_a_pace_that_somebody_types_outlives_a_change_of_state(
    page: Page, live_server: Any, operator: User, team_lead: User, sign_in: Callable[[User], None]
) -> None:
    plan = at_a_running_redrive(page, live_server, operator, team_lead, sign_in)
    pace = page.get_by_label("Orders per second")
    pace.fill("0.5")
    batches.pause(team_lead, plan.pk)  # somebody else, while this person still types
    expect(page.locator(".headline")).to_contain_text("tom paused")
    expect(pace).to_be_focused()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.get_by_role("heading", level=1).click()  # done with typing: the steps of the new state come
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    expect(pace).to_have_value("0.5")
    expect(page.get_by_role("region", name="Who did what")).to_contain_text("tom")
    pace.press("Enter")
    expect(page.get_by_role("region", name="Who did what")).to_contain_text("to 0.5/s")
    assert Plan.objects.get().rate_mj == 500


def test_a_redrive_that_ends_while_somebody_types_asks_until_its_page_is_whole(
    page: Page, live_server: Any, operator: User, team_lead: User, sign_in: Callable[[User], None]
) -> None:
    plan = at_a_running_redrive(page, live_server, operator, team_lead, sign_in)
    page.get_by_label("Orders per second").fill("0.5")
    batches.stop(team_lead, plan.pk)
    expect(page.locator(".headline")).to_contain_text("tom stopped")
    expect(page.get_by_label("Orders per second")).to_have_value("0.5")
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_label("Orders per second")).to_have_count(0)
    expect(page.locator("[data-poll]")).to_have_count(0)


def session_of(user: User) -> str:
    """The cookie of a session that this person begins."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies["sessionid"].value
