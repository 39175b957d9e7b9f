"""Column types that mean the same on both databases."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler


class AsciiField(models.CharField):
    """Short ASCII text, ordered bytewise: SQLite does so by itself, PostgreSQL needs its collation "C" (DESIGN 3)."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "postgresql":
            parameters["collation"] = "C"
        return parameters


class StoredType(models.Func):
    """The type a value is really stored with, for CHECKs: SQLite keeps what does not convert as it came."""

    arity = 1
    output_field = models.CharField()

    template = "typeof(%(expressions)s)"

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return super().as_sql(compiler, connection, template="pg_typeof(%(expressions)s)::text", **extra)
