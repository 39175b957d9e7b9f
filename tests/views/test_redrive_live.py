"""What lives on the page of a redrive: what is polled, who did what, and that it costs the same at any size."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import AuditEvent, Plan
from queue_app.policy.filters import Filter
from queue_app.policy.selections import by_filter
from queue_app.policy.terms import Terms
from queue_app.services import batches
from queue_app.templatetags.words import instant
from tests.conftest import Clock
from tests.redrive.story import SNACKS, approve, ask, die, run, work
from tests.views.deciding import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(operator: User, clock: object) -> Plan:
    """Five orders that wait for approval."""
    die(5)
    return ask(operator, SNACKS, Terms(1_000_000, canary=2))


# --- its living part --------------------------------------------------------------------------------------------------


def test_what_has_not_changed_is_not_sent_again(plan: Plan, operator: User, team_lead: User, clock: Clock) -> None:
    client = signed_in(operator)

    def poll() -> str:
        page = client.get(reverse("redrive", args=[plan.pk])).text
        found = re.search(r'id="redrive-shown" name="state" value="([^"]+)".+?hx-get="([^"]+)"', page, re.DOTALL)
        assert found
        return f"{found[2]}&state={found[1]}"

    def unchanged() -> bool:
        answer = client.get(address)
        assert str(instant(clock.now)) in answer.text  # the as-of time is always told
        return answer.get("HX-Reswap") == "none" and 'id="redrive-live"' not in answer.text

    address = poll()
    clock.advance(60_000)
    assert unchanged()
    clock.advance(60_000)
    die(1, first=50)
    assert not unchanged()
    approve(team_lead, plan)
    turned = client.get(address)
    assert (turned.status_code, turned.headers["HX-Retarget"]) == (200, "#main")
    assert 'id="pace"' in turned.text  # the steps of the new state
    run(plan, clock)
    address = poll()
    assert unchanged()
    work("ok", limit=1)
    assert not unchanged()


def test_orders_that_die_after_the_freeze_are_shown_as_died_since(plan: Plan, auditor: User, clock: Clock) -> None:
    client = signed_in(auditor)
    for name in ("redrive", "redrive_live"):
        assert "more died" not in client.get(reverse(name, args=[plan.pk])).text
    clock.advance(1_000)
    die(40, first=100)
    for name in ("redrive", "redrive_live"):
        text = client.get(reverse(name, args=[plan.pk])).text
        assert "Since the list was fixed 40 more died of its causes; they are not on it." in text
    assert Plan.objects.get().planned == 5


def test_the_page_names_who_paused_resumed_slowed_and_stopped_and_when(
    plan: Plan, operator: User, team_lead: User, auditor: User, clock: Clock
) -> None:
    approve(team_lead, plan)
    client = signed_in(auditor)
    address = reverse("redrive", args=[plan.pk])
    batches.set_pace(operator, plan.pk, 500)
    batches.pause(operator, plan.pk, note="WAIT-1")
    page = client.get(address).text
    headline = page[page.index('class="headline"') : page.index("</section>", page.index('class="headline"'))]
    assert "<strong>oda</strong> paused" in headline
    assert "WAIT-1" in headline
    batches.resume(team_lead, plan.pk)
    clock.advance(1_000)
    batches.stop(operator, plan.pk)
    page = client.get(address).text
    for told in (
        "oda</strong> paused",
        "tom</strong> resumed",
        "oda</strong> changed the pace",
        "oda</strong> stopped",
    ):
        assert told in page
    assert "from 1000/s to 0.5/s" in page
    assert str(instant(clock.now)) in page


def test_a_halt_is_told_with_its_instant(operator: User, team_lead: User, clock: Clock) -> None:
    die(20)
    plan = ask(operator, SNACKS, Terms(1_000_000, canary=4))
    approve(team_lead, plan)
    run(plan, clock)
    work("permanent", code="http_503")
    clock.advance(5_000)
    run(plan, clock)
    halted = AuditEvent.objects.get(action="batch.halt").at_ms
    clock.advance(60_000)
    assert signed_in(operator).get(reverse("redrive_live", args=[plan.pk])).text.count(str(instant(halted))) == 1


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_the_number_of_queries_grows_with_neither_orders_nor_causes_nor_rounds(
    operator: User, team_lead: User, auditor: User, clock: Clock
) -> None:
    client = signed_in(auditor)

    def costs(plan: Plan) -> dict[str, int]:
        found = {}
        for name in ("redrive", "redrive_live", "redrive_items", "redrive_decide"):
            with CaptureQueriesContext(connection) as asked:
                assert client.get(reverse(name, args=[plan.pk])).status_code == 200
            found[name] = len(asked)
        return found

    def paused(causes: int, orders: int, rounds: int) -> Plan:
        for k in range(causes):
            die(orders, first=1_000 * (k + 1), code=f"http_{500 + k}", prefix=f"c{causes}-")
        plan = ask(operator, by_filter(Filter(queue="snacks", id_prefix=f"c{causes}-")), Terms(1_000_000, canary=0))
        for _round in range(rounds):
            approve(team_lead, plan)
            batches.pause(operator, plan.pk)
        return plan

    few = costs(paused(2, 1, 1))
    assert costs(paused(9, 20, 4)) == few
    assert max(few.values()) <= 45
