"""Exports: recorded first, sent in bites, holding nothing."""

import json
from collections.abc import Sequence

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client

from queue_app.models import AuditEvent
from queue_app.policy.cells import BOM, Column
from queue_app.policy.chain import parse_anchor
from queue_app.policy.errors import NotAllowed
from queue_app.reads import chain as chain_reads
from queue_app.services import exports
from queue_app.services.exports import BITE, Content, TooManyRows, UnknownFormat, export, in_bites
from queue_app.services.people import Actor
from queue_app.services.verification import verify
from queue_app.store import chain
from tests.conftest import START_MS, Clock
from tests.exports.files import refusals, table

pytestmark = pytest.mark.django_db
COLUMNS = (Column("id", "id"), Column("n", "number"))
FILTER = '{"queue":"snacks"}'


def content(rows: Sequence[tuple], counted: int | None = None) -> Content:
    bites = iter([rows[at : at + BITE] for at in range(0, len(rows), BITE)])
    return Content(len(rows) if counted is None else counted, START_MS, bites)


def made(user: User, rows: Sequence[tuple], form: str = "csv", counted: int | None = None) -> exports.Export:
    return export(user, "demo", COLUMNS, lambda _actor: content(rows, counted), filter=FILTER, form=form)


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
