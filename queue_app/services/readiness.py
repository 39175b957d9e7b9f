"""Whether this installation can work: database, migrations, triggers (for `/readyz`)."""

from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from queue_app.store import triggers


def lacks() -> list[str]:
    """Words for what is missing: database, migrations, triggers; empty when ready."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return ["migrations"]
        return ["triggers"] if triggers.missing() else []
    except (DatabaseError, InterfaceError):
        connection.close()
        return ["database"]
