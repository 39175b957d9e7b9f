"""PostgreSQL's form of the rules. Differs from SQLite's because a trigger calls a function and TRUNCATE exists.

The counters' triggers (`triggers_counting`) fire once a statement and see all its rows as a table.

A trigger's comment holds the digest of its own definition, which PostgreSQL would show only in a form of its own; with
the digest of its function's body it lets `triggers.missing` see any change.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from queue_app.policy.plans import CLOSED
from queue_app.store import triggers_counting

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


def _function(name: str, source: str) -> str:
    return f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $snackops${source}$snackops$"


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
_ITEM_BROKEN = f"{_ITEM_CHANGED} OR (OLD.state <> 'waiting' AND NEW.state IS DISTINCT FROM OLD.state)"
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
    IF {_ITEM_BROKEN}
    THEN {_raise("plan_items: what was frozen never changes")} END IF;
    RETURN NEW;""",
    "snackops_items_insert": f"""
    IF EXISTS (SELECT 1 FROM (SELECT DISTINCT plan_id FROM came) AS c LEFT JOIN plans AS p ON p.id = c.plan_id
        WHERE p.state IS DISTINCT FROM 'freezing')
    THEN {_raise("plan_items: a list grows only while it is made")} END IF;
    RETURN NULL;""",
    "snackops_plans_guard": f"""
    IF OLD.state IN ({", ".join(map(repr, CLOSED))}) AND NEW.state IS DISTINCT FROM OLD.state
    THEN {_raise("plans: a closed plan stays closed")} END IF;
    RETURN NEW;""",
}
_SOURCES = {name: f"BEGIN{body}\nEND" for name, body in _BODIES.items()} | triggers_counting.SOURCES

FUNCTIONS = (
    *(_function(name, source) for name, source in _SOURCES.items()),
    "CREATE SEQUENCE IF NOT EXISTS jobs_seq",
    # the one clock of an installation with several hosts; tests may replace this function
    "DO $do$ BEGIN IF to_regprocedure('snackops_now_ms()') IS NULL THEN "
    "CREATE FUNCTION snackops_now_ms() RETURNS bigint LANGUAGE sql VOLATILE "
    "AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint'; END IF; END $do$",
)


_ROW = "FOR EACH ROW"
# A condition costs a tenth of a call of a function: the function is called only to say what is wrong.
_BROKEN = (
    f"WHEN ({_BODY_CHANGED} OR NEW.token < OLD.token OR (OLD.state = 'done' AND NEW.state <> 'done') "
    "OR (OLD.state = 'dead' AND (NEW.state <> 'pending' OR NEW.redriven <> OLD.redriven + 1)))"
)
# trigger -> (when and on what, function)
_CALLS: dict[str, tuple[str, str]] = {
    "jobs_guard_update": (f"BEFORE UPDATE ON jobs {_ROW} {_BROKEN}", "snackops_jobs_guard"),
    "jobs_guard_delete": (f"BEFORE DELETE ON jobs {_ROW}", "snackops_jobs_delete"),
    "jobs_guard_truncate": ("BEFORE TRUNCATE ON jobs FOR EACH STATEMENT", "snackops_refuse"),
    "plan_items_guard_grow": (
        "AFTER INSERT ON plan_items REFERENCING NEW TABLE AS came FOR EACH STATEMENT",
        "snackops_items_insert",
    ),
    "plan_items_guard_update": (f"BEFORE UPDATE ON plan_items {_ROW} WHEN ({_ITEM_BROKEN})", "snackops_items_guard"),
    "plans_guard_closed": (f"BEFORE UPDATE ON plans {_ROW}", "snackops_plans_guard"),
    "plans_guard_delete": (f"BEFORE DELETE ON plans {_ROW}", "snackops_refuse"),
    "plans_guard_truncate": ("BEFORE TRUNCATE ON plans FOR EACH STATEMENT", "snackops_refuse"),
    "plan_items_guard_delete": (f"BEFORE DELETE ON plan_items {_ROW}", "snackops_refuse"),
    "plan_items_guard_truncate": ("BEFORE TRUNCATE ON plan_items FOR EACH STATEMENT", "snackops_refuse"),
    **triggers_counting.CALLS,
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
    return _digest(_SOURCES[_CALLS[name][1]]) + _digest(_create(name))


def present(cursor: Any) -> dict[str, str]:
    """Trigger name -> digests of its function's body and of its definition; disabled ones do not count.

    Also those of an earlier release: two that count the same make every figure wrong.
    """
    cursor.execute(
        "SELECT t.tgname, p.prosrc, coalesce(obj_description(t.oid, 'pg_trigger'), '') "
        "FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND n.nspname = current_schema() "
        "AND starts_with(p.proname, 'snackops_')"
    )
    return {name: _digest(body) + comment for name, body, comment in cursor.fetchall()}


def statements(_insert_only: Mapping[str, object], tables: frozenset[str]) -> dict[str, str]:
    """Trigger name -> the text that makes it, for the tables that exist."""
    return {
        name: f"{_create(name)}; COMMENT ON TRIGGER {name} ON {table_of(name)} IS '{_digest(_create(name))}'"
        for name in _CALLS
        if table_of(name) in tables
    }
