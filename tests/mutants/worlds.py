"""A database and a folder for each child that tries a mutant: copies of what was prepared before the first fork."""

import os
import shutil
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.test import utils as django_test

BASE = Path.cwd().parent  # pytest starts in mutants/
_FILE = BASE / "prepared.sqlite3"
_SERVER = os.environ.get("DATABASE_URL", "")  # a test may change the environment
_setup_databases = django_test.setup_databases


def prepare() -> None:
    """Set the database of the tests up, once, and let go of it: PostgreSQL copies none that somebody uses.

    Tests that need a file of SQLite beside it get one, too: to migrate one costs a second.
    """
    from tests.backups import conftest as backups  # it needs Django to be set up

    _setup_databases(verbosity=0, interactive=False)
    if connection.vendor == "sqlite":
        shutil.copy(connection.settings_dict["NAME"], _FILE)
    else:
        with backups.living_in_file(_FILE):
            call_command("migrate", verbosity=0)
    backups.PREPARED = _FILE
    let_go()


def let_go() -> None:
    """Close every connection of this thread, also those that a pool keeps."""
    connections.close_all()
    if connection.vendor == "postgresql":
        connection.close_pool()


def take() -> None:
    """A folder and a database for this child. Nobody sets one up or tears one down from here on."""
    settings.DATA_DIR = BASE / "children" / str(os.getpid())
    os.environ["SNACKOPS_DATA"] = str(settings.DATA_DIR)
    settings.DATA_DIR.mkdir(parents=True)
    prepared = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        name = str(settings.DATA_DIR / "test.sqlite3")
        shutil.copy(_FILE, name)
    else:
        name = f"child_{os.getpid()}"
        _on_the_server(f"CREATE DATABASE {name} TEMPLATE {prepared}")
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
    django_test.setup_databases = lambda *_, **__: []
    django_test.teardown_databases = lambda *_, **__: None


def leave() -> None:
    """Give both back, whatever still uses them. A child that was killed leaves its own to the end of the run."""
    shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
    if connection.vendor == "postgresql":
        try:
            _on_the_server(f"DROP DATABASE IF EXISTS child_{os.getpid()} WITH (FORCE)")
        except psycopg.Error:  # the server is thrown away soon
            pass


def _on_the_server(statement: str) -> None:
    with psycopg.connect(_SERVER, autocommit=True) as session:  # not by Django: tests forbid that at times
        session.execute(statement)
