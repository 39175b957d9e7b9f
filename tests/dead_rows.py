"""Many dead orders quickly, for tests of speed only: written by plain SQL, with every trigger at work."""

from collections.abc import Sequence

from django.db import connection

GROUPS = (
    ("snacks", "exhausted", "http_503"),
    ("snacks", "exhausted", "timeout_read"),
    ("snacks", "permanent", "http_422"),
    ("snacks", "deadline", "connect_refused"),
    ("drinks", "exhausted", "http_503"),
    ("drinks", "permanent", ""),
)
_COLUMNS = (
    "id, seq, queue, order_key, quantity, payload, state, reason, code, attempts, max_attempts, token, available_at, "
    "deadline, created_at_ms, changed_at_ms, redriven, waited_ms"
)
_VALUES = "(%s, %s, %s, '', 1, '{}', %s, %s, %s, %s, 3, 3, %s, %s, %s, %s, %s, 0)"
_ROWS = 1_000  # to a statement


def bury(
    n: int, *, now_ms: int, over_ms: int = 604_800_000, groups: Sequence[tuple[str, str, str]] = GROUPS, first: int = 0
) -> None:
    """`n` dead orders `o<first>-1`..., dead since evenly over the last `over_ms`; every tenth was redriven once."""
    rows = []
    for k in range(n):
        queue, reason, code = groups[k % len(groups)] if k % 3 else groups[0]
        at_ms = now_ms - over_ms + (k * over_ms) // n
        rows.append(_row(first + k, queue, "dead", reason, code, at_ms, redriven=int(k % 10 == 0)))
    _write(rows)


def finish(n: int, *, now_ms: int, first: int) -> None:
    """`n` delivered orders."""
    _write([_row(first + k, "snacks", "done", "", "", now_ms - k, redriven=0) for k in range(n)])


def _row(
    number: int, queue: str, state: str, reason: str, code: str, at_ms: int, *, redriven: int
) -> tuple[str | int, ...]:
    # places in the order of acceptance far from those that services draw
    return (
        f"o{number}-1",
        10**9 + number,
        queue,
        state,
        reason,
        code,
        1 + number % 3,
        at_ms,
        at_ms + 86_400_000,
        at_ms - 60_000,
        at_ms,
        redriven,
    )


def _write(rows: list[tuple[str | int, ...]]) -> None:
    with connection.cursor() as cursor:
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            values = [value for row in some for value in row]
            cursor.execute(f"INSERT INTO jobs ({_COLUMNS}) VALUES {', '.join([_VALUES] * len(some))}", values)
