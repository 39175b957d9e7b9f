"""PostgreSQL's form of the rules. Differs from SQLite's because a trigger calls a function and TRUNCATE exists.

A trigger's comment holds the digest of its own definition, which PostgreSQL would show only in a form of its own; with
the digest of its function's body it lets `triggers.missing` see any change.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from queue_app.policy.plans import CLOSED

_STAGE = (
    "CASE WHEN {r}.state <> 'pending' THEN '' WHEN {r}.attempts > 0 THEN 'retrying' "
    "WHEN {r}.redriven > 0 THEN 'redriven' ELSE 'new' END"
)
_TABLES_BY_LENGTH = (
    "redrive_outcomes",
    "investigated_groups",
    "late_finishes",
    "investigations",
    "plan_items",
    "tombstones",
    "approvals",
    "failures",
    "redrives",
    "unblocks",
    "audit",
    "plans",
    "jobs",
)


def table_of(name: str) -> str:
    """The table a trigger's name begins with."""
    return next(table for table in _TABLES_BY_LENGTH if name.startswith(f"{table}_"))


def _count(sign: int, row: str) -> str:
    at = f"{row}.changed_at_ms" if sign > 0 else "0"
    return f"""
    INSERT INTO counts AS c (queue, state, stage, reason, code, slot, n, last_at_ms)
    VALUES ({row}.queue, {row}.state, {_STAGE.format(r=row)}, {row}.reason, {row}.code, pg_backend_pid(), {sign}, {at})
    ON CONFLICT (queue, state, stage, reason, code, slot) DO UPDATE
    SET n = c.n + excluded.n, last_at_ms = greatest(c.last_at_ms, excluded.last_at_ms);"""


def _flow(row: str, at: str, died: int, left: int, still: int) -> str:
    return f"""
    INSERT INTO flows AS f (span_ms, start_ms, queue, reason, code, slot, died, left_n, still)
    SELECT span, {at} - {at} % span, {row}.queue, {row}.reason, {row}.code, pg_backend_pid(), {died}, {left}, {still}
    FROM (VALUES (60000), (3600000)) AS spans(span)
    ON CONFLICT (span_ms, start_ms, queue, reason, code, slot) DO UPDATE
    SET died = f.died + excluded.died, left_n = f.left_n + excluded.left_n, still = f.still + excluded.still;"""


def _result(outcome: str, was: str, sign: int) -> str:
    return f"""
    INSERT INTO results AS r (batch, queue, reason, code, outcome, slot, n)
    VALUES (coalesce(NEW.batch, 0), NEW.queue, NEW.{was}reason, NEW.{was}code, {outcome}, pg_backend_pid(), {sign})
    ON CONFLICT (batch, queue, reason, code, outcome, slot) DO UPDATE SET n = r.n + excluded.n;"""


def _function(name: str, body: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $snackops$BEGIN{body}\nEND$snackops$"
    )


def _raise(message: str) -> str:
    return f"RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation';"


_BODY_CHANGED = " OR ".join(
    f"NEW.{column} IS DISTINCT FROM OLD.{column}"
    for column in ("id", "seq", "queue", "order_key", "quantity", "payload", "created_at_ms")
)
_ITEM_CHANGED = " OR ".join(
    f"NEW.{column} IS DISTINCT FROM OLD.{column}"
    for column in ("id", "plan_id", "pos", "job_id", "token", "reason", "code", "dead_since_ms")
)
_EVIDENCE = ("reason", "code", "changed_at_ms", "attempts", "max_attempts", "deadline", "token", "redriven", "batch")
_EVIDENCE_CHANGED = " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in _EVIDENCE)

_BODIES = {
    "snackops_refuse": "\n    RAISE EXCEPTION '%: rows are only ever added', TG_TABLE_NAME "
    "USING ERRCODE = 'integrity_constraint_violation';",
    "snackops_jobs_guard": f"""
    IF {_BODY_CHANGED} THEN {_raise("jobs: id, quantity and body never change")} END IF;
    IF NEW.token < OLD.token THEN {_raise("jobs: a token never goes back")} END IF;
    IF OLD.state = 'done' AND NEW.state <> 'done' THEN {_raise("jobs: done is final")} END IF;
    IF OLD.state = 'dead' AND (NEW.state NOT IN ('dead', 'pending')
        OR (NEW.state = 'dead' AND ({_EVIDENCE_CHANGED}))
        OR (NEW.state = 'pending' AND NEW.redriven <> OLD.redriven + 1))
    THEN {_raise("jobs: a dead order keeps its evidence and leaves only by a redrive")} END IF;
    RETURN NEW;""",
    "snackops_jobs_delete": f"""
    IF OLD.state <> 'done' THEN {_raise("jobs: only a done order may be removed")} END IF;
    RETURN OLD;""",
    "snackops_items_guard": f"""
    IF {_ITEM_CHANGED} OR (OLD.state <> 'waiting' AND NEW.state IS DISTINCT FROM OLD.state)
    THEN {_raise("plan_items: what was frozen never changes")} END IF;
    RETURN NEW;""",
    "snackops_items_insert": f"""
    IF (SELECT state FROM plans WHERE id = NEW.plan_id) IS DISTINCT FROM 'freezing'
    THEN {_raise("plan_items: a list grows only while it is made")} END IF;
    RETURN NEW;""",
    "snackops_plans_guard": f"""
    IF OLD.state IN ({", ".join(map(repr, CLOSED))}) AND NEW.state IS DISTINCT FROM OLD.state
    THEN {_raise("plans: a closed plan stays closed")} END IF;
    RETURN NEW;""",
    "snackops_jobs_count": f"""
    IF TG_OP <> 'INSERT' THEN {_count(-1, "OLD")}
    END IF;
    IF TG_OP <> 'DELETE' THEN {_count(1, "NEW")}
    END IF;
    RETURN NULL;""",
    "snackops_jobs_died": f"{_flow('NEW', 'NEW.changed_at_ms', 1, 0, 1)}\n    RETURN NULL;",
    "snackops_jobs_left": _flow("OLD", "NEW.changed_at_ms", 0, 1, 0)
    + _flow("OLD", "OLD.changed_at_ms", 0, 0, -1)
    + "\n    RETURN NULL;",
    "snackops_redrives_count": _result("'waiting'", "", 1) + "\n    RETURN NULL;",
    "snackops_outcomes_count": _result("'waiting'", "was_", -1)
    + _result("NEW.outcome", "was_", 1)
    + "\n    RETURN NULL;",
}

FUNCTIONS = (
    *(_function(name, body) for name, body in _BODIES.items()),
    "CREATE SEQUENCE IF NOT EXISTS jobs_seq",
    # the one clock of an installation with several hosts; tests may replace this function
    "DO $do$ BEGIN IF to_regprocedure('snackops_now_ms()') IS NULL THEN "
    "CREATE FUNCTION snackops_now_ms() RETURNS bigint LANGUAGE sql VOLATILE "
    "AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint'; END IF; END $do$",
)


_MOVED = (
    "WHEN ((OLD.state, OLD.reason, OLD.code, OLD.queue, "
    + _STAGE.format(r="OLD")
    + ") IS DISTINCT FROM (NEW.state, NEW.reason, NEW.code, NEW.queue, "
    + _STAGE.format(r="NEW")
    + "))"
)
_ROW = "FOR EACH ROW"
# trigger -> (when and on what, function)
_CALLS: dict[str, tuple[str, str]] = {
    "jobs_guard_update": (f"BEFORE UPDATE ON jobs {_ROW}", "snackops_jobs_guard"),
    "jobs_guard_delete": (f"BEFORE DELETE ON jobs {_ROW}", "snackops_jobs_delete"),
    "jobs_guard_truncate": ("BEFORE TRUNCATE ON jobs FOR EACH STATEMENT", "snackops_refuse"),
    "jobs_count_rows": (f"AFTER INSERT OR DELETE ON jobs {_ROW}", "snackops_jobs_count"),
    "jobs_count_update": (f"AFTER UPDATE ON jobs {_ROW} {_MOVED}", "snackops_jobs_count"),
    "jobs_flow_insert": (f"AFTER INSERT ON jobs {_ROW} WHEN (NEW.state = 'dead')", "snackops_jobs_died"),
    "jobs_flow_died": (
        f"AFTER UPDATE ON jobs {_ROW} WHEN (NEW.state = 'dead' AND OLD.state <> 'dead')",
        "snackops_jobs_died",
    ),
    "jobs_flow_left": (
        f"AFTER UPDATE ON jobs {_ROW} WHEN (OLD.state = 'dead' AND NEW.state <> 'dead')",
        "snackops_jobs_left",
    ),
    "plan_items_guard_grow": (f"BEFORE INSERT ON plan_items {_ROW}", "snackops_items_insert"),
    "plan_items_guard_update": (f"BEFORE UPDATE ON plan_items {_ROW}", "snackops_items_guard"),
    "plans_guard_closed": (f"BEFORE UPDATE ON plans {_ROW}", "snackops_plans_guard"),
    "plans_guard_delete": (f"BEFORE DELETE ON plans {_ROW}", "snackops_refuse"),
    "plans_guard_truncate": ("BEFORE TRUNCATE ON plans FOR EACH STATEMENT", "snackops_refuse"),
    "plan_items_guard_delete": (f"BEFORE DELETE ON plan_items {_ROW}", "snackops_refuse"),
    "plan_items_guard_truncate": ("BEFORE TRUNCATE ON plan_items FOR EACH STATEMENT", "snackops_refuse"),
    "redrives_count": (f"AFTER INSERT ON redrives {_ROW}", "snackops_redrives_count"),
    "redrive_outcomes_count": (f"AFTER INSERT ON redrive_outcomes {_ROW}", "snackops_outcomes_count"),
}
for _table in _TABLES_BY_LENGTH:
    if _table not in {"jobs", "plan_items", "plans"}:
        _CALLS[f"{_table}_guard_rows"] = (f"BEFORE UPDATE OR DELETE ON {_table} {_ROW}", "snackops_refuse")
        _CALLS[f"{_table}_guard_truncate"] = (f"BEFORE TRUNCATE ON {_table} FOR EACH STATEMENT", "snackops_refuse")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _create(name: str) -> str:
    call, function = _CALLS[name]
    return f"CREATE TRIGGER {name} {call} EXECUTE FUNCTION {function}()"


def comparable(name: str) -> str:
    """What `present` shows of a trigger that stands as in this list."""
    return _digest(f"BEGIN{_BODIES[_CALLS[name][1]]}\nEND") + _digest(_create(name))


def present(cursor: Any) -> dict[str, str]:
    """Trigger name -> digests of its function's body and of its definition; disabled ones do not count."""
    cursor.execute(
        "SELECT t.tgname, p.prosrc, coalesce(obj_description(t.oid, 'pg_trigger'), '') "
        "FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND n.nspname = current_schema()"
    )
    return {name: _digest(body) + comment for name, body, comment in cursor.fetchall() if name in _CALLS}


def statements(_insert_only: Mapping[str, object], tables: frozenset[str]) -> dict[str, str]:
    """Trigger name -> the text that makes it, for the tables that exist."""
    return {
        name: f"{_create(name)}; COMMENT ON TRIGGER {name} ON {table_of(name)} IS '{_digest(_create(name))}'"
        for name in _CALLS
        if table_of(name) in tables
    }
