"""The page of one redrive: what a person may do there, what a second click answers, what a forged form gets."""

import csv
import io
import json
import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from queue_app.models import Approval, AuditEvent, Plan, Redrive
from queue_app.policy.approvals import Tightening
from queue_app.policy.terms import Terms
from queue_app.reads import plans as reads
from queue_app.services import queue
from queue_app.templatetags.words import instant
from tests.conftest import PASSWORD, Clock
from tests.redrive.story import SNACKS, approve, ask, die, run, work
from tests.views.deciding import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(operator: User, clock: object) -> Plan:
    """Five orders that wait for approval."""
    die(5)
    return ask(operator, SNACKS, Terms(1_000_000, canary=2))


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


@pytest.mark.parametrize(
    "query",
    [
        *("which=x", "which=all'", "which=waiting&why=gone", "which=skipped&why=no", "why=gone"),
        *("after=-1", "after=" + "9" * 16, "after=١", "which=waiting&after=1e3", "after=", "before=-1", "before=x"),
    ],
)
def test_a_part_of_the_list_that_does_not_exist_is_a_sentence(plan: Plan, auditor: User, query: str) -> None:
    answer = signed_in(auditor).get(f"{reverse('redrive_items', args=[plan.pk])}?{query}")
    assert answer.status_code == 400
    assert "This part of the list does not exist." in answer.text


@pytest.mark.parametrize("query", ["", "which=waiting&after=2", "which=skipped", "after=" + "9" * 9, "before=3"])
def test_a_part_of_the_list_that_does_exist_is_shown(plan: Plan, auditor: User, query: str) -> None:
    answer = signed_in(auditor).get(f"{reverse('redrive_items', args=[plan.pk])}?{query}")
    rows = {"": 5, "which=waiting&after=2": 3, "before=3": 2}.get(query, 0)
    assert (answer.status_code, answer.text.count("data-keys-open")) == (200, rows)


def test_the_orders_are_walked_forth_and_back_without_losing_any(
    operator: User, auditor: User, clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queue_app.views.redrive_items.PAGE_SIZE", 3)
    die(8)
    address = reverse("redrive_items", args=[ask(operator).pk])
    client = signed_in(auditor)

    def walk(query: str, way: str) -> list[list[int]]:
        seen = []
        while query:
            page = client.get(f"{address}?{query}")
            seen.append([row.pos for row in page.context["rows"]])
            found = re.search(rf'rel="{way}" href="\?([^"]+)"', page.text)
            query = found[1].replace("&amp;", "&") if found else ""
        return seen

    assert walk("which=", "next") == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert walk("which=&after=6", "prev") == [[7, 8], [4, 5, 6], [1, 2, 3]]


def test_skipped_orders_are_told_apart_by_why(operator: User, team_lead: User, clock: Clock) -> None:
    die(4)
    die(2, first=20, code="http_422")
    plan = ask(operator)
    approve(team_lead, plan, tightening=Tightening(left_out=(("permanent", "http_422"),)))
    queue.redrive("o1", "INC-5", approved_by=team_lead, requested_by=operator, batch=plan.pk)
    run(plan, clock)
    client = signed_in(operator)
    address = reverse("redrive_items", args=[plan.pk])
    assert client.get(f"{address}?which=skipped").text.count("data-keys-open") == 3
    page = client.get(f"{address}?which=skipped&why=left_out").text
    assert page.count("data-keys-open") == 2
    assert f'href="{address}?which=skipped&amp;why=left_out"' in client.get(reverse("redrive", args=[plan.pk])).text
    sent = client.post(reverse("redrive_export", args=[plan.pk]), {"which": "skipped", "why": "left_out"})
    assert exported(sent)["rows"] == 2


def exported(answer: object) -> dict[str, object]:
    """The columns and rows of a CSV export."""
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    head, *rows = [row for row in csv.reader(io.StringIO(text)) if not row[0].startswith("#")]
    return {"rows": len(rows), "first": dict(zip(head, rows[0], strict=True))}


def test_when_it_was_redriven_and_when_it_ended_are_two_instants(operator: User, team_lead: User, clock: Clock) -> None:
    die(2)
    plan = ask(operator)
    approve(team_lead, plan)
    run(plan, clock)
    redriven_at = clock.now
    clock.advance(90_000)
    work()
    client = signed_in(operator)
    (first, _second) = reads.plan_items(plan.pk)
    assert first.redriven_at_ms is not None
    assert (redriven_at - first.redriven_at_ms < 100, first.ended_at_ms) == (True, redriven_at + 90_000)
    page = client.get(reverse("redrive_items", args=[plan.pk])).text
    assert str(instant(first.redriven_at_ms)) in page
    assert str(instant(first.ended_at_ms)) in page
    row = exported(client.post(reverse("redrive_export", args=[plan.pk]), {"which": "done"}))["first"]
    assert row["redriven_at_ms"] == str(first.redriven_at_ms)  # type: ignore[index]
    assert row["ended_at_ms"] == str(first.ended_at_ms)  # type: ignore[index]
