"""The counters' triggers on PostgreSQL: once a statement, over all rows that it touched.

A trigger for each row made a move of 10,000 rows 15 times slower; here it costs what a look at two lists costs. Such a
trigger cannot name columns, so a renewal fires it too: it compares the lists once and ends. Each writer counts in a slot
of its own, the process id of its backend, so that no two ever wait for the same row.
"""

_STAGE = (
    "CASE WHEN {r}.state <> 'pending' THEN '' WHEN {r}.attempts > 0 THEN 'retrying' "
    "WHEN {r}.redriven > 0 THEN 'redriven' ELSE 'new' END"
)
_SPANS = "(VALUES (60000), (3600000)) AS spans(span)"


def _count(place: str, n: str, at: str) -> str:
    """Add to one place of `counts`. `place`: queue, state, stage, reason, code."""
    return f"""
    INSERT INTO counts AS c (queue, state, stage, reason, code, slot, n, last_at_ms)
    VALUES ({place}, pg_backend_pid(), {n}, {at})
    ON CONFLICT (queue, state, stage, reason, code, slot) DO UPDATE
    SET n = c.n + excluded.n, last_at_ms = greatest(c.last_at_ms, excluded.last_at_ms);"""


def _flow(rows: str) -> str:
    """Add rows (queue, reason, code, at, died, left_n, still) to their minutes and hours."""
    return f"""
    INSERT INTO flows AS f (span_ms, start_ms, queue, reason, code, slot, died, left_n, still)
    SELECT span, at - at % span, queue, reason, code, pg_backend_pid(), sum(died), sum(left_n), sum(still)
    FROM ({rows}) AS r, {_SPANS} GROUP BY span, at - at % span, queue, reason, code
    ON CONFLICT (span_ms, start_ms, queue, reason, code, slot) DO UPDATE
    SET died = f.died + excluded.died, left_n = f.left_n + excluded.left_n, still = f.still + excluded.still;"""


def _result(rows: str) -> str:
    """Add rows (batch, queue, reason, code, outcome, n)."""
    return f"""
    INSERT INTO results AS r (batch, queue, reason, code, outcome, slot, n)
    SELECT batch, queue, reason, code, outcome, pg_backend_pid(), sum(n) FROM ({rows}) AS x
    GROUP BY batch, queue, reason, code, outcome
    ON CONFLICT (batch, queue, reason, code, outcome, slot) DO UPDATE SET n = r.n + excluded.n;
    RETURN NULL;"""


def _each(rows: str, body: str, after: str = "") -> str:
    """Walk over sums, of which a statement makes a handful, and then do what only a few statements need."""
    return (
        "DECLARE m record; some_died boolean := false;\n"
        f"BEGIN\n    FOR m IN {rows}\n    LOOP{body}\n"
        f"    END LOOP;{after}\n    RETURN NULL;\nEND"
    )


def _if(flag: str, body: str) -> str:
    return f"\n    IF {flag} THEN{body}\n    END IF;"


def _summed(table: str) -> str:
    return (
        f"SELECT t.queue, t.state, {_STAGE.format(r='t')} AS stage, t.reason, t.code, count(*) AS n, "
        f"max(t.changed_at_ms) AS at FROM {table} AS t GROUP BY 1, 2, 3, 4, 5"
    )


# Every row is on both sides. FULL, and conditions that may hold for NULL, because a function's plan is made once: if its
# first statement moved one row, a plain join would compare each with each ever after (10,000 rows: 100 million times).
_PAIRS = "gone AS o FULL JOIN came AS n ON n.id = o.id"
_WAS_DEAD, _IS_DEAD = "coalesce(o.state, '') = 'dead'", "coalesce(n.state, '') = 'dead'"


def _place(row: str) -> str:
    return f"{row}.queue, {row}.state, {_STAGE.format(r=row)}, {row}.reason, {row}.code"


# One statement, because each that a trigger carries out costs as much as the rows of a small move: both places of every
# row that moved are summed up and written together.
_MOVED = f"""
    INSERT INTO counts AS c (queue, state, stage, reason, code, slot, n, last_at_ms)
    SELECT p.queue, p.state, p.stage, p.reason, p.code, pg_backend_pid(), sum(p.n), max(p.at)
    FROM {_PAIRS}, LATERAL (VALUES ({_place("o")}, -1, 0::bigint), ({_place("n")}, 1, n.changed_at_ms))
    AS p(queue, state, stage, reason, code, n, at)
    WHERE ({_place("o")}) IS DISTINCT FROM ({_place("n")}) GROUP BY 1, 2, 3, 4, 5
    ON CONFLICT (queue, state, stage, reason, code, slot) DO UPDATE
    SET n = c.n + excluded.n, last_at_ms = greatest(c.last_at_ms, excluded.last_at_ms);"""
_DIED = "n.queue, n.reason, n.code, n.changed_at_ms AS at, 1 AS died, 0 AS left_n, 1 AS still"
# who left is counted when he leaves, and is no more among those who died when he did
_FREED = (
    f"SELECT o.queue, o.reason, o.code, f.at, 0 AS died, f.left_n, f.still FROM {_PAIRS}, "
    "LATERAL (VALUES (n.changed_at_ms, 1, 0), (o.changed_at_ms, 0, -1)) AS f(at, left_n, still) "
    f"WHERE {_WAS_DEAD} AND NOT {_IS_DEAD}"
)
_TO = "m.queue, m.state, m.stage, m.reason, m.code"

SOURCES = {
    "snackops_jobs_came": _each(
        _summed("came"),
        _count(_TO, "m.n", "m.at") + "\n    some_died := some_died OR m.state = 'dead';",
        _if("some_died", _flow(f"SELECT {_DIED} FROM came AS n WHERE n.state = 'dead'")),
    ),
    "snackops_jobs_gone": _each(_summed("gone"), _count(_TO, "-m.n", "0")),
    "snackops_jobs_moved": "BEGIN"
    + _MOVED
    + _if(
        "EXISTS (SELECT 1 FROM came WHERE state = 'dead')",
        _flow(f"SELECT {_DIED} FROM {_PAIRS} WHERE {_IS_DEAD} AND NOT {_WAS_DEAD}"),
    )
    + _if(
        "EXISTS (SELECT 1 FROM gone WHERE state = 'dead')",
        _flow(_FREED),
    )
    + "\n    RETURN NULL;\nEND",
    "snackops_redrives_count": "BEGIN"
    + _result("SELECT coalesce(batch, 0) AS batch, queue, reason, code, 'waiting' AS outcome, 1 AS n FROM came")
    + "\nEND",
    "snackops_outcomes_count": "BEGIN"
    + _result(
        "SELECT coalesce(batch, 0) AS batch, queue, was_reason AS reason, was_code AS code, 'waiting' AS outcome, -1 AS n "
        "FROM came UNION ALL SELECT coalesce(batch, 0), queue, was_reason, was_code, outcome, 1 FROM came"
    )
    + "\nEND",
}
"""Function -> its source."""

_CAME = "REFERENCING NEW TABLE AS came FOR EACH STATEMENT"
CALLS: dict[str, tuple[str, str]] = {
    "jobs_count_insert": (f"AFTER INSERT ON jobs {_CAME}", "snackops_jobs_came"),
    "jobs_count_delete": (
        "AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT",
        "snackops_jobs_gone",
    ),
    "jobs_count_moved": (
        "AFTER UPDATE ON jobs REFERENCING OLD TABLE AS gone NEW TABLE AS came FOR EACH STATEMENT",
        "snackops_jobs_moved",
    ),
    "redrives_count": (f"AFTER INSERT ON redrives {_CAME}", "snackops_redrives_count"),
    "redrive_outcomes_count": (f"AFTER INSERT ON redrive_outcomes {_CAME}", "snackops_outcomes_count"),
}
"""Trigger -> (when and on what, function)."""
