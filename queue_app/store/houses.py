"""Another database beside the one that everything uses, and living in it for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from queue_app.store import database


def open_house(config: dict[str, Any]) -> BaseDatabaseWrapper:
    """A connection of its own by Django's dict of a database; nothing is connected yet."""
    whole = connections.configure_settings({DEFAULT_DB_ALIAS: dict(config)})[DEFAULT_DB_ALIAS]
    house: BaseDatabaseWrapper = load_backend(whole["ENGINE"]).DatabaseWrapper(whole, DEFAULT_DB_ALIAS)
    return house


@contextmanager
def living_in(house: BaseDatabaseWrapper) -> Iterator[None]:
    """Everything that asks for the default database gets this one, in this thread."""
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = house
    database.is_postgresql.cache_clear()  # the house may be of the other kind
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual
        database.is_postgresql.cache_clear()
