"""The chain as it is stored: its head, and its rows by link in bites, so that no cursor stays open.

Raw columns, not model objects: after tampering a column may hold what no field would give back.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from queue_app.models import Head
from queue_app.policy.chain import AUDIT_FIELDS, REDRIVE_FIELDS, USERS, Anchor, Link

# SQLite's driver turns every stored number of a bool column but 1 into False, which would hide a changed one.
_SOLO = "CASE solo WHEN TRUE THEN 1 WHEN FALSE THEN 0 ELSE 2 END"


@dataclass(frozen=True, slots=True)
class Ends:
    """The head row, and the greatest link in either table at the same moment (None: no rows). Any type is possible."""

    seq: Any
    link: Any
    hash: Any
    audit_top: Any
    redrives_top: Any


def ends() -> Ends | None:
    """Where the chain ends by its head row and by its tables, in one statement; None without a head row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq, link, hash, (SELECT max(link) FROM audit), (SELECT max(link) FROM redrives) "
            "FROM heads WHERE name = 'chain'"
        )
        row = cursor.fetchone()
    return Ends(*row) if row else None


def anchor() -> Anchor | None:
    """The head of the chain, to be kept elsewhere; None without a head row."""
    row = Head.objects.filter(name="chain").values_list("seq", "hash").first()
    return Anchor(*row) if row else None


def bite(after: int | None, upto: int, limit: int) -> list[Link]:
    """Rows of both tables with after < link <= upto in order of link, at most 2 x limit; [] at the end.

    `after` None begins before every link, also before those that should not be there.
    """
    found = []
    for table in ("audit", "redrives"):
        rows = _rows(table, after, upto, limit)
        found.append(rows)
    full = [rows[-1].link for rows in found if len(rows) == limit]
    merged = sorted((row for rows in found for row in rows), key=_place)
    return [row for row in merged if not full or row.link <= min(full)]  # type: ignore[type-var,operator]


def _place(row: Link) -> Any:
    return row.link, row.table


def _rows(table: str, after: int | None, upto: int, limit: int) -> list[Link]:
    since = "" if after is None else "link > %s AND "
    values = [*([] if after is None else [after]), upto, limit]
    columns = _AUDIT if table == "audit" else _REDRIVES
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table} WHERE {since}link <= %s ORDER BY link LIMIT %s", values)
        rows = cursor.fetchall()
    return [_event(row) if table == "audit" else _redrive(row) for row in rows]


def _column(name: str) -> str:
    return _SOLO if name == "solo" else f"{name}_id" if name in USERS else name


_AUDIT = ", ".join([*map(_column, AUDIT_FIELDS), "prev", "hash", "version"])
_REDRIVES = ", ".join(["id", *map(_column, REDRIVE_FIELDS), "hash"])


def _event(row: tuple[Any, ...]) -> Link:
    record = dict(zip(AUDIT_FIELDS, row[:-3], strict=True))
    return Link("audit", record["seq"], record["link"], record, *row[-3:])


def _redrive(row: tuple[Any, ...]) -> Link:
    record = dict(zip(REDRIVE_FIELDS, row[1:-1], strict=True))
    record["solo"] = {0: False, 1: True}.get(record["solo"], record["solo"])
    return Link("redrives", row[0], record["link"], record, None, row[-1], None)
