"""SQLite's form of the rules. Differs from PostgreSQL's because INSERT OR REPLACE deletes without DELETE triggers."""

from collections.abc import Mapping

from queue_app.policy.plans import CLOSED

_STAGE = (
    "CASE WHEN {r}.state <> 'pending' THEN '' WHEN {r}.attempts > 0 THEN 'retrying' "
    "WHEN {r}.redriven > 0 THEN 'redriven' ELSE 'new' END"
)
_BODY = ("id", "seq", "queue", "order_key", "quantity", "payload", "created_at_ms", "rowid")
_EVIDENCE = ("reason", "code", "changed_at_ms", "attempts", "max_attempts", "deadline", "token", "redriven", "batch")
_FROZEN_ITEM = ("id", "plan_id", "pos", "job_id", "token", "reason", "code", "dead_since_ms")


def _changed(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in columns)


def _refuse(name: str, event: str, table: str, condition: str, message: str) -> str:
    when = f" WHEN {condition}" if condition else ""
    return f"CREATE TRIGGER {name} BEFORE {event} ON {table}{when} BEGIN SELECT RAISE(ABORT, '{table}: {message}'); END"


def _key_exists(table: str, keys: tuple[tuple[str, ...], ...]) -> str:
    """Also the rowid: a row may be named by it, and for a key that is not INTEGER it is a second, hidden key."""
    return " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE " + " AND ".join(f"{column} = NEW.{column}" for column in key) + ")"
        for key in (*keys, ("rowid",))
    )


def _count(sign: int, row: str) -> str:
    stage = _STAGE.format(r=row)
    at = f"{row}.changed_at_ms" if sign > 0 else "0"
    return (
        "INSERT INTO counts (queue, state, stage, reason, code, slot, n, last_at_ms) "
        f"VALUES ({row}.queue, {row}.state, {stage}, {row}.reason, {row}.code, 0, {sign}, {at}) "
        "ON CONFLICT (queue, state, stage, reason, code, slot) DO UPDATE SET n = n + excluded.n, "
        "last_at_ms = max(last_at_ms, excluded.last_at_ms);"
    )


def _flow(row: str, at: str, died: int, left: int, still: int) -> str:
    return "".join(
        "INSERT INTO flows (span_ms, start_ms, queue, reason, code, slot, died, left_n, still) "
        f"VALUES ({span}, {at} - {at} % {span}, {row}.queue, {row}.reason, {row}.code, 0, {died}, {left}, {still}) "
        "ON CONFLICT (span_ms, start_ms, queue, reason, code, slot) DO UPDATE SET died = died + excluded.died, "
        "left_n = left_n + excluded.left_n, still = still + excluded.still;"
        for span in (60_000, 3_600_000)
    )


def _result(outcome: str, was: str, sign: int) -> str:
    return (
        "INSERT INTO results (batch, queue, reason, code, outcome, slot, n) "
        f"VALUES (coalesce(NEW.batch, 0), NEW.queue, NEW.{was}reason, NEW.{was}code, {outcome}, 0, {sign}) "
        "ON CONFLICT (batch, queue, reason, code, outcome, slot) DO UPDATE SET n = n + excluded.n;"
    )


def _jobs() -> dict[str, str]:
    old_stage, new_stage = _STAGE.format(r="OLD"), _STAGE.format(r="NEW")
    moved = (
        "OLD.state <> NEW.state OR OLD.reason <> NEW.reason OR OLD.code <> NEW.code "
        f"OR OLD.queue <> NEW.queue OR ({old_stage}) <> ({new_stage})"
    )
    died = _flow("NEW", "NEW.changed_at_ms", 1, 0, 1)
    left = _flow("OLD", "NEW.changed_at_ms", 0, 1, 0) + _flow("OLD", "OLD.changed_at_ms", 0, 0, -1)
    count = "CREATE TRIGGER {} AFTER {} ON jobs{} BEGIN {} END"
    return {
        "jobs_guard_body": _refuse(
            "jobs_guard_body", "UPDATE", "jobs", _changed(_BODY), "id, quantity and body never change"
        ),
        "jobs_guard_token": _refuse(
            "jobs_guard_token",
            "UPDATE",
            "jobs",
            "NEW.token < OLD.token OR typeof(NEW.token) <> 'integer'",
            "a token never goes back",
        ),
        "jobs_guard_done": _refuse(
            "jobs_guard_done", "UPDATE", "jobs", "OLD.state = 'done' AND NEW.state <> 'done'", "done is final"
        ),
        "jobs_guard_dead": _refuse(
            "jobs_guard_dead",
            "UPDATE",
            "jobs",
            "OLD.state = 'dead' AND (NEW.state NOT IN ('dead', 'pending') OR (NEW.state = 'dead' AND "
            f"({_changed(_EVIDENCE)})) OR (NEW.state = 'pending' AND "
            "NEW.redriven <> OLD.redriven + 1))",
            "a dead order keeps its evidence and leaves only by a redrive",
        ),
        "jobs_guard_delete": _refuse(
            "jobs_guard_delete", "DELETE", "jobs", "OLD.state <> 'done'", "only a done order may be removed"
        ),
        "jobs_guard_replace": _refuse(
            "jobs_guard_replace",
            "INSERT",
            "jobs",
            _key_exists("jobs", (("id",), ("seq",))),
            "this order exists",
        ),
        "jobs_count_insert": count.format("jobs_count_insert", "INSERT", "", _count(1, "NEW")),
        "jobs_count_update": count.format(
            "jobs_count_update", "UPDATE", f" WHEN {moved}", _count(-1, "OLD") + _count(1, "NEW")
        ),
        "jobs_count_delete": count.format("jobs_count_delete", "DELETE", "", _count(-1, "OLD")),
        "jobs_flow_insert": count.format("jobs_flow_insert", "INSERT", " WHEN NEW.state = 'dead'", died),
        "jobs_flow_died": count.format(
            "jobs_flow_died", "UPDATE", " WHEN NEW.state = 'dead' AND OLD.state <> 'dead'", died
        ),
        "jobs_flow_left": count.format(
            "jobs_flow_left", "UPDATE", " WHEN OLD.state = 'dead' AND NEW.state <> 'dead'", left
        ),
    }


def _plan_items() -> dict[str, str]:
    moved = _changed(_FROZEN_ITEM) + " OR (OLD.state <> 'waiting' AND NEW.state IS NOT OLD.state)"
    keys = (("id",), ("plan_id", "pos"), ("plan_id", "job_id"))
    return {
        f"plan_items_guard_{suffix}": _refuse(f"plan_items_guard_{suffix}", event, "plan_items", condition, message)
        for suffix, event, condition, message in (
            ("update", "UPDATE", moved, "what was frozen never changes"),
            ("delete", "DELETE", "", "what was frozen is never removed"),
            ("replace", "INSERT", _key_exists("plan_items", keys), "this item exists"),
        )
    }


def _plans() -> dict[str, str]:
    grown = "(SELECT state FROM plans WHERE id = NEW.plan_id) IS NOT 'freezing'"
    reopened = f"OLD.state IN ({', '.join(map(repr, CLOSED))}) AND NEW.state IS NOT OLD.state"
    return {
        name: _refuse(name, event, table, condition, message)
        for name, event, table, condition, message in (
            ("plan_items_guard_grow", "INSERT", "plan_items", grown, "a list grows only while it is made"),
            ("plans_guard_closed", "UPDATE", "plans", reopened, "a closed plan stays closed"),
            ("plans_guard_delete", "DELETE", "plans", "", "plans are never removed"),
            (
                "plans_guard_replace",
                "INSERT",
                "plans",
                _key_exists("plans", (("id",), ("form_key",))),
                "this plan exists",
            ),
        )
    }


def statements(insert_only: Mapping[str, tuple[tuple[str, ...], ...]], tables: frozenset[str]) -> dict[str, str]:
    """Trigger name -> CREATE TRIGGER text, for the tables that exist."""
    wanted: dict[str, str] = {}
    for table, keys in insert_only.items():
        if table not in tables:
            continue
        for suffix, event, condition, message in (
            ("guard_update", "UPDATE", "", "rows are never changed"),
            ("guard_delete", "DELETE", "", "rows are never removed"),
            ("guard_replace", "INSERT", _key_exists(table, keys), "this row exists"),
        ):
            name = f"{table}_{suffix}"
            wanted[name] = _refuse(name, event, table, condition, message)
    if "jobs" in tables:
        wanted |= _jobs()
    if "plan_items" in tables:
        wanted |= _plan_items() | _plans()
    for name, table, body in (
        ("redrives_count", "redrives", _result("'waiting'", "", 1)),
        (
            "redrive_outcomes_count",
            "redrive_outcomes",
            _result("'waiting'", "was_", -1) + _result("NEW.outcome", "was_", 1),
        ),
    ):
        if table in tables and "results" in tables:
            wanted[name] = f"CREATE TRIGGER {name} AFTER INSERT ON {table} BEGIN {body} END"
    return wanted
