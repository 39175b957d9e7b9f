"""How PostgreSQL keeps the tables of a queue: rows that change all the time beside rows that never do.

PostgreSQL writes a new version of a row at each change. Its defaults suit tables that grow and are read; here a small,
hot part changes many times a second, and a claim wades through whatever dead versions nobody has removed yet. Idempotent;
settings take no lock that workers notice (SHARE UPDATE EXCLUSIVE), a key or index that goes takes its table once, for a
moment. SQLite has nothing of the kind.
"""

from collections.abc import Mapping

from django.db import connections

# Rows of which only columns without an index change. Half a page free lets a new version stay in the page of the old:
# no index is touched (a "HOT" update), and the next reader of the page clears the old one away without any vacuum.
_CHANGED_IN_PLACE: Mapping[str, str] = {
    "fillfactor": "50",
    "autovacuum_vacuum_scale_factor": "0",  # these tables have hundreds of rows: a share of them would say nothing
    "autovacuum_vacuum_threshold": "500",
    "autovacuum_analyze_scale_factor": "0",
    "autovacuum_analyze_threshold": "5000",
}
# Rows that are only ever added. Vacuum sets the marks that let an index answer alone; the default waits for a fifth more.
_ADDED: Mapping[str, str] = {
    "autovacuum_vacuum_insert_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.02",
}
WANTED: Mapping[str, Mapping[str, str]] = {
    # A job is written three to five times in its life, and its due time and lease stand in indexes: room in its page
    # keeps the versions together, so that one move dirties one page of the table. More room would cost 10 million done
    # rows more than it saves. Dead versions: by default they may be a fifth of the table, two million of ten, before
    # vacuum comes, and every claim steps over those that lie at the front of its index. A hundredth is soon enough; the
    # delay of 1 ms instead of 2 lets one vacuum of a large table end before the next is due.
    "jobs": {
        "fillfactor": "85",
        "autovacuum_vacuum_scale_factor": "0.01",
        "autovacuum_vacuum_threshold": "1000",
        "autovacuum_vacuum_cost_delay": "1",
        "autovacuum_analyze_scale_factor": "0.02",
        "autovacuum_analyze_threshold": "1000",
    },
    # An item leaves `waiting` once, soon after a million of them came: the plan of the next bite needs fresh figures. A page
    # has room for the second version of each of its items, and no index is touched: 4 us an item instead of 14.
    "plan_items": {
        "fillfactor": "50",
        "autovacuum_vacuum_scale_factor": "0.02",
        "autovacuum_analyze_scale_factor": "0.02",
    },
    **dict.fromkeys(
        ("counts", "flows", "results", "tallies", "heads", "gates", "plans", "processes"), _CHANGED_IN_PLACE
    ),
    **dict.fromkeys(("failures", "audit", "redrives", "redrive_outcomes"), _ADDED),
}

# Django gives each text key a second index, for LIKE. Ids are ordered bytewise here, so the first one serves prefixes, too,
# as a range; the second would cost every move of these tables 4 to 17 %.
WITHOUT_TWINS = ("jobs", "holds", "tombstones")

# Rows of which a redrive or a freeze adds thousands a second. A foreign key is one more query for each of them, at the
# commit, and its index one more entry. What they refer to cannot go: plans are never deleted (`plans_guard_delete`), items
# are added only to a plan that is being made (`plan_items_guard_grow`), and who asked for or approved a redrive stands in
# its plan, its approval and the audit as well, which keep their keys. Only who asked for a redrive without a plan stands
# nowhere else: Django refuses to delete that account (PROTECT), and the application's role may delete none.
WITHOUT_KEYS = ("redrives", "plan_items", "holds")
WITHOUT_INDEX = {"redrives": ("requested_by_id", "approved_by_id")}


def create_all(using: str = "default") -> None:
    """Give every table that exists its settings and take away keys and indexes that it does not need; what stands is left
    alone."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    present = _present(using)
    with connection.cursor() as cursor:
        for index in _twins(using) + _indexes_of_keys(using):
            cursor.execute(f"DROP INDEX {index}")
        for table, key in _keys(using):
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {key}")
        for table, wanted in WANTED.items():
            if table in present and not wanted.items() <= present[table].items():
                cursor.execute(f"ALTER TABLE {table} SET ({', '.join(f'{k} = {v}' for k, v in wanted.items())})")


def missing(using: str = "default") -> list[str]:
    """Tables whose settings differ from the list, sorted."""
    present = _present(using)
    return sorted(table for table, wanted in WANTED.items() if not wanted.items() <= present.get(table, {}).items())


def _present(using: str) -> dict[str, dict[str, str]]:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, coalesce(c.reloptions, '{}') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind = 'r' AND n.nspname = current_schema()"
        )
        return {name: dict(option.split("=", 1) for option in options) for name, options in cursor.fetchall()}


def _twins(using: str) -> list[str]:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid WHERE NOT indisunique "
            "AND c.relname LIKE %s AND indrelid::regclass::text = ANY (%s)",
            [r"%\_like", list(WITHOUT_TWINS)],
        )
        return [row[0] for row in cursor.fetchall()]


def _keys(using: str) -> list[tuple[str, str]]:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'f' "
            "AND conrelid = ANY (SELECT to_regclass(t) FROM unnest(%s::text[]) AS t)",
            [list(WITHOUT_KEYS)],
        )
        return cursor.fetchall()


def _indexes_of_keys(using: str) -> list[str]:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT i.indexrelid::regclass::text FROM pg_index AS i "
            "JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
            "WHERE i.indnatts = 1 AND NOT i.indisunique AND (i.indrelid, a.attname) IN "
            "(SELECT to_regclass(t), c FROM unnest(%s::text[], %s::text[]) AS x(t, c))",
            [list(column) for column in zip(*((t, c) for t, cs in WITHOUT_INDEX.items() for c in cs), strict=True)],
        )
        return [row[0] for row in cursor.fetchall()]
