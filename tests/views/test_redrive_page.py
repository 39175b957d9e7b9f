"""The page of one redrive: what a person may do there, what a second click answers, what a forged form gets."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from queue_app.models import Approval, AuditEvent, Plan, Redrive
from queue_app.policy.terms import Terms
from tests.conftest import PASSWORD
from tests.redrive.story import SNACKS, approve, ask, die

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(operator: User, clock: object) -> Plan:
    """Five orders that wait for approval."""
    die(5)
    return ask(operator, SNACKS, Terms(1_000_000, canary=2))


def signed_in(user: User) -> Client:
    """A browser of this person."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def form(plan: Plan, **changed: object) -> dict[str, object]:
    """The decision's form as the page fills it."""
    plan.refresh_from_db()
    fields = {
        "digest": plan.digest,
        "round": plan.round + 1,
        "note": "CHG-1",
        "password": PASSWORD,
        "decision": "approve",
        "rate": "1000",
        "canary": "2",
        "typed": str(plan.planned),
    }
    return {**fields, **changed}


def decide(user: User, plan: Plan, **changed: object) -> tuple[int, str]:
    """Status and text of the answer."""
    answer = signed_in(user).post(reverse("redrive_decide", args=[plan.pk]), form(plan, **changed), follow=False)
    return answer.status_code, answer.text


def test_a_lead_approves_and_the_second_submit_answers_with_the_first_receipt(plan: Plan, team_lead: User) -> None:
    client = signed_in(team_lead)
    address = reverse("redrive_decide", args=[plan.pk])
    sent = form(plan)
    first = client.post(address, sent, follow=True)
    again = client.post(address, sent, follow=True)
    assert first.redirect_chain
    assert again.redirect_chain
    assert "tom was first" in again.text
    assert Approval.objects.count() == 1
    assert AuditEvent.objects.filter(action="plan.approve").count() == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"password": "wrong"}, "The password is not right."),
        ({"digest": "0" * 64}, "changed since this page was loaded"),
        ({"round": 7}, "changed since this page was loaded"),
        ({"note": "two words"}, "note"),
        ({"note": ""}, "required"),
        ({"rate": "5000"}, "slower"),
        ({"canary": "1"}, "larger"),
        ({"left_out": ["permanent|http_503"]}, "reject it instead"),
        ({"typed": "4"}, "Type the number"),
        ({"round": "1 OR 1=1"}, "whole number"),
        ({"digest": "x" * 100}, "at most 64"),
    ],
)
def test_what_cannot_be_approved_gets_a_sentence_and_changes_nothing(
    plan: Plan, team_lead: User, changed: dict[str, object], said: str
) -> None:
    Plan.objects.filter(pk=plan.pk).update(expected=5)
    status, text = decide(team_lead, plan, **changed)
    if said == "Type the number" and status == 302:
        pytest.fail("the typed number was not asked for")
    assert status == 422
    assert said.lower() in text.lower()
    plan.refresh_from_db()
    assert plan.state == "proposed"
    assert not Approval.objects.exists()


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_who_may_not_decide_is_refused_and_the_attempt_recorded(
    plan: Plan, role: str, request: pytest.FixtureRequest
) -> None:
    status, _text = decide(request.getfixturevalue(role), plan)
    assert status == 422
    plan.refresh_from_db()
    assert plan.state == "proposed"
    assert AuditEvent.objects.filter(action="refused", target=f"plan:{plan.pk}").exists()


def test_a_lead_who_lost_the_right_between_page_and_submit_is_refused(plan: Plan, team_lead: User) -> None:
    client = signed_in(team_lead)
    assert client.get(reverse("redrive_decide", args=[plan.pk])).status_code == 200
    team_lead.groups.clear()
    assert client.post(reverse("redrive_decide", args=[plan.pk]), form(plan)).status_code == 403
    team_lead.is_active = False
    team_lead.save()
    assert client.post(reverse("redrive_decide", args=[plan.pk]), form(plan)).status_code == 302
    plan.refresh_from_db()
    assert plan.state == "proposed"


def test_forged_fields_are_not_taken(plan: Plan, team_lead: User, auditor: User) -> None:
    decide(team_lead, plan, approved_by=auditor.pk, requested_by=auditor.pk, state="running", rate_mj=1)
    made = Approval.objects.get()
    assert (made.by_id, made.rate_mj) == (team_lead.pk, 1_000_000)
    plan.refresh_from_db()
    assert plan.requested_name == "oda"


@pytest.mark.parametrize("number", ["0", "99999", "9" * 18, "9" * 30, "-1", "1 OR 1=1", "%00"])
def test_a_redrive_that_is_not_there_is_not_found(team_lead: User, number: str) -> None:
    assert signed_in(team_lead).get(f"/redrives/{number}/").status_code == 404


def test_steering_by_form_and_a_step_that_is_not_possible_is_a_sentence(
    plan: Plan, operator: User, team_lead: User
) -> None:
    address = reverse("redrive_move", args=[plan.pk])
    client = signed_in(operator)
    early = client.post(address, {"move": "pause"}, follow=True)
    assert "cannot be paused" in early.text
    approve(team_lead, plan)
    assert "paused" in client.post(address, {"move": "pause"}, follow=True).text
    assert "Nothing had to be done" in client.post(address, {"move": "pause"}, follow=True).text
    client.post(address, {"move": "slow", "rate": "0.5"})
    plan.refresh_from_db()
    assert (plan.state, plan.rate_mj) == ("paused", 500)
    faster = client.post(address, {"move": "slow", "rate": "2000"}, follow=True)
    assert "approved" in faster.text
    assert "no such step" in client.post(address, {"move": "explode"}, follow=True).text
    client.post(address, {"move": "stop"})
    plan.refresh_from_db()
    assert plan.state == "stopped"
    assert not Redrive.objects.exists()


def test_the_list_is_exported_as_it_is_shown(plan: Plan, auditor: User) -> None:
    client = signed_in(auditor)
    answer = client.post(reverse("redrive_export", args=[plan.pk]), {"which": "waiting", "format": "csv"})
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    rows = [row for row in csv.reader(io.StringIO(text)) if not row[0].startswith("#")]
    assert [row[1] for row in rows[1:]] == ["o1", "o2", "o3", "o4", "o5"]
    none = client.post(reverse("redrive_export", args=[plan.pk]), {"which": "done", "format": "jsonl"})
    (head,) = [json.loads(line) for line in b"".join(none.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert head["rows"] == 0
    assert client.post(reverse("redrive_export", args=[plan.pk]), {"which": "all'"}).status_code == 400


@pytest.mark.parametrize("query", ["which=x", "after=-1", "after=9" * 9, "after=١", "which=waiting&after=1e3"])
def test_a_part_of_the_list_that_does_not_exist_is_a_sentence(plan: Plan, auditor: User, query: str) -> None:
    address = reverse("redrive_items", args=[plan.pk])
    assert signed_in(auditor).get(f"{address}?{query}").status_code in (200, 400)
    assert signed_in(auditor).get(f"{address}?which=waiting&after=2").text.count("data-keys-open") == 3


def test_the_number_of_queries_does_not_grow_with_the_list(
    operator: User, auditor: User, clock: object, django_assert_max_num_queries: object
) -> None:
    die(150)
    big = ask(operator, SNACKS, Terms(1_000_000))
    client = signed_in(auditor)
    for name in ("redrive", "redrive_live", "redrive_items", "redrive_decide"):
        with django_assert_max_num_queries(45):  # type: ignore[operator]
            assert client.get(reverse(name, args=[big.pk])).status_code == 200
