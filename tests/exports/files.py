"""A file read back, and who was refused one."""

import csv
import io
import json

from queue_app.models import AuditEvent
from queue_app.policy.cells import BOM


def table(text: str) -> tuple[dict[str, str], list[list[str]]]:
    """The facts of a CSV file, and its rows after the header."""
    rows = list(csv.reader(io.StringIO(text.removeprefix(BOM), newline=""), strict=True))
    facts = {row[0][2:]: row[1] for row in rows if row[0].startswith("# ")}
    return facts, [row for row in rows if not row[0].startswith("# ")][1:]


def refusals() -> list[tuple[str, str, str, str]]:
    """Who was refused what, and why, as the record tells it."""
    rows = AuditEvent.objects.filter(action="refused").order_by("seq")
    return [(row.name, row.target, *(json.loads(row.detail)[name] for name in ("tried", "why"))) for row in rows]
