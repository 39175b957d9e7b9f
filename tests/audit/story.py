"""A small record with events and redrives rows mixed, and the ways of tampering with it.

Statements are plain SQL without parameters, so that the same list works on a raw file and on both databases.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import models

from queue_app.models import AuditEvent, Redrive
from queue_app.policy.chain import AUDIT_FIELDS, REDRIVE_FIELDS, USERS, link_hash
from queue_app.store import chain
from queue_app.store.chain import Event, RedriveRow

AT_MS = 1_800_000_000_000
Run = Callable[[str], list[tuple]]
"""Runs one statement and gives back its rows, if it has any."""


def event(action: str, target: str, actor: int | None = None, **more: object) -> Event:
    """One event by a person or, without one, by a program."""
    name, roles = ("oda", "operator") if actor else ("", "")
    return Event(AT_MS, action, target, actor=actor, name=name, roles=roles, **more)  # type: ignore[arg-type]


def redrive(job_id: str, approved_by: int, **more: object) -> RedriveRow:
    """One job restarted."""
    values = {
        "job_id": job_id,
        "token": 3,
        "at_ms": AT_MS,
        "note": "INC-7",
        "queue": "snacks",
        "reason": "exhausted",
        "code": "http_503",
        "old_attempts": 3,
        "old_max_attempts": 3,
        "old_deadline": AT_MS + 1,
        "new_max_attempts": 3,
        "new_deadline": AT_MS + 86_400_000,
        "requested_by": None,
        "approved_by": approved_by,
        "batch": None,
        "solo": False,
    }
    return RedriveRow(**{**values, **more})  # type: ignore[arg-type]


def tell(oda: int, tom: int) -> None:
    """audit 1 | redrives 2, 3, audit 2 (link 4) | audit 3, 4 (links 5, 6) | redrives 7, 8 | audit 5 (link 9)."""
    chain.append([event("plan", "plan:1", oda, note="INC-7", source="console", proof="session", detail={"planned": 2})])
    chain.append(
        [event("redrive", "plan:1")], [redrive("o1-1", tom, requested_by=oda, batch=1), redrive("o1-2", tom, batch=1)]
    )
    chain.append([event("approve", "plan:1", tom, note="ok"), event("pause", "plan:1", oda)])
    chain.append([event("end", "plan:1")], [redrive("o2-1", tom), redrive("o2-2", tom)])


@dataclass(frozen=True)
class Tampering:
    """What was done, and where the proof must stop: `what` must be among the differences, `where` in the sentence."""

    title: str
    statements: tuple[str, ...]
    what: str
    where: str


def _other_value(field: models.Field) -> str:
    """SQL for another value of the same type."""
    column = field.column
    if isinstance(field, models.BooleanField):
        return f"CASE WHEN {column} THEN FALSE ELSE TRUE END"
    if isinstance(field, (models.CharField, models.TextField)):
        return f"CASE {column} WHEN '' THEN 'x' ELSE substr({column} || 'x', 2) END"  # no longer than before
    if column in {"actor_id", "approved_by_id", "requested_by_id"}:
        return f"(SELECT max(id) FROM auth_user WHERE id <> coalesce({column}, 0))"
    return f"coalesce({column}, 0) + 1000"


def every_column() -> list[Tampering]:
    """Each column of both tables changed in a row in the middle, and in the last row."""
    found = []
    for model, key, middle, last in ((AuditEvent, "seq", 3, 5), (Redrive, "id", 3, 8)):
        table = model._meta.db_table
        for field in model._meta.concrete_fields:
            for row in (middle, last):
                sql = f"UPDATE {table} SET {field.column} = {_other_value(field)} WHERE {key} = {row}"
                what = {"seq": "seq", "link": "gap", "id": "id", "prev": "prev", "version": "version"}
                found.append(Tampering(f"{table}.{field.column} of {row}", (sql,), what.get(field.column, "hash"), ""))
    return found


_EVENT = ", ".join(f"{name}_id" if name in USERS else name for name in AUDIT_FIELDS)
_REDRIVE = ", ".join(f"{name}_id" if name in USERS else name for name in REDRIVE_FIELDS)


def _copy(seq: int, link: int) -> str:
    columns = f"{_EVENT}, prev, hash, version".replace("seq, link", f"{seq}, {link}", 1)
    return f"INSERT INTO audit ({_EVENT}, prev, hash, version) SELECT {columns} FROM audit WHERE seq = 3"


_COPY_REDRIVE = (
    f"INSERT INTO redrives (id, {_REDRIVE}, hash) "
    f"SELECT 5, {_REDRIVE.replace('job_id', "'o9-9'").replace(' link', ' 5')}, hash FROM redrives WHERE id = 3"
)


def _swap(table: str, key: str, first: int, second: int, shift: str) -> tuple[str, ...]:
    """Two rows change places: everything but their contents."""
    return tuple(
        f"UPDATE {table} SET {shift.format(to=to)} WHERE {key} = {row}"
        for row, to in ((first, 900), (second, first), (900, second))
    )


ROWS = [
    Tampering("first event deleted", ("DELETE FROM audit WHERE seq = 1",), "gap", "Link 1 is missing"),
    Tampering("middle event deleted", ("DELETE FROM audit WHERE seq = 3",), "gap", "after audit seq 2 (link 4)"),
    Tampering("last event deleted", ("DELETE FROM audit WHERE seq = 5",), "cut", "its tail is cut off"),
    Tampering("middle redrives row deleted", ("DELETE FROM redrives WHERE id = 2",), "gap", "Link 2 is missing"),
    Tampering("all rows deleted", ("DELETE FROM redrives", "DELETE FROM audit"), "cut", "ends at link 0"),
    Tampering("events swapped", _swap("audit", "seq", 3, 4, "seq = {to}, link = {to} + 2"), "prev", "audit seq 3"),
    Tampering("redrives swapped", _swap("redrives", "id", 2, 3, "id = {to}, link = {to}"), "hash", "'o1-2'"),
    Tampering("event inserted at the end", (_copy(6, 10),), "beyond", "beyond the head row's 9"),
    Tampering("event inserted before all", (_copy(-1, -1),), "order", "at the beginning comes audit seq -1"),
    Tampering("event inserted as link 0", (_copy(0, 0),), "order", "at the beginning comes audit seq 0"),
    Tampering("event inserted on a taken link", (_copy(6, 3),), "seq", "comes audit seq 6 (link 3)"),
    Tampering("redrives row inserted on a taken link", (_COPY_REDRIVE,), "repeated", "Link 5 occurs twice"),
    Tampering(
        "event inserted in a gap that was made",
        ("UPDATE audit SET link = 20 WHERE seq = 5", "UPDATE audit SET seq = 6 WHERE seq = 5", _copy(5, 9)),
        "prev",
        "audit seq 5 (link 9)",
    ),
    Tampering("head row deleted", ("DELETE FROM heads WHERE name = 'chain'",), "missing", "head row"),
    Tampering("head's seq changed", ("UPDATE heads SET seq = 6 WHERE name = 'chain'",), "seq", "head row"),
    Tampering("head's hash changed", (f"UPDATE heads SET hash = '{'a' * 64}' WHERE name = 'chain'",), "hash", "head"),
    Tampering("head's link raised", ("UPDATE heads SET link = 10 WHERE name = 'chain'",), "cut", "head row says 10"),
    Tampering("head's link lowered", ("UPDATE heads SET link = 4 WHERE name = 'chain'",), "beyond", "head row's 4"),
]

# what only SQLite stores: values of other types than the column's
ODD_TYPES = [
    Tampering("text for an instant", ("UPDATE audit SET at_ms = 'soon' WHERE seq = 3",), "hash", "audit seq 3"),
    Tampering("bytes for a note", ("UPDATE audit SET note = x'6f6b' WHERE seq = 3",), "hash", "audit seq 3"),
    Tampering("half a token", ("UPDATE redrives SET token = 3.5 WHERE id = 3",), "hash", "redrives id 3"),
    Tampering("five for false", ("UPDATE redrives SET solo = 5 WHERE id = 3",), "hash", "redrives id 3"),
    Tampering("text for false", ("UPDATE redrives SET solo = 'no' WHERE id = 3",), "hash", "redrives id 3"),
    Tampering("NUL in a name", ("UPDATE audit SET name = 'oda' || char(0) WHERE seq = 3",), "hash", "audit seq 3"),
    Tampering("not UTF-8", ("UPDATE audit SET name = CAST(x'ff' AS TEXT) WHERE seq = 3",), "unreadable", "audit seq 2"),
    Tampering("a link between", ("UPDATE audit SET link = 5.5 WHERE seq = 3",), "order", "audit seq"),
    Tampering("text for a link", ("UPDATE audit SET link = 'x' WHERE seq = 5",), "beyond", "'x'"),
    Tampering("bytes for a hash", ("UPDATE audit SET hash = CAST(hash AS BLOB) WHERE seq = 3",), "hash", "audit seq 3"),
    Tampering("text for the head", ("UPDATE heads SET link = 'x' WHERE name = 'chain'",), "type", "wrong type"),
]


def rechain(run: Run, since: int) -> None:
    """What a careful forger does: give every row from this link on, and the head row, the hashes that fit."""
    rows = [
        (link, "audit", dict(zip(AUDIT_FIELDS, (seq, link, *rest), strict=True)))
        for seq, link, *rest in run(f"SELECT {_EVENT} FROM audit")
    ]
    for values in run(f"SELECT {_REDRIVE} FROM redrives"):
        record = dict(zip(REDRIVE_FIELDS, values, strict=True))
        rows.append((record["link"], "redrives", {**record, "solo": bool(record["solo"])}))
    rows.sort(key=lambda row: row[0])
    head, seq = "0" * 64, 0
    for link, table, record in rows:
        prev, head = head, link_hash(head, record)
        seq += table == "audit"
        if link >= since:
            also = f", prev = '{prev}'" if table == "audit" else ""
            run(f"UPDATE {table} SET hash = '{head}'{also} WHERE link = {link}")
    run(f"UPDATE heads SET seq = {seq}, link = {rows[-1][0]}, hash = '{head}' WHERE name = 'chain'")
