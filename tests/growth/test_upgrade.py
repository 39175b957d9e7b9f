"""An upgrade with a running worker of the first release: old leases end, nothing is lost, nothing fails (fault G18, F67)."""

import json
import os
import subprocess
import sys
from urllib.parse import quote

import pytest
from django.db import connection

from tests.conftest import BASE_DIR

pytestmark = pytest.mark.timeout(300)  # several programs start, on a machine that may be busy


@pytest.fixture
def house(tmp_path, django_db_blocker):
    """An empty database of its own on the server of this run, as other processes reach it: the environment."""
    url, name = f"sqlite:///{quote(str(tmp_path / 'old.sqlite3'))}", f"upgrade_{os.getpid()}"
    if connection.vendor == "postgresql":
        config = connection.settings_dict
        maintain(django_db_blocker, f'CREATE DATABASE "{name}"')
        url = f"postgres://{config['USER']}:{config['PASSWORD']}@{config['HOST']}:{config['PORT']}/{name}"
    yield {
        **os.environ,
        "DATABASE_URL": url,
        "SNACKOPS_DATA": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "snackops.settings",
    }
    if connection.vendor == "postgresql":
        maintain(django_db_blocker, f'DROP DATABASE "{name}" WITH (FORCE)')


def maintain(blocker, sql):
    with blocker.unblock(), connection._nodb_cursor() as cursor:
        cursor.execute(sql)


def run(house, *command):
    done = subprocess.run(
        [sys.executable, *command], env=house, cwd=BASE_DIR, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-3_000:])
    return done.stdout


def start(house, *command):
    return subprocess.Popen(
        [sys.executable, *command], env=house, cwd=BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


FOUND = """
import django, json; django.setup()
from django.core.management import call_command
from django.db import connection
from queue_app.services import counting, verification
from queue_app.store import triggers
with connection.cursor() as cursor:
    cursor.execute("SELECT state, count(*) FROM jobs WHERE id LIKE 'first-%%' OR id LIKE 'kept-%%' GROUP BY state")
    states = dict(cursor.fetchall())
    cursor.execute("SELECT count(*) FROM jobs AS j WHERE state = 'dead' AND NOT EXISTS "
                   "(SELECT 1 FROM failures AS f WHERE f.job_id = j.id AND f.token = j.token)")
    without_evidence = cursor.fetchone()[0]
call_command("check", databases=["default"], fail_level="WARNING")
print(json.dumps({
    "states": states, "without_evidence": without_evidence, "missing": triggers.missing(),
    "differences": len(counting.check(wait=lambda _s: None).differences), "whole": verification.verify().whole,
}))
"""


def test_the_newest_schema_arrives_under_a_running_worker_of_the_first_release(house):
    run(house, "-m", "tests.growth.release_one", "lay")
    old = start(house, "-m", "tests.growth.release_one", "work")
    new = None
    try:
        assert old.stdout.readline() == "working\n"
        run(house, "manage.py", "migrate", "-v0")
        new = start(house, "-m", "tests.growth.busy", "new")  # both versions work on it for a while
        assert new.stdout.readline() == "working\n"
        new_moves = int(new.communicate("", timeout=120)[0])
        told = json.loads(old.communicate("", timeout=120)[0])
    finally:
        for child in (old, new):
            if child is not None and child.poll() is None:
                child.kill()
                child.communicate()
    assert (old.returncode, new.returncode) == (0, 0)
    assert new_moves > 0
    assert told["kept"] == [True] * 5, "a lease from before the upgrade was lost"
    assert told["refused"] == 0
    assert told["done"] > 0
    assert told["longest_wait_ms"] < 60_000  # seconds on a quiet machine
    found = json.loads(run(house, "-c", FOUND).splitlines()[-1])
    states = found.pop("states")
    assert sum(states.values()) == told["accepted"] + 5, "an accepted order is gone"
    assert states.get("leased", 0) <= 6, "more is leased than the new worker had in hand when it was told to stop"
    assert found == {"without_evidence": 0, "missing": [], "differences": 0, "whole": True}
