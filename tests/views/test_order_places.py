"""From a list to an order and on to its neighbours: the place is kept through every step that the order's page offers."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from queue_app.models import Job, Plan
from queue_app.policy.terms import Terms
from queue_app.services import queue
from tests.conftest import Clock
from tests.engine.rows import declare, put
from tests.reads.stories import die
from tests.redrive.story import SNACKS, approve, ask, run
from tests.redrive.story import die as die_five
from tests.views.deciding import signed_in
from tests.views.pages import faults

pytestmark = pytest.mark.django_db


def beside(page: str) -> dict[str, str]:
    """The addresses of the neighbours that a page offers."""
    found = re.findall(r'rel="(prev|next)" href="(/orders/[^"]+)"', page)
    return {name: address.replace("&amp;", "&") for name, address in found}


def link_of(page: str, job_id: str) -> str:
    """The address of an order on the page of a list."""
    return f"/orders/{job_id}/" + page.split(f'href="/orders/{job_id}/')[1].split('"')[0].replace("&amp;", "&")


@pytest.fixture
def plan(operator: User, team_lead: User, clock: Clock) -> Plan:
    """Five redriven orders, the first two delivered."""
    die_five(5)
    made = ask(operator, SNACKS, Terms(1_000_000, canary=0))
    approve(team_lead, made)
    run(made, clock)
    for lease in queue.claim("w", limit=2):
        queue.finish(lease.id, lease.token, "ok")
    return made


def test_from_a_redrives_list_one_goes_from_order_to_order(plan: Plan, operator: User) -> None:
    client = signed_in(operator)
    listed = client.get(reverse("redrive_items", args=[plan.pk])).text
    ids = re.findall(r'data-keys-open href="/orders/([^/]+)/', listed)
    assert len(ids) == 5
    address, walked = link_of(listed, ids[0]), [ids[0]]
    while "next" in (found := beside(client.get(address).text)):
        assert ("prev" in found) == (len(walked) > 1)
        address = found["next"]
        walked.append(address.split("/")[2])
    assert walked == ids
    assert beside(client.get(address).text)["prev"].split("/")[2] == ids[-2]


def test_in_a_part_of_the_list_the_neighbours_are_of_that_part(plan: Plan, operator: User) -> None:
    client = signed_in(operator)
    address = reverse("redrive_items", args=[plan.pk])
    walks = {}
    for which in ("done", "unended"):
        listed = client.get(address, {"which": which}).text
        ids = re.findall(r'data-keys-open href="/orders/([^/]+)/', listed)
        found, walks[which] = {"next": link_of(listed, ids[0])}, []
        while "next" in found:
            walks[which].append(found["next"].split("/")[2])
            found = beside(client.get(found["next"]).text)
        assert walks[which] == ids
    assert sorted(map(len, walks.values())) == [2, 3]


@pytest.mark.parametrize(
    "query",
    ["redrive=x&place=1", "redrive=1", "redrive=1&place=-1", "redrive=1&place=1&which=none", "redrive=999999&place=1"],
)
def test_a_place_that_does_not_exist_has_no_neighbours(plan: Plan, operator: User, query: str) -> None:
    answer = signed_in(operator).get(f"/orders/{some_order()}/?{query}")
    assert (answer.status_code, beside(answer.text)) == (200, {})


def test_the_way_to_the_neighbours_costs_the_same_at_any_length(plan: Plan, operator: User) -> None:
    client = signed_in(operator)
    costs = []
    for place in (1, 3):
        with CaptureQueriesContext(connection) as asked:
            client.get(f"/orders/{some_order()}/?redrive={plan.pk}&place={place}")
        costs.append(len(asked))
    assert costs[0] == costs[1]


def test_a_look_at_the_contents_keeps_the_place_in_the_list(clock: Clock, auditor: User) -> None:
    die(clock, ["a1", "a2", "a3"], "http_422")
    auditor.user_permissions.add(Permission.objects.get(codename="view_payload"))
    client = signed_in(auditor)
    listed = client.get(reverse("quarantine_list"), {"code": "http_422"}).text
    page = client.get(link_of(listed, "a2")).text
    action = page.split('action="/orders/a2/contents/')[1].split('"')[0].replace("&amp;", "&")
    shown = client.post("/orders/a2/contents/" + action)
    assert "This look is in the audit record." in shown.text
    assert faults(shown.text) == []
    assert beside(shown.text) == beside(page)
    assert set(beside(page)) == {"prev", "next"}


def test_a_lead_who_lets_later_orders_pass_keeps_the_place_too(clock: Clock, team_lead: User) -> None:
    declare("tables", ordering="ordered")
    put("k-1", "k-2", at=clock.now, queue="tables", order_key="k")
    (lease,) = queue.claim("w1", queue="tables")
    queue.finish(lease.id, lease.token, "permanent", code="http_422")
    client: Client = signed_in(team_lead)
    answer = client.post(reverse("job_unblock", args=["k-1"]) + "?code=x&cursor=y", {"note": "INC-7", "token": 1})
    assert answer["Location"] == "/orders/k-1/?code=x&cursor=y"


def some_order() -> str:
    """An order that exists."""

    return str(Job.objects.values_list("pk", flat=True).order_by("seq")[0])
