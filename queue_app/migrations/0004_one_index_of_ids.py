"""One index of an id is enough: ids are ordered bytewise, so PostgreSQL's second one for LIKE only costs each move."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

TABLES = ("jobs", "holds", "tombstones")  # written with every order, and searched by ranges of ids alone


def drop_second_indexes(_apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Django names them after the column and a digest, `jobs_id_5fa7abdb_like`."""
    if editor.connection.vendor != "postgresql":
        return
    with editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = ANY (%s::regclass[]) AND c.relname LIKE %s AND NOT i.indisunique",
            [list(TABLES), r"%\_like"],
        )
        names = [row[0] for row in cursor.fetchall()]
    for name in names:
        editor.execute(f"DROP INDEX {name}")


class Migration(migrations.Migration):
    dependencies = [
        ("queue_app", "0003_breaker_silence"),
    ]

    operations = [
        migrations.RunPython(drop_second_indexes, migrations.RunPython.noop, elidable=False),
    ]
