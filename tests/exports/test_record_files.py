"""The record as a file, as a browser gets it: what it holds, who gets it, and that a slow client holds nothing."""

import gzip
import io
import json
import re
import threading
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queue_app.models import AuditEvent
from queue_app.policy.cells import plain
from queue_app.policy.chain import parse_anchor
from queue_app.reads import chain as chain_reads
from queue_app.services.exports import BITE
from queue_app.services.verification import verify
from queue_app.store import chain, queues
from tests.audit.story import event
from tests.exports.files import refusals, table

pytestmark = pytest.mark.django_db


def many(n: int, actor: int) -> None:
    hostile = ["=1+1", "@x", " -1", "＝1", 'a"b', "a,b"]
    chain.append([event("plan.ask", f"plan:{k}", actor, note=hostile[k % 6], source="code") for k in range(n)])


def test_the_record_as_csv_can_be_read_again(browser: Client, team_lead: User) -> None:
    many(450, team_lead.pk)
    answer = browser.post("/audit/export/", {"format": "csv"})
    assert answer.status_code == 200
    assert re.fullmatch(r'attachment; filename="snackops-audit-[0-9]{8}T[0-9]{6}Z\.csv"', answer["Content-Disposition"])
    assert answer["Cache-Control"] == "no-store"
    facts, rows = table(b"".join(answer).decode())
    assert facts["rows"] == "450"
    assert [plain(row[9]) for row in rows] == [row.note for row in AuditEvent.objects.order_by("seq")[:450]]
    assert [row[14] for row in rows] == [row.hash for row in AuditEvent.objects.order_by("seq")[:450]]
    assert parse_anchor(facts["anchor"]) == chain_reads.anchor()
    assert verify(parse_anchor(facts["anchor"])).whole


def test_the_file_holds_what_the_filter_shows(browser: Client, team_lead: User, operator: User) -> None:
    many(10, team_lead.pk)
    many(5, operator.pk)
    answer = browser.post("/audit/export/", {"format": "jsonl", "who": "oda"})
    head, *rows = map(json.loads, b"".join(answer).decode().splitlines())
    assert head["rows"] == len(rows) == 5
    assert json.loads(head["filter"]) == {"who": "oda"}
    assert {row["actor_id"] for row in rows} == {operator.pk}


def test_an_operators_file_holds_no_refused_attempts(client: Client, operator: User, auditor: User) -> None:
    chain.append(
        [
            event("refused", "plan:1", operator.pk, detail={"tried": "stop", "why": "x"}),
            event("plan.ask", "plan:1", operator.pk),
        ]
    )
    counts = []
    for user in (operator, auditor):
        client.force_login(user)
        _head, *rows = map(json.loads, b"".join(client.post("/audit/export/", {"format": "jsonl"})).splitlines())
        counts.append(sum(row["action"] == "refused" for row in rows))
    assert counts == [0, 1]
    client.force_login(operator)
    assert client.post("/audit/export/", {"outcome": "refused"}).status_code == 403
    assert refusals()[1:] == [("oda", "export:audit", "read_refused", "Only team leads and auditors may do this.")]


@pytest.mark.parametrize("role", ["operator", "team_lead", "auditor"])
def test_every_role_exports(role: str, client: Client, request: pytest.FixtureRequest) -> None:
    client.force_login(request.getfixturevalue(role))
    assert client.post("/audit/export/", {"format": "csv"}).status_code == 200
    assert AuditEvent.objects.get().action == "export"


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "patch", "options", "trace"])
def test_only_post_exports(method: str, browser: Client) -> None:
    assert getattr(browser, method)("/audit/export/").status_code == 405
    assert not AuditEvent.objects.exists()


def test_an_export_without_its_token_is_refused(team_lead: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(team_lead)
    assert client.post("/audit/export/").status_code == 403
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("form", [{"format": "xlsx"}, {"from": "x"}, {"who": ["a", "b"]}, {"action": "A B"}])
def test_a_form_that_cannot_be_meant_is_refused(form: dict, browser: Client) -> None:
    assert browser.post("/audit/export/", form).status_code == 400
    assert not AuditEvent.objects.exists()


def test_somebody_without_a_role_gets_no_file(client: Client) -> None:
    client.force_login(User.objects.create_user("nobody", password=None))
    files = {"/audit/export/": "audit", "/quarantine/export/": "quarantine", "/redrives/1/export/": "redrive"}
    for address, name in files.items():
        assert client.post(address).status_code == 403
        assert refusals()[-1][:3] == ("nobody", f"export:{name}", "export")
    assert AuditEvent.objects.count() == len(files)


def test_bytes_leave_in_bites_of_one_query_each_and_outside_any_transaction(browser: Client, team_lead: User) -> None:
    many(2 * BITE + 1, team_lead.pk)
    depth = len(connection.savepoint_ids)
    with CaptureQueriesContext(connection) as before:
        answer = browser.post("/audit/export/", {"format": "csv"})
    assert not any("FROM audit WHERE seq >" in query["sql"] for query in before)
    sent = iter(answer)
    with CaptureQueriesContext(connection) as asked:
        chunks = list(sent)
    assert len(chunks) == 4  # the head and three bites
    assert [chunk.count(b"\r\n") for chunk in chunks[1:]] == [BITE, BITE, 1]
    assert len(asked) == 3
    assert len(connection.savepoint_ids) == depth


def test_compression_passes_each_bite_on_as_it_comes(browser: Client, team_lead: User) -> None:
    many(2 * BITE + 1, team_lead.pk)
    answer = browser.post("/audit/export/", {"format": "csv"}, headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert "Content-Length" not in answer
    sent: Iterator[bytes] = iter(answer)
    first = [next(sent) for _ in range(3)]  # gzip's own header, the head, one bite
    assert b"plan.ask" in gzip.GzipFile(fileobj=io.BytesIO(b"".join(first))).read1(1_000_000)
    table(gzip.decompress(b"".join([*first, *sent])).decode())


@pytest.mark.django_db(transaction=True)
def test_a_client_that_stops_reading_stops_nobody(browser: Client, team_lead: User) -> None:
    many(2 * BITE, team_lead.pk)
    answer = browser.post("/audit/export/", {"format": "csv"})
    sent = iter(answer)
    next(sent), next(sent)  # and now the client sleeps
    errors: list[Exception] = []

    def elsewhere() -> None:
        try:
            with transaction.atomic():
                chain.append([event("plan.ask", "plan:1", team_lead.pk)])
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=elsewhere)
    other.start()
    other.join(timeout=10)
    assert not other.is_alive()
    assert errors == []
    rest = b"".join(sent)
    assert rest.count(b"\r\n") == BITE  # nor does the file hold what came later
    answer.close()


@pytest.mark.django_db(transaction=True)  # the end of an answer gives its connection back
def test_a_client_that_leaves_ends_the_walk(browser: Client, team_lead: User) -> None:
    many(3 * BITE, team_lead.pk)
    answer = browser.post("/audit/export/", {"format": "csv"})
    sent = iter(answer)
    next(sent), next(sent)
    answer.close()
    with CaptureQueriesContext(connection) as asked:
        assert list(sent) == []
    assert len(asked) == 0


def test_the_quarantine_goes_the_same_way(browser: Client) -> None:
    assert "snacks" in queues.policies()
    answer = browser.post("/quarantine/export/", {"format": "csv", "queue": "snacks"})
    facts, rows = table(b"".join(answer).decode())
    assert (facts["export"], facts["rows"], rows) == ("quarantine", "0", [])
