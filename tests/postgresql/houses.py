"""An old house on SQLite beside the database of the tests, which is the new one."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from queue_app.models import Job, Queue
from queue_app.services import accounts, queue
from tests.backups.conftest import living_in_file

AT = datetime(2026, 11, 30, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture
def new(db: None) -> BaseDatabaseWrapper:
    """The tests' own database: nothing in it but what `migrate` makes."""
    return connections["default"]


@pytest.fixture
def old(file: Path, new: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    """A house of two people, three orders and a queue of its own."""
    with living_in_file(file) as house:
        accounts.set_person("oda", role="operator", password="correct horse")
        accounts.set_person("tom", role="team_lead", see_payloads=True)
        User.objects.filter(username="oda").update(last_login=AT, is_active=False)
        Group.objects.create(name="night shift").user_set.add(User.objects.get(username="oda"))
        Group.objects.get(name="night shift").permissions.add(Permission.objects.get(codename="view_payload"))
        Queue.objects.create(name="drinks", paused=True)
        for job_id in ("b", "a", "c"):
            queue.enqueue(job_id, 3, payload={"to": "雪 'x\\\n", "n": 1.5})
        (lease,) = queue.claim("w", limit=1)
        queue.finish(lease.id, lease.token, "permanent", code="http_422")
        yield house


def config_of(house: BaseDatabaseWrapper, **changes: object) -> dict[str, Any]:
    """Django's dict of a house, without a pool: pools go by alias."""
    config = dict(house.settings_dict)
    options = {key: value for key, value in config["OPTIONS"].items() if key != "pool"}
    return {**config, "OPTIONS": options, **changes}


def ids_of(house: BaseDatabaseWrapper) -> list[str]:
    """Of the orders of a house."""
    with house.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {Job._meta.db_table} ORDER BY seq")
        return [row[0] for row in cursor.fetchall()]
