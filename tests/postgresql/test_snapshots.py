"""The snapshot that a dump is made under: one state of everything, only read, and as long as it takes."""

import psycopg
import pytest
from django.db import connection

from queue_app.models import Queue
from queue_app.store import backups_postgresql

SETTINGS = ("transaction_isolation", "transaction_read_only", "idle_in_transaction_session_timeout")


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_everybody_who_knows_its_name_sees_what_it_sees() -> None:
    config = connection.settings_dict
    usual = shown(SETTINGS[2])
    with psycopg.connect(host=config["HOST"], port=config["PORT"], user=config["USER"], dbname=config["NAME"]) as other:
        with backups_postgresql.snapshot() as name:
            assert type(name) is str
            assert [shown(setting) for setting in SETTINGS] == ["repeatable read", "on", "0"]
            other.execute('INSERT INTO queues SELECT (jsonb_populate_record(q, \'{"name": "later"}\')).* FROM queues q')
            other.commit()
            assert Queue.objects.count() == 1
            other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            other.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
            assert other.execute("SELECT count(*) FROM queues").fetchall() == [(1,)]
            other.rollback()
        assert Queue.objects.count() == 2
    assert (shown(SETTINGS[1]), shown(SETTINGS[2])) == ("off", usual)
