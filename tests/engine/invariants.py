"""What must hold after every move and every fault. Each check reads the tables alone, by its own way to the figure."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db import connection

from queue_app.policy.canonical import canonical_ascii
from queue_app.policy.chain import AUDIT_FIELDS, GENESIS, REDRIVE_FIELDS, link_hash

_STAGE = (
    "CASE WHEN state <> 'pending' THEN '' WHEN attempts > 0 THEN 'retrying' WHEN redriven > 0 THEN 'redriven' "
    "ELSE 'new' END"
)
_USERS = {"requested_by", "approved_by", "actor"}


def check_all(accepted: Iterable[str] = ()) -> None:
    """Every invariant; `accepted` are the ids whose acceptance was answered."""
    known = {row[0] for row in _rows("SELECT id FROM jobs")} | {
        row[0] for row in _rows("SELECT job_id FROM tombstones")
    }
    assert set(accepted) <= known, "an accepted order is gone"
    check_jobs()
    check_evidence()
    check_counters()
    check_chain()
    if connection.vendor == "sqlite":
        assert _rows("PRAGMA integrity_check") == [("ok",)]


def check_jobs() -> None:
    """State, reason, lease and budget of every job agree."""
    assert not _rows(
        "SELECT id FROM jobs WHERE (state = 'leased') <> (owner IS NOT NULL) OR (owner IS NULL) <> (lease_until IS NULL)"
    ), "leased without owner and lease, or the other way round"
    assert not _rows("SELECT id FROM jobs WHERE (state = 'dead') <> (reason <> '') OR (state <> 'dead' AND code <> '')")
    assert not _rows("SELECT id FROM jobs WHERE attempts > max_attempts OR attempts < 0 OR token < attempts")


def check_evidence() -> None:
    """Evidence belongs to a token that was reached, and every redrive and every death is told."""
    assert not _rows("SELECT f.job_id FROM failures AS f JOIN jobs AS j ON j.id = f.job_id WHERE f.token > j.token")
    for table in ("failures", "redrives", "redrive_outcomes", "late_finishes"):
        assert not _rows(f"SELECT job_id, token FROM {table} GROUP BY job_id, token HAVING count(*) > 1"), table
    assert not _rows(
        "SELECT id FROM jobs WHERE redriven <> (SELECT count(*) FROM redrives AS r WHERE r.job_id = jobs.id)"
    ), "a restart without its redrives row, or a row without its restart"
    assert not _rows(
        "SELECT id FROM jobs WHERE state = 'dead' AND NOT EXISTS "
        "(SELECT 1 FROM failures AS f WHERE f.job_id = jobs.id AND f.token IN (jobs.token, jobs.token - 1))"
    ), "dead without evidence"
    alone = Counter(f"job:{row[0]}" for row in _rows("SELECT job_id FROM redrives WHERE batch IS NULL"))
    all_rows = Counter(f"job:{row[0]}" for row in _rows("SELECT job_id FROM redrives"))
    told = Counter(row[0] for row in _rows("SELECT target FROM audit WHERE action = 'redrive'"))
    # a batch tells its jobs by its ticks; a redrive of one job tells it by an event, also when it names a batch
    assert alone <= told <= all_rows, "a redrives row without its event, or an event without its row"
    # a redrive has its outcome exactly when the job has come to an end since
    assert not _rows(
        "SELECT r.job_id FROM redrives AS r JOIN jobs AS j ON j.id = r.job_id WHERE NOT EXISTS (SELECT 1 FROM "
        "redrive_outcomes AS o WHERE o.job_id = r.job_id AND o.token = r.token) AND (j.state IN ('done', 'dead') OR "
        "r.token < (SELECT max(token) FROM redrives AS l WHERE l.job_id = r.job_id))"
    ), "an end after a redrive that was not recorded"


def check_counters() -> None:
    """The counters equal a recount of the rows."""
    assert _tally("SELECT queue, state, stage, reason, code, sum(n) FROM counts GROUP BY 1, 2, 3, 4, 5") == _tally(
        f"SELECT queue, state, {_STAGE} AS stage, reason, code, count(*) FROM jobs GROUP BY 1, 2, 3, 4, 5"
    )
    for span in (60_000, 3_600_000):
        flows = "SELECT start_ms, queue, reason, code, sum({}) FROM flows WHERE span_ms = {} GROUP BY 1, 2, 3, 4"
        still, left = _tally(flows.format("still", span)), _tally(flows.format("left_n", span))
        bucket = "{at} - {at} % " + str(span)
        assert still == _tally(
            f"SELECT {bucket.format(at='changed_at_ms')} AS b, queue, reason, code, count(*) FROM jobs "
            "WHERE state = 'dead' GROUP BY 1, 2, 3, 4"
        )
        assert left == _tally(
            f"SELECT {bucket.format(at='at_ms')} AS b, queue, reason, code, count(*) FROM redrives GROUP BY 1, 2, 3, 4"
        )
        assert not _rows(
            f"SELECT queue, reason, code FROM flows WHERE span_ms = {span} GROUP BY queue, reason, code "
            "HAVING sum(died) - sum(left_n) <> sum(still)"
        ), "deaths less redrives are not what is dead"
    assert _tally("SELECT batch, queue, reason, code, outcome, sum(n) FROM results GROUP BY 1, 2, 3, 4, 5") == _tally(
        "SELECT coalesce(r.batch, 0), r.queue, r.reason, r.code, coalesce(o.outcome, 'waiting') AS outcome, count(*) "
        "FROM redrives AS r LEFT JOIN redrive_outcomes AS o ON o.job_id = r.job_id AND o.token = r.token "
        "GROUP BY 1, 2, 3, 4, 5"
    )


def check_chain() -> None:
    """Events and redrives rows form one chain without gaps, and the head is its end."""
    links: dict[int, dict[str, Any]] = {}
    for table, fields in (("redrives", REDRIVE_FIELDS), ("audit", AUDIT_FIELDS)):
        columns = ", ".join(f"{name}_id" if name in _USERS else name for name in fields)
        for *values, digest in _rows(f"SELECT {columns}, hash FROM {table}"):
            record = dict(zip(fields, values, strict=True))
            if "solo" in record:
                record["solo"] = bool(record["solo"])
            links[int(record["link"])] = {"record": record, "hash": digest}
    assert sorted(links) == list(range(1, len(links) + 1)), "a gap in the chain"
    prev = GENESIS
    for number in sorted(links):
        canonical_ascii(links[number]["record"])
        assert links[number]["hash"] == link_hash(prev, links[number]["record"]), f"link {number} is broken"
        prev = links[number]["hash"]
    assert _rows("SELECT link, hash FROM heads WHERE name = 'chain'") == [(len(links), prev)]
    events = [row[0] for row in _rows("SELECT seq FROM audit ORDER BY seq")]
    assert events == list(range(1, len(events) + 1)), "a gap in the events"


def _rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [tuple(values) for values in cursor.fetchall()]


def _tally(sql: str) -> dict[tuple[Any, ...], int]:
    return {tuple(key): int(n) for *key, n in _rows(sql) if n}
