"""What is appended to the record: whole rows of both tables, the head, and what each database is asked."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from queue_app.models import AuditEvent, Head, Redrive
from queue_app.policy.chain import GENESIS, link_hash
from queue_app.store import chain
from queue_app.store.chain import Event, RedriveRow
from tests.audit.story import AT_MS, redrive
from tests.store.changed import Asked, changes

START = Event(AT_MS - 1, "start", "queue:snacks")


def event(by: int, **more: Any) -> Event:
    values: dict[str, Any] = {
        "at_ms": AT_MS, "action": "plan.ask", "target": "plan:1", "actor": by, "name": "oda", "roles": "operator",
        "note": "INC-7", "source": "console", "proof": "session", "detail": {"planned": 2, "comment": "é"},
    }  # fmt: skip
    return Event(**values | more)


def audit_record(given: Event, seq: int, link: int) -> dict[str, Any]:
    """What is hashed of an event."""
    return {
        "seq": seq, "link": link, "at_ms": given.at_ms, "actor": given.actor, "name": given.name, "roles": given.roles,
        "action": given.action, "target": given.target, "note": given.note, "source": given.source,
        "proof": given.proof, "detail": json.dumps(given.detail, sort_keys=True, separators=(",", ":")),
    }  # fmt: skip


def redrive_record(given: RedriveRow, link: int) -> dict[str, Any]:
    """What is hashed of a redrives row."""
    return {
        "job_id": given.job_id, "token": given.token, "at_ms": given.at_ms, "note": given.note, "queue": given.queue,
        "reason": given.reason, "code": given.code, "old_attempts": given.old_attempts,
        "old_max_attempts": given.old_max_attempts, "old_deadline": given.old_deadline,
        "new_max_attempts": given.new_max_attempts, "new_deadline": given.new_deadline,
        "requested_by": given.requested_by, "approved_by": given.approved_by, "batch": given.batch, "solo": given.solo,
        "link": link,
    }  # fmt: skip


def by_id(record: dict[str, Any]) -> dict[str, Any]:
    """The record as its row has it: users under the names of their columns."""
    people = ("requested_by", "approved_by", "actor")
    return {f"{name}_id" if name in people else name: value for name, value in record.items()}


def test_an_event_that_says_little() -> None:
    assert Event(AT_MS - 1, "start", "queue:snacks", None, "", "", "", "code", "", {}) == START


def test_how_columns_and_their_values_are_written() -> None:
    assert chain._columns(("name", "actor", "approved_by")) == "name, actor_id, approved_by_id"
    assert chain._insert("audit", "name, seq, at_ms") == "INSERT INTO audit (name, seq, at_ms) VALUES (%s, %s, %s)"


@pytest.mark.django_db
def test_redrives_come_first_and_each_row_is_linked_to_the_one_before(operator: User, team_lead: User) -> None:
    first_hash = link_hash(GENESIS, audit_record(START, 1, 1))
    assert chain.append([START]) == (1, first_hash)
    rows = [
        redrive("o1", team_lead.pk, requested_by=operator.pk, batch=7, old_attempts=5, new_max_attempts=4, solo=True),
        redrive("o2", team_lead.pk),
    ]
    events = [event(operator.pk), event(team_lead.pk, name="tom", roles="team_lead", note="", detail={})]
    records = [redrive_record(rows[0], 2), redrive_record(rows[1], 3)]
    records += [audit_record(events[0], 2, 4), audit_record(events[1], 3, 5)]
    hashes = [first_hash]
    for record in records:
        hashes.append(link_hash(hashes[-1], record))
    with changes(AuditEvent) as audit, changes(Redrive) as redrives, changes(Head) as heads:
        assert chain.append(events, rows) == (3, hashes[4])
    assert redrives == {
        link: {"id": link, "hash": hashes[link - 1], **by_id(records[link - 2])} for link in (2, 3)
    }  # fmt: skip
    assert audit == {
        seq: {**by_id(records[seq]), "prev": hashes[seq], "hash": hashes[seq + 1], "version": 1} for seq in (2, 3)
    }  # fmt: skip
    assert heads == {"chain": {"seq": 3, "link": 5, "hash": hashes[4]}}


@pytest.mark.django_db
def test_nothing_is_appended(django_assert_num_queries: Any) -> None:
    head = chain.append([START])
    with changes(Head) as heads, changes(AuditEvent) as audit:
        assert chain.append([]) == head
    assert (heads, audit) == ({}, {})


@pytest.mark.django_db
def test_redrives_alone_leave_the_events_number_where_it_was(team_lead: User) -> None:
    with transaction.atomic():
        assert chain.append([START])[0] == 1
        row = redrive("o1", team_lead.pk)
        head = link_hash(link_hash(GENESIS, audit_record(START, 1, 1)), redrive_record(row, 2))
        assert chain.append([], [row]) == (1, head)
    assert Head.objects.values().get(name="chain") == {"name": "chain", "seq": 1, "link": 2, "hash": head}


@pytest.mark.parametrize("postgresql", [False, True])
def test_what_each_database_is_asked(monkeypatch: pytest.MonkeyPatch, postgresql: bool) -> None:
    asked = Asked([(4, 6, GENESIS)]).stand_in(monkeypatch, chain, postgresql=postgresql)
    monkeypatch.setattr("queue_app.store.given.is_postgresql", lambda: postgresql)
    rows = [redrive("o1", 5, solo=True), redrive("o2", 5)]
    seq, head = chain.append([event(9)], rows)
    look, *redrives, told, moved = asked.statements
    lock = " FOR UPDATE" if postgresql else ""
    assert look == (f"SELECT seq, link, hash FROM heads WHERE name = 'chain'{lock}", [])
    hashes = [link_hash(GENESIS, redrive_record(rows[0], 7))]
    hashes.append(link_hash(hashes[0], redrive_record(rows[1], 8)))
    written = [
        [link, *({**redrive_record(row, link), "solo": int(row.solo)}).values(), hash_]
        for link, row, hash_ in zip((7, 8), rows, hashes, strict=True)
    ]
    columns = (
        "id, job_id, token, at_ms, note, queue, reason, code, old_attempts, old_max_attempts, old_deadline, "
        "new_max_attempts, new_deadline, requested_by_id, approved_by_id, batch, solo, link, hash"
    )
    given = "SELECT g.id, g.job_id" if postgresql else "VALUES (%s, %s"
    start = f"INSERT INTO redrives ({columns}) {given}"
    assert {sql[: len(start)] for sql, _ in redrives} == {start}
    found = zip(*redrives[0][1], strict=True) if postgresql else [values for _, values in redrives]
    assert [list(row) for row in found] == written
    assert told[0].startswith("INSERT INTO audit (seq, link, at_ms, actor_id, name,")
    assert told[1] == [*audit_record(event(9), 5, 9).values(), hashes[1], head, 1]
    assert moved == ("UPDATE heads SET seq = %s, link = %s, hash = %s WHERE name = 'chain'", [5, 9, head])
    assert (seq, head) == (5, link_hash(hashes[1], audit_record(event(9), 5, 9)))
