"""Accepting by itself: what is known of ids, places in the order of acceptance, whole new rows, each database's way."""

import json
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any

import pytest
from django.db import IntegrityError, connection

from queue_app.models import Head, Job, Tombstone
from queue_app.policy.bodies import body_digest
from queue_app.store import arrivals, given
from queue_app.store.arrivals import Arrival
from tests.store.changed import Asked, changes
from tests.store.rows import AT, HASH, job, one_of_each_state

COLUMNS = (
    "id, seq, queue, order_key, quantity, payload, max_attempts, deadline, state, reason, code, attempts, token, "
    "available_at, created_at_ms, changed_at_ms, redriven, waited_ms"
)
PAIR = [Arrival("b", "snacks", "k", 2, '{"a":"\\\\n"}', 4, AT + 9), Arrival("a", "drinks", "", 3, "{}", 5, AT + 8)]


def whole(one: Arrival, seq: int) -> dict[str, object]:
    """Its new row."""
    return one._asdict() | {
        "seq": seq, "state": "pending", "reason": "", "code": "", "attempts": 0, "token": 0, "owner": None,
        "lease_until": None, "available_at": AT, "created_at_ms": AT, "changed_at_ms": AT, "redriven": 0,
        "batch": None, "waited_ms": 0,
    }  # fmt: skip


# --- known ids ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_id_is_known_by_its_job_or_by_its_tombstone() -> None:
    one_of_each_state()
    job("other", 9, queue="drinks", order_key="k", quantity=8, payload='{"a":1}')
    Tombstone.objects.create(job_id="gone", body_digest=HASH, quantity=7, done_at_ms=AT, removed_at_ms=AT)
    Tombstone.objects.create(job_id="done", body_digest=HASH, quantity=7, done_at_ms=AT, removed_at_ms=AT)
    body = body_digest("snacks", 7, '{"item":"chips"}', "")
    assert arrivals.known_bodies(["none", "other", "gone", "done", "new"]) == {
        "other": body_digest("drinks", 8, '{"a":1}', "k"), "gone": HASH, "done": HASH, "new": body,
    }  # fmt: skip
    assert arrivals.known_bodies(["none"]) == {}


@pytest.mark.parametrize(
    ("postgresql", "here", "named"),
    [
        (False, "IN (SELECT value FROM json_each(%s))", '["a", "b"]'),
        (True, "= ANY(string_to_array(%s, ','))", "a,b"),
    ],
)
def test_what_is_asked_of_the_ids(monkeypatch: pytest.MonkeyPatch, postgresql: bool, here: str, named: str) -> None:
    asked = Asked([("a", "snacks", 1, "{}", "k")], [("b", HASH)]).stand_in(monkeypatch, arrivals, postgresql=postgresql)
    assert arrivals.known_bodies([]) == {}
    assert asked.statements == []
    assert arrivals.known_bodies(["b", "a"]) == {"a": body_digest("snacks", 1, "{}", "k"), "b": HASH}
    assert asked.statements == [
        (f"SELECT id, queue, quantity, payload, order_key FROM jobs WHERE id {here}", [named]),
        (f"SELECT job_id, body_digest FROM tombstones WHERE job_id {here}", [named]),
    ]


# --- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_places_come_after_each_other_and_never_twice() -> None:
    drawn = [arrivals.next_seqs(n) for n in (3, 1, 2)]
    places = [place for some in drawn for place in some]
    assert [len(some) for some in drawn] == [3, 1, 2]
    assert places == list(range(places[0], places[0] + 6))
    if connection.vendor == "sqlite":
        assert Head.objects.get(pk="jobs").seq == places[-1]


@pytest.mark.parametrize(
    ("postgresql", "answer", "asked_for"),
    [
        (False, [(7,)], "UPDATE heads SET seq = seq + %s WHERE name = 'jobs' RETURNING seq"),
        (True, [(7,), (4,), (5,)], "SELECT nextval('jobs_seq') FROM generate_series(1, %s)"),
    ],
)
def test_what_is_asked_for_places(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, answer: list[tuple[int]], asked_for: str
) -> None:
    asked = Asked(answer).stand_in(monkeypatch, arrivals, postgresql=postgresql)
    assert arrivals.next_seqs(3) == ([4, 5, 7] if postgresql else [5, 6, 7])
    assert asked.statements == [(asked_for, [3])]


# --- new rows -------------------------------------------------------------------------------------------------------


@pytest.fixture
def seqs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places from 11 on."""
    places = count(11)
    monkeypatch.setattr(arrivals, "next_seqs", lambda n: [next(places) for _ in range(n)])


@pytest.mark.django_db
@pytest.mark.usefixtures("seqs")
@pytest.mark.parametrize("by_copy", [1, 2, 3])
def test_new_orders_stand_whole_and_in_the_order_given(monkeypatch: pytest.MonkeyPatch, by_copy: int) -> None:
    monkeypatch.setattr(arrivals, "ROWS_BY_COPY", by_copy)
    with changes(Job) as changed:
        assert arrivals.insert(PAIR, AT) == {"a", "b"}
    assert changed == {"b": whole(PAIR[0], 11), "a": whole(PAIR[1], 12)}


@pytest.mark.django_db
@pytest.mark.usefixtures("seqs")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_statement_takes_so_many_at_most_and_none_is_forgotten(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(arrivals, "ROWS_PER_STATEMENT", size)
    some = [PAIR[0]._replace(id=name) for name in "edcba"]
    with changes(Job) as changed:
        assert arrivals.insert(some, AT) == set("abcde")
    assert changed == {one.id: whole(one, seq) for seq, one in enumerate(some, 11)}


def test_an_order_without_a_place_is_a_mistake_that_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "next_seqs", lambda n: list(range(n - 1)))
    with pytest.raises(ValueError, match="shorter"):
        arrivals.insert(PAIR, AT)


INSERT = (
    f"INSERT INTO jobs ({COLUMNS}) SELECT g.id, g.seq, g.queue, g.order_key, g.quantity, g.payload, g.max_attempts, "
    "g.deadline, 'pending', '', '', 0, 0, %s, %s, %s, 0, 0 FROM "
)
SORTED = [("a", 12, "drinks", "", 3, "{}", 5, AT + 8), ("b", 11, "snacks", "k", 2, '{"a":"\\\\n"}', 4, AT + 9)]


@pytest.mark.usefixtures("seqs")
@pytest.mark.parametrize("postgresql", [False, True])
@pytest.mark.parametrize("copied", [None, False])
def test_in_id_order_and_on_postgresql_unless_another_host_was_faster(
    monkeypatch: pytest.MonkeyPatch, postgresql: bool, copied: bool | None
) -> None:
    """None: fewer rows than COPY is worth; False: COPY met an id that exists."""
    tried: list[object] = []
    monkeypatch.setattr(arrivals, "ROWS_BY_COPY", 2 if copied is False else 3)
    monkeypatch.setattr(arrivals, "_copied", lambda rows, now_ms: tried.append((list(rows), now_ms)))
    asked = Asked([("b",)]).stand_in(monkeypatch, arrivals, given, postgresql=postgresql)
    assert arrivals.insert(PAIR, AT) == ({"b"} if postgresql else {"a", "b"})
    assert tried == ([(SORTED, AT)] if postgresql and copied is False else [])
    ((sql, values),) = asked.statements
    kinds = ["text", "bigint", "text", "text", "integer", "text", "integer", "bigint"]
    if postgresql:
        assert sql == (
            f"{INSERT}unnest({', '.join(f'%s::{kind}[]' for kind in kinds)}) AS g(id, seq, queue, order_key, quantity, "
            "payload, max_attempts, deadline) ORDER BY g.id ON CONFLICT (id) DO NOTHING RETURNING id"
        )
        assert values == [AT, AT, AT, *(list(column) for column in zip(*SORTED, strict=True))]
    else:
        assert sql.startswith(INSERT)
        assert sql.endswith("FROM json_each(%s)) AS g")
        assert values == [AT, AT, AT, json.dumps(SORTED)]


@pytest.mark.usefixtures("seqs")
@pytest.mark.parametrize("postgresql", [False, True])
def test_copied_rows_are_all_placed(monkeypatch: pytest.MonkeyPatch, postgresql: bool) -> None:
    monkeypatch.setattr(arrivals, "ROWS_BY_COPY", 2)
    monkeypatch.setattr(arrivals, "_copied", lambda _rows, _now_ms: True)
    asked = Asked().stand_in(monkeypatch, arrivals, given, postgresql=postgresql)
    assert arrivals.insert(PAIR, AT) == {"a", "b"}
    assert len(asked.statements) == (0 if postgresql else 1)


class Copying:
    """Stands in for a connection to PostgreSQL that takes one COPY."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked, self.written, self.error = "", list[str](), error
        self.wrap_database_errors = nullcontext()

    def cursor(self) -> Any:
        return nullcontext(self)

    @contextmanager
    def copy(self, sql: str) -> Any:
        self.asked = sql
        yield self
        if self.error:
            raise self.error

    def write(self, text: str) -> None:
        self.written.append(text)


@pytest.mark.parametrize(
    ("error", "copied"), [(None, True), (IntegrityError("exists"), False), (ZeroDivisionError("x"), None)]
)
def test_copy_takes_them_all_or_says_that_one_exists(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, copied: bool | None
) -> None:
    here = Copying(error)
    monkeypatch.setattr(arrivals, "connection", here)
    monkeypatch.setattr(arrivals.transaction, "atomic", nullcontext)
    monkeypatch.setattr(arrivals, "ROWS_PER_STATEMENT", 2)
    rows = [*SORTED, ("c", 13, "snacks", "", 1, "{}", 3, AT)]
    if copied is None:
        with pytest.raises(ZeroDivisionError):
            arrivals._copied(rows, AT)
        return
    assert arrivals._copied(rows, AT) is copied
    rest = f"\tpending\t\t\t0\t0\t{AT}\t{AT}\t{AT}\t0\t0\n"
    assert here.asked == f"COPY jobs ({COLUMNS}) FROM STDIN"
    assert here.written == [
        f"a\t12\tdrinks\t\t3\t{{}}\t5\t{AT + 8}{rest}" + f'b\t11\tsnacks\tk\t2\t{{"a":"\\\\\\\\n"}}\t4\t{AT + 9}{rest}',
        f"c\t13\tsnacks\t\t1\t{{}}\t3\t{AT}{rest}",
    ]
