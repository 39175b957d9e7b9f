"""The audit pages, as each role sees them."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queue_app.models import AuditEvent, Plan
from queue_app.reads import chain as chain_reads
from queue_app.store import chain, triggers
from queue_app.store.chain import Event
from tests.audit.story import event

Read = Callable[[User], Client]
pytestmark = pytest.mark.django_db

FAR = "9" * 19
HOSTILE = [
    *("who=%00", "who=" + "x" * 151, "who=a&who=b", "action=DROP TABLE", "action=%3Cscript%3E", "action=" + "a" * 49),
    *("target=%E2%80%AE", "target=a b", "target=" + "x" * 9_000, "from=yesterday", "from=1e9", "from=-1", "to=%C2%B2"),
    *("from=" + "9" * 16, "from=" + "9" * 5_000, "to=2026-13-01", "from=2026-11-29&to=2026-11-28", "outcome=ok"),
    *("steps=1", "before=x", "before=", "before=-1", "before=1&before=2", "before=" + FAR, "after=" + "9" * 5_000),
    *("after=%D9%A1", "page=2", "order=seq;drop", "who=o&constructor=x", "from=2026-11-29T02%3A30%EF%BC%9A00"),
]
EMPTY = ["who=nobody", "who=%25", "action=never.heard", "target=R-999999", "target='%3B--", "target=job:x", "before=0"]
EMPTY += ["from=253402300799999", "to=0", "after=" + "9" * 18, "who=%F0%9F%8D%BF", "target=plan:" + FAR, "target=%25"]


@pytest.mark.parametrize("query", HOSTILE)
def test_a_parameter_that_cannot_be_meant_gets_400_and_a_sentence(query: str, auditor: User, read: Read) -> None:
    answer = read(auditor).get(f"/audit/?{query}")
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize("query", EMPTY)
def test_a_filter_that_fits_nothing_gets_an_empty_list(query: str, auditor: User, redrive: Plan, read: Read) -> None:
    answer = read(auditor).get(f"/audit/?{query}")
    assert answer.status_code == 200
    assert answer.context["page"].rows == []


@pytest.mark.parametrize("path", ["0", "-1", "01", "1x", FAR, "9" * 5_000, "999999", "%D9%A1", "1_0"])
def test_an_event_that_is_none_is_not_found(path: str, auditor: User, redrive: Plan, read: Read) -> None:
    assert read(auditor).get(f"/audit/{path}/").status_code == 404


def test_the_list_tells_what_happened_in_whole_sentences(auditor: User, redrive: Plan, read: Read) -> None:
    answer = read(auditor).get("/audit/")
    told = [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", cell)).strip() for cell in _cells(answer.text)]
    plan = f"Redrive R-{redrive.pk}"
    assert told == [
        f"The outcomes of {plan} are complete and sealed",
        f"{plan} ended: every order had its turn",
        f"{plan} began",
        f"tom approved {plan}",
        f"The list of {plan} is fixed",
        f"oda asked for {plan}",
        "oda recorded an investigation of order o1",
    ]


def _cells(page: str) -> list[str]:
    return re.findall(r'<td data-label="Event">(.*?)<span class="sub"', page, re.DOTALL)


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "tom approved Redrive R-{}"),
        ("ja", "tom が再投入 R-{} を承認しました"),
        ("zh-hans", "tom 批准了重新投递 R-{}"),
    ],
)
def test_sentences_are_in_the_language_of_the_reader(
    language: str, sentence: str, auditor: User, redrive: Plan, read: Read
) -> None:
    answer = read(auditor).get("/audit/?action=plan.approve", headers={"Accept-Language": language})
    assert sentence.format(redrive.pk) in re.sub(r"<[^>]+>", "", answer.text)


def test_an_action_that_nobody_knows_is_shown_as_it_is(auditor: User, read: Read) -> None:
    chain.append([event("moon.landing", "moon:1", auditor.pk), event("<b>", "<i>", auditor.pk, note="<u>")])
    page = read(auditor).get("/audit/").text
    assert "<code>moon.landing</code>" in page
    assert "moon:1" in page
    assert "<code>&lt;b&gt;</code>" in page
    assert "<i>" not in page
    assert "<u>" not in page


def test_steps_of_the_redriver_are_shown_only_when_asked_for(auditor: User, redrive: Plan, read: Read) -> None:
    assert AuditEvent.objects.filter(action="batch.tick").exists()
    for query, shown in (
        ("", False),
        ("?steps=yes", True),
        ("?action=batch.tick", True),
        (f"?target=R-{redrive.pk}", False),
    ):
        rows = read(auditor).get(f"/audit/{query}").context["page"].rows
        assert any(row.action == "batch.tick" for row in rows) is shown, query


@pytest.mark.parametrize("role", ["team_lead", "auditor"])
def test_a_lead_and_an_auditor_see_refused_attempts(
    role: str, refusal: str, read: Read, request: pytest.FixtureRequest
) -> None:
    page = read(request.getfixturevalue(role)).get("/audit/?outcome=refused").text
    assert "was refused: approve" in page
    assert refusal in page
    seq = AuditEvent.objects.get(action="refused").seq
    assert refusal in read(request.getfixturevalue(role)).get(f"/audit/{seq}/").text


def test_a_refusal_is_said_in_the_language_of_the_reader(auditor: User, refusal: str, read: Read) -> None:
    chain.append(
        [event("refused", "plan:1", auditor.pk, detail={"tried": "stop", "why": "Some sentence of long ago."})]
    )
    page = read(auditor).get("/audit/?outcome=refused", headers={"Accept-Language": "ja"}).text
    assert refusal == "Only team leads may do this."
    assert refusal not in page
    assert "チームリーダー" in page
    assert '<span lang="en">Some sentence of long ago.</span>' in page


def test_an_operator_never_sees_refused_attempts(operator: User, refusal: str, read: Read) -> None:
    client = read(operator)
    seq = AuditEvent.objects.get(action="refused").seq
    for query in ("", "?who=oda", "?action=plan.ask", "?steps=yes"):
        page = client.get(f"/audit/{query}")
        assert page.status_code == 200
        assert all(row.action != "refused" for row in page.context["page"].rows), query
        assert refusal not in page.text
        assert 'name="outcome"' not in page.text
    for path in ("?outcome=refused", "?action=refused", f"{seq}/"):
        page = client.get(f"/audit/{path}")
        assert page.status_code == 403
        assert "Only team leads and auditors may do this." in page.text
        assert refusal not in page.text


def test_the_page_and_each_event_show_an_anchor_that_verifies(auditor: User, redrive: Plan, read: Read) -> None:
    newest = chain_reads.anchor()
    assert str(newest) in read(auditor).get("/audit/").text
    for row in AuditEvent.objects.all():
        page = read(auditor).get(f"/audit/{row.seq}/").text
        assert f"{row.seq}:{row.hash}" in page
        assert row.prev in page


def test_from_one_redrive_an_auditor_reaches_everything_and_comes_back(
    auditor: User, redrive: Plan, read: Read
) -> None:
    client = read(auditor)
    listed = client.get(f"/audit/?target=R-{redrive.pk}").text
    asked = AuditEvent.objects.get(action="plan.ask")
    assert f'href="/audit/{asked.seq}/"' in listed
    page = client.get(f"/audit/{asked.seq}/").text
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "Asked for by oda" in text
    assert re.search(r"Approved by tom · OK-1", text)
    assert "Why INC-1" in text
    assert "3 orders as of" in text
    assert redrive.digest in page
    assert "3 redriven, 0 skipped, 0 waiting" in text
    assert "3 delivered, 0 back in quarantine, 0 not ended yet" in text
    assert redrive.outcome_digest in page
    decided = AuditEvent.objects.get(action="plan.approve")
    assert f'href="/audit/{decided.seq}/"' in page
    assert f'href="/audit/?target=plan%3A{redrive.pk}"' in page


def test_neighbours_are_named_also_where_they_are_redriven_orders(auditor: User, redrive: Plan, read: Read) -> None:
    tick = AuditEvent.objects.filter(action="batch.tick").earliest("seq")
    page = re.sub(r"\s+", " ", read(auditor).get(f"/audit/{tick.seq}/").text)
    assert f"redriven after token 1, link {tick.link - 1}" in page


@pytest.mark.parametrize("path", ["", "?who=oda", "?target=job:o1", "?from=0&to=253402300799999", "?steps=yes", "1/"])
def test_the_number_of_queries_does_not_grow(path: str, auditor: User, redrive: Plan, read: Read) -> None:
    client = read(auditor)
    client.get(f"/audit/{path}")
    with CaptureQueriesContext(connection) as few:
        client.get(f"/audit/{path}")
    for _ in range(20):
        chain.append([event("payload_look", "job:o1", redrive.requested_by_id) for _ in range(10)])
    with CaptureQueriesContext(connection) as many:
        client.get(f"/audit/{path}")
    assert len(many) <= len(few) <= 22  # a page that is full has no need to ask how far it searched


def test_a_list_without_a_head_row_still_opens(auditor: User, redrive: Plan, read: Read) -> None:
    triggers.drop_all()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM heads WHERE name = 'chain'")
        cursor.execute("UPDATE audit SET detail = '[]', target = 'plan:x' WHERE seq = 1")
        cursor.execute("UPDATE audit SET detail = 'no json' WHERE seq = 2")
    client = read(auditor)
    assert "The head of the record is missing." in client.get("/audit/").text
    assert client.get("/audit/1/").status_code == client.get("/audit/2/").status_code == 200


def test_somebody_without_a_role_reads_nothing(read: Read, redrive: Plan) -> None:
    nobody = User.objects.create_user("nobody", password=None)
    for path in ("", "1/"):
        assert read(nobody).get(f"/audit/{path}").status_code == 403


def test_a_stranger_is_sent_to_the_sign_in(client: Client, redrive: Plan) -> None:
    for path in ("", "1/"):
        assert client.get(f"/audit/{path}").status_code == 302
    assert client.post("/audit/export/").status_code == 302


@pytest.mark.parametrize("path", ["", "1/"])
@pytest.mark.parametrize("method", ["post", "put", "delete", "patch", "options", "trace"])
def test_reading_knows_get_and_head_only(path: str, method: str, team_lead: User, redrive: Plan, read: Read) -> None:
    client = read(team_lead)
    assert getattr(client, method)(f"/audit/{path}").status_code == 405
    assert client.head(f"/audit/{path}").status_code == 200


def test_names_of_that_moment_stay_when_a_person_is_renamed(auditor: User, redrive: Plan, read: Read) -> None:
    User.objects.filter(username="oda").update(username="odette")
    rows = read(auditor).get("/audit/?who=odette&action=plan.ask").context["page"].rows
    assert [row.name for row in rows] == ["oda"]


def test_programs_are_found_by_their_name(auditor: User, redrive: Plan, read: Read) -> None:
    chain.append([Event(1, "account_set", "user:1", source="cli")])
    for name, action in (("cli", "account_set"), ("redriver", "batch.begin")):
        rows = read(auditor).get(f"/audit/?who={name}").context["page"].rows
        assert action in {row.action for row in rows}
