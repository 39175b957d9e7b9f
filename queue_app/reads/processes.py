"""Who runs: workers and redrivers, and what each holds right now. A fixed number of queries at a bounded cost."""

from dataclasses import dataclass

from django.db import connection

from queue_app.policy.figures import SILENT_MS

SHOWN = 200  # processes; those of the last day are kept, and what is seen last is shown first
HELD_SHOWN = 3  # leases of each, those that end first
CAP = 10_000  # leases are looked at up to here


@dataclass(frozen=True, slots=True)
class HeldOrder:
    """An order that is being delivered under this token until `lease_until` (ms)."""

    id: str
    token: int
    lease_until: int


@dataclass(frozen=True, slots=True)
class Held:
    """`n` orders are leased to one owner; `first`: those whose lease ends first."""

    n: int = 0
    first: tuple[HeldOrder, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process. `state`: alive, silent (not seen for three beats: lost), stopped, or unknown: it never said that it
    lives, but holds orders. `ended` and `failed` since its start; `rate_mj`: what it ends now, thousandths of an order/s."""

    name: str
    kind: str
    queue: str
    host: str
    state: str
    started_at_ms: int | None
    seen_at_ms: int | None
    detail: str
    concurrency: int
    ended: int
    failed: int
    rate_mj: int
    draining: bool
    held: Held


@dataclass(frozen=True, slots=True)
class Roll:
    """The processes: those that run, those that are lost, then those that stopped. `exact`: no process and no lease is
    left out."""

    lines: tuple[ProcessLine, ...]
    exact: bool

    @property
    def alive(self) -> int:
        """How many run."""
        return sum(line.state == "alive" for line in self.lines)

    @property
    def lost(self) -> tuple[ProcessLine, ...]:
        """Those that fell silent without a word."""
        return tuple(line for line in self.lines if line.state == "silent")


_ORDER = ("alive", "unknown", "silent", "stopped")
_COLUMNS = (
    "name, kind, queue, host, started_at_ms, seen_at_ms, stopped_at_ms, detail, concurrency, ended_n, failed_n, "
    "rate_mj, draining"
)


def roll(as_of_ms: int) -> Roll:
    """All processes of the last day as of the instant, up to 200. Two queries."""
    held, all_leases = _held()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS} FROM processes ORDER BY CASE WHEN stopped_at_ms IS NULL THEN 0 ELSE 1 END, "
            "seen_at_ms DESC, name LIMIT %s",
            [SHOWN + 1],
        )
        rows = cursor.fetchall()
    found = []
    for name, kind, queue, host, started, seen, stopped, detail, at_once, ended, failed, rate, draining in rows[:SHOWN]:
        silent = seen <= as_of_ms - SILENT_MS
        state = "stopped" if stopped is not None else "silent" if silent else "alive"
        work = (at_once, ended, failed, rate if state == "alive" else 0, bool(draining))
        found.append(ProcessLine(name, kind, queue, host, state, started, seen, detail, *work, held.pop(name, Held())))
    if len(rows) <= SHOWN:
        found += [
            ProcessLine(name, "worker", "", "", "unknown", None, None, "", 0, 0, 0, 0, draining=False, held=theirs)
            for name, theirs in sorted(held.items())[:SHOWN]
        ]
    found.sort(key=lambda line: (_ORDER.index(line.state), line.kind != "worker", line.queue, line.host, line.name))
    return Roll(tuple(found), exact=len(rows) <= SHOWN and all_leases)


def _held() -> tuple[dict[str, Held], bool]:
    """What each owner holds, and whether every lease was looked at."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT owner, n, id, token, lease_until, seen FROM (SELECT owner, id, token, lease_until, "
            "count(*) OVER (PARTITION BY owner) AS n, count(*) OVER () AS seen, "
            "row_number() OVER (PARTITION BY owner ORDER BY lease_until, id) AS place FROM (SELECT owner, id, token, "
            "lease_until FROM jobs WHERE state = 'leased' ORDER BY lease_until LIMIT %s) AS l) AS r "
            "WHERE place <= %s ORDER BY owner, place",
            [CAP, HELD_SHOWN],
        )
        rows = cursor.fetchall()
    found: dict[str, Held] = {}
    for owner, n, job_id, token, lease_until, _seen in rows:
        before = found.get(owner, Held(int(n)))
        found[owner] = Held(int(n), (*before.first, HeldOrder(job_id, token, lease_until)))
    return found, not rows or rows[0][5] < CAP
