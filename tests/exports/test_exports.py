"""Exports: recorded first, sent in bites, holding nothing."""

import csv
import gzip
import io
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from queue_app.models import AuditEvent
from queue_app.policy.cells import BOM, Column, plain
from queue_app.policy.chain import parse_anchor
from queue_app.policy.errors import NotAllowed
from queue_app.reads import chain as chain_reads
from queue_app.services import exports
from queue_app.services.exports import BITE, Content, TooManyRows, UnknownFormat, export, in_bites
from queue_app.services.people import Actor
from queue_app.services.verification import verify
from queue_app.store import chain, queues
from tests.audit.story import event
from tests.conftest import START_MS, Clock

pytestmark = pytest.mark.django_db
COLUMNS = (Column("id", "id"), Column("n", "number"))
FILTER = '{"queue":"snacks"}'


def content(rows: Sequence[tuple], counted: int | None = None) -> Content:
    bites = iter([rows[at : at + BITE] for at in range(0, len(rows), BITE)])
    return Content(len(rows) if counted is None else counted, START_MS, bites)


def made(user: User, rows: Sequence[tuple], form: str = "csv", counted: int | None = None) -> exports.Export:
    return export(user, "demo", COLUMNS, lambda _actor: content(rows, counted), filter=FILTER, form=form)


def table(text: str) -> tuple[dict[str, str], list[list[str]]]:
    """The facts of a CSV file, and its rows after the header."""
    rows = list(csv.reader(io.StringIO(text.removeprefix(BOM), newline=""), strict=True))
    facts = {row[0][2:]: row[1] for row in rows if row[0].startswith("# ")}
    return facts, [row for row in rows if not row[0].startswith("# ")][1:]


def test_a_csv_file_says_what_it_is(operator: User, clock: Clock) -> None:
    done = made(operator, [("o1", 1), ("0012", None)])
    text = b"".join(done.chunks).decode()
    facts, rows = table(text)
    assert text.startswith(BOM)
    assert facts == {
        "export": "demo",
        "filter": FILTER,
        "as_of": "2027-01-15T08:00:00.000Z",
        "rows": "2",
        "anchor": str(chain_reads.anchor()),
    }
    assert rows == [["o1", "1"], ["'0012", ""]]
    assert done.file_name == "snackops-demo-20270115T080000Z.csv"
    assert done.content_type == "text/csv; charset=utf-8"


def test_a_json_file_says_what_it_is(operator: User, clock: Clock) -> None:
    done = made(operator, [("0012", 1)], "jsonl")
    head, row = map(json.loads, b"".join(done.chunks).decode().splitlines())
    assert head == {
        "export": "demo",
        "filter": FILTER,
        "as_of": "2027-01-15T08:00:00.000Z",
        "as_of_ms": START_MS,
        "rows": 1,
        "anchor": str(chain_reads.anchor()),
    }
    assert row == {"id": "0012", "n": 1}
    assert done.file_name.endswith(".jsonl")


def test_an_empty_export_is_a_header_only(operator: User) -> None:
    text = b"".join(made(operator, []).chunks).decode()
    assert table(text)[1] == []
    assert text.endswith("id,n\r\n")
    assert b"".join(made(operator, [], "jsonl").chunks).count(b"\n") == 1


def test_a_file_that_holds_fewer_rows_than_were_counted_says_so(operator: User) -> None:
    text = b"".join(made(operator, [("o1", 1)], counted=3).chunks).decode()
    assert text.endswith('"o1",1\r\n# written,1\r\n')
    assert b"".join(made(operator, [], "jsonl", counted=3).chunks).endswith(b'{"written": 0}\n')


def test_the_export_is_recorded_before_a_byte_is_sent_and_its_anchor_proves_it(operator: User, clock: Clock) -> None:
    done = made(operator, [("o1", 1)])
    row = AuditEvent.objects.get()
    assert (row.action, row.target, row.name, row.source, row.proof) == (
        "export",
        "export:demo",
        "oda",
        "console",
        "session",
    )
    assert json.loads(row.detail) == {"as_of_ms": START_MS, "filter": FILTER, "format": "csv", "rows": 1}
    anchor = table(b"".join(done.chunks).decode())[0]["anchor"]
    assert verify(parse_anchor(anchor)).whole


def test_if_the_event_cannot_be_written_there_is_no_export(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr(chain, "append", fails)
    with pytest.raises(DatabaseError):
        made(operator, [("o1", 1)])


@pytest.mark.django_db(transaction=True)  # a database that refuses is given a new connection
def test_a_browser_is_told_to_try_again_and_gets_no_byte(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr(chain, "append", fails)
    answer = browser.post("/audit/export/", {"format": "csv"})
    assert answer.status_code == 503
    assert "Content-Disposition" not in answer
    assert not AuditEvent.objects.exists()


def test_somebody_without_a_role_is_refused_and_the_attempt_is_kept() -> None:
    nobody = User.objects.create_user("nobody", password=None)
    with pytest.raises(NotAllowed):
        made(nobody, [("o1", 1)])
    assert refusals() == [("nobody", "export:demo", "export", "Only operators, team leads and auditors may do this.")]


def refusals() -> list[tuple[str, str, str, str]]:
    """Who was refused what, and why, as the record tells it."""
    rows = AuditEvent.objects.filter(action="refused").order_by("seq")
    return [(row.name, row.target, *(json.loads(row.detail)[name] for name in ("tried", "why"))) for row in rows]


def test_whoever_is_refused_costs_no_reading(operator: User) -> None:
    def read(_actor: Actor) -> Content:
        raise AssertionError("nothing is read for somebody who may not")

    User.objects.filter(pk=operator.pk).update(is_active=False)
    with pytest.raises(NotAllowed):
        export(operator, "demo", COLUMNS, read, filter=FILTER, form="csv")
    with pytest.raises(NotAllowed):
        export(operator, "demo", COLUMNS, read, filter=FILTER, form="csv", channel="cli", proof="shell")
    assert refusals() == 2 * [("oda", "export:demo", "export", "This account is deactivated.")]
    assert list(AuditEvent.objects.values_list("source", "proof", "roles")) == [
        ("console", "session", ""),
        ("cli", "shell", ""),
    ]


def test_a_file_that_needs_one_more_right_is_refused_by_its_name(operator: User, team_lead: User) -> None:
    for user in (operator, team_lead):
        try:
            export(user, "demo", COLUMNS, lambda _a: content([]), filter=FILTER, form="csv", rights=("read_refused",))
        except NotAllowed:
            assert user == operator
    assert refusals() == [("oda", "export:demo", "read_refused", "Only team leads and auditors may do this.")]
    assert AuditEvent.objects.get(action="export").name == "tom"


@pytest.mark.parametrize("form", ["", "CSV", "xlsx", "csv\r\nX: 1", "../csv"])
def test_an_unknown_format_is_refused_and_not_recorded(form: str, operator: User) -> None:
    with pytest.raises(UnknownFormat):
        made(operator, [], form)
    assert not AuditEvent.objects.exists()


def test_more_rows_than_a_file_holds_are_refused(operator: User) -> None:
    with pytest.raises(TooManyRows, match=r"1,000,001 rows, and one file holds at most 1,000,000"):
        made(operator, [], counted=1_000_001)
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("name", ["", "Demo", "a/b", "..", 'a"b', "a\r\nb", "x" * 33])
def test_a_name_that_could_harm_a_file_name_is_a_mistake_of_ours(name: str, operator: User) -> None:
    with pytest.raises(ValueError, match="name of an export"):
        export(operator, name, COLUMNS, lambda _actor: content([]), filter="", form="csv")


@pytest.mark.parametrize("total", [0, 1, BITE - 1, BITE, BITE + 1, 2 * BITE])
def test_a_walk_takes_every_row_once_in_bites(total: int) -> None:
    asked: list[int | None] = []

    def read(after: int | None, limit: int) -> list[int]:
        asked.append(after)
        first = 0 if after is None else after + 1
        return list(range(first, min(first + limit, total)))

    found = list(in_bites(read))
    assert [row for bite in found for row in bite] == list(range(total))
    assert max(map(len, found), default=0) <= BITE
    assert len(asked) <= total // BITE + 1


def test_a_walk_rests_after_each_bite_but_the_last() -> None:
    heard: list[object] = []

    def read(after: int | None, limit: int) -> list[int]:
        heard.append("read")
        first = 0 if after is None else after + 1
        return list(range(first, min(first + limit, 250)))

    for bite in in_bites(read, 100, rest=heard.append):
        heard.append(len(bite))
    assert heard == ["read", 100, exports.REST_S, "read", 100, exports.REST_S, "read", 50]


# --- the record as a file -------------------------------------------------------------------------------------------
@pytest.fixture
def browser(client: Client, as_user: Callable[[Client, User], Client], team_lead: User) -> Client:
    return as_user(client, team_lead)


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
