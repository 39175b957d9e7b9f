"""Appending to the record: redrives rows and audit events form one hash chain (DESIGN section 9).

Call it last in the transaction: on PostgreSQL it locks the one head row, which would otherwise serialise all work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.chain import AUDIT_FIELDS, REDRIVE_FIELDS, USERS, VERSION, link_hash
from queue_app.store.database import is_postgresql
from queue_app.store.given import Given
from queue_app.store.statements import Statement, fetch, fetch_all


@dataclass(frozen=True, slots=True)
class Event:
    """One audit event to be written. `actor` is a user's id, None for a program; `detail` holds ints, str, bool, None."""

    at_ms: int
    action: str
    target: str
    actor: int | None = None
    name: str = ""
    roles: str = ""
    note: str = ""
    source: str = "code"
    proof: str = ""
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RedriveRow:
    """One redrives row to be written; users by id."""

    job_id: str
    token: int
    at_ms: int
    note: str
    queue: str
    reason: str
    code: str
    old_attempts: int
    old_max_attempts: int
    old_deadline: int
    new_max_attempts: int
    new_deadline: int
    requested_by: int | None
    approved_by: int
    batch: int | None
    solo: bool


def append(events: Sequence[Event], redrives: Sequence[RedriveRow] = ()) -> tuple[int, str]:
    """Write the redrives rows, then the events, each linked to the one before. Returns the new head (seq, hash)."""
    held = " FOR UPDATE" if is_postgresql() else ""
    ((seq, link, head),) = fetch(f"SELECT seq, link, hash FROM heads WHERE name = 'chain'{held}", [])
    redrive_rows: list[tuple[object, ...]] = []
    written: list[Statement] = []
    for row in redrives:
        link += 1
        record = {name: getattr(row, name) for name in REDRIVE_FIELDS[:-1]} | {"link": link}
        head = link_hash(head, record)
        values = list(record.values())  # in the order of REDRIVE_FIELDS
        values[_SOLO] = int(row.solo)
        redrive_rows.append((link, *values, head))
    for event in events:
        seq, link, prev = seq + 1, link + 1, head
        record = {name: getattr(event, name) for name in AUDIT_FIELDS[2:-1]}
        record |= {"seq": seq, "link": link, "detail": canonical_ascii(event.detail)}
        head = link_hash(prev, record)
        written.append((_INSERT_EVENT, [*(record[name] for name in AUDIT_FIELDS), prev, head, VERSION]))
    written.append(("UPDATE heads SET seq = %s, link = %s, hash = %s WHERE name = 'chain'", [seq, link, head]))
    fetch_all([*_redrives(redrive_rows), *written])
    return seq, head


def _columns(fields: Sequence[str]) -> str:
    return ", ".join(f"{name}_id" if name in USERS else name for name in fields)


def _insert(table: str, columns: str) -> str:
    marks = ", ".join(["%s"] * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks})"


# A redrives row's id is its link: an id of its own would be the one value that the hash does not cover.
_SOLO = REDRIVE_FIELDS.index("solo")  # a truth value, which arrives as a number
_TEXT = frozenset({"job_id", "note", "queue", "reason", "code"})
_REDRIVES = Given(
    "id bigint, "
    + ", ".join(f"{name} {'text' if name in _TEXT else 'bigint'}" for name in REDRIVE_FIELDS)
    + ", hash text"
)
_INSERT_REDRIVE = f"INSERT INTO redrives (id, {_columns(REDRIVE_FIELDS)}, hash)"
_GIVEN = ", ".join("g.solo = 1" if name == "solo" else f"g.{name}" for name in REDRIVE_FIELDS)
_MARKS = ", ".join(["%s"] * (len(REDRIVE_FIELDS) + 2))


def _redrives(rows: list[tuple[object, ...]]) -> list[Statement]:
    """Differs because on PostgreSQL row by row the counters' trigger and the driver were most of a redrive's time; SQLite
    takes rows with so many columns faster one by one than out of one text."""
    if rows and is_postgresql():
        text = f"{_INSERT_REDRIVE} SELECT g.id, {_GIVEN}, g.hash FROM {_REDRIVES.table}"
        return [(text, _REDRIVES.values(rows))]
    return [(f"{_INSERT_REDRIVE} VALUES ({_MARKS})", row) for row in rows]


_INSERT_EVENT = _insert("audit", f"{_columns(AUDIT_FIELDS)}, prev, hash, version")
